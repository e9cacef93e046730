//! What a member is plugged into: its ZooKeeper client, the way to its brokers, and its threads.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

#[cfg(feature = "testkit")]
use actix::Arbiter;
use actix::{ArbiterHandle, System};

use super::life::Life;
use super::threads::{CONTROL, FETCHING, Thread};
use crate::broker_connection::Transport;
use crate::zk_session::{ZooKeeperAsync, port::ZkConnector};

/// What a member is plugged into.
#[derive(Clone)]
pub(super) struct Ports {
    pub(super) connector: Arc<dyn ZkConnector>,
    pub(super) transport: Transport,
    pub(super) threads: Threads,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            connector: Arc::new(ZooKeeperAsync),
            transport: Transport::default(),
            threads: Threads::default(),
        }
    }
}

#[cfg(feature = "testkit")]
impl Ports {
    /// Brokers in memory know what their members are at.
    pub(super) fn introduce(&self, group: &str, registry: &Arc<crate::registry::TopicRegistry>) {
        if let Transport::Memory { brokers, .. } = &self.transport {
            brokers.introduce(group, registry);
        }
    }
}

/// Where actors run.
#[derive(Clone, Copy, Default)]
pub(super) enum Threads {
    /// On threads of their own: control, fetching, and each stream that has a handler.
    #[default]
    Own,
    /// All on the thread that starts the member.
    #[cfg(feature = "testkit")]
    Here,
}

/// Where a member's own actors live.
pub(super) struct Places {
    pub(super) control: ArbiterHandle,
    pub(super) fetching: ArbiterHandle,
    /// The thread of control: none where the actors live on that of whoever starts the member.
    pub(super) thread: Option<(System, Receiver<()>)>,
}

impl Threads {
    /// For control, which ends the rest of `life` when it ends, and for fetching.
    pub(super) fn start(self, life: &Arc<Life>) -> io::Result<Places> {
        match self {
            Self::Own => {
                let fetching = Thread::own(FETCHING, || {})?;
                let fetchers = fetching.arbiter();
                life.add(fetching);
                let end = Arc::clone(life);
                let control = Thread::own(CONTROL, move || end.end())?;
                let arbiter = control.arbiter();
                let (system, alive) = control.into_parts();
                let thread = system.map(|system| (system, alive));
                Ok(Places { control: arbiter, fetching: fetchers, thread })
            }
            #[cfg(feature = "testkit")]
            Self::Here => {
                Ok(Places { control: Arbiter::current(), fetching: Arbiter::current(), thread: None })
            }
        }
    }

    /// The arbiter for one stream's handler: on a thread in the current `System`, so that handlers see it as theirs.
    pub(super) fn of_stream(self, stream: &str, life: &Life) -> io::Result<ArbiterHandle> {
        match self {
            Self::Own => {
                let thread = Thread::of_stream(stream)?;
                let arbiter = thread.arbiter();
                life.add(thread);
                Ok(arbiter)
            }
            #[cfg(feature = "testkit")]
            Self::Here => Ok(Arbiter::current()),
        }
    }
}
