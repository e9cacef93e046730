//! What a member is plugged into: its ZooKeeper client, the way to its brokers, and its threads.

use std::sync::Arc;

use actix::{Arbiter, ArbiterHandle};

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

impl Threads {
    /// An arbiter for some of them; one that was started for this is put in `started`, to be stopped at the end.
    pub(super) fn arbiter(self, started: &mut Vec<ArbiterHandle>) -> ArbiterHandle {
        match self {
            Self::Own => {
                let arbiter = Arbiter::new().handle();
                started.push(arbiter.clone());
                arbiter
            }
            #[cfg(feature = "testkit")]
            Self::Here => Arbiter::current(),
        }
    }
}
