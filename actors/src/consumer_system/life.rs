//! How long a member lives: whoever waits for its end, and the end of the application's `System`.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::{Addr, System};
use tokio::sync::watch;

use super::threads::{Thread, has_ended};
use super::{ConsumerSystem, Shutdown, StartError};
use crate::deadline::Deadline;
use crate::stream_queue::{Stop, Streams};

/// How a member's shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownOutcome {
    /// What was not done in time, a line each, with the partition and offset where there is one. Logged as well.
    pub cut_off: Vec<String>,
}

impl ShutdownOutcome {
    /// Whether all was done: handlers had finished, offsets are stored, partitions released, the session is closed and
    /// the threads have ended.
    pub fn is_complete(&self) -> bool {
        self.cut_off.is_empty()
    }
}

/// What outlives the member's actors: its threads, and the word that it is over.
pub(super) struct Life {
    state: Mutex<State>,
    over: watch::Sender<Option<ShutdownOutcome>>,
    /// By when offsets are to be flushed and owner nodes released.
    pub(super) released: Deadline,
    /// And the session closed, too.
    pub(super) closed: Deadline,
}

#[derive(Default)]
struct State {
    /// All but control, which ends them.
    threads: Vec<Thread>,
    cut_off: Vec<String>,
}

/// How long threads are waited for, at least and at most: handlers have had their time.
const THREADS_END: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

impl Life {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            over: watch::Sender::new(None),
            released: Deadline::new(),
            closed: Deadline::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that is to end with the member.
    pub(super) fn add(&self, thread: Thread) {
        self.state().threads.push(thread);
    }

    /// Something was given up.
    pub(super) fn cut_off(&self, what: String) {
        tracing::warn!(what, "not done before the end");
        self.state().cut_off.push(what);
    }

    pub(super) fn outcome(&self) -> Option<ShutdownOutcome> {
        self.over.borrow().clone()
    }

    /// Waits for the end.
    pub(super) async fn over(&self) -> ShutdownOutcome {
        let mut over = self.over.subscribe();
        // we hold the sender
        over.wait_for(Option::is_some).await.ok().and_then(|over| over.clone()).unwrap_or_default()
    }

    /// The actors have gone: ends the threads and tells whoever waits.
    pub(super) fn end(&self) {
        let threads = std::mem::take(&mut self.state().threads);
        let now = Instant::now();
        let closed = self.closed.get().map(tokio::time::Instant::into_std);
        let left = closed.map_or(THREADS_END.1, |closed| closed.saturating_duration_since(now));
        let until = now + left.clamp(THREADS_END.0, THREADS_END.1);
        threads.iter().for_each(Thread::stop);
        for name in threads.into_iter().filter_map(|thread| thread.join(until).err()) {
            self.cut_off(format!("{name}: its thread is busy, and ends when that is done"));
        }
        let cut_off = std::mem::take(&mut self.state().cut_off);
        self.over.send_replace(Some(ShutdownOutcome { cut_off }));
    }
}

/// Held by the member's actor: when that is gone, however it went, so is the rest.
pub(super) struct Alive {
    life: Arc<Life>,
    streams: Arc<Streams>,
    /// None when the actors live on threads of others.
    control: Option<System>,
    left: bool,
}

impl Alive {
    pub(super) fn new(life: Arc<Life>, streams: Arc<Streams>, control: Option<System>) -> Self {
        Self { life, streams, control, left: false }
    }

    pub(super) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// The group has been left as it should.
    pub(super) fn left(&mut self) {
        self.left = true;
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if !self.left {
            self.life.cut_off("the consumer system ended without leaving its group".to_owned());
            // those that are pulled live on threads of the application, which may wait for them
            for stream in self.streams.all() {
                stream.queue.do_send(Stop);
                stream.queue.clear();
            }
        }
        match &self.control {
            Some(system) => system.stop(),
            None => self.life.end(),
        }
    }
}

/// The `System` of whoever starts a member.
///
/// A thread may know one that has ended.
pub(super) fn current_system() -> Result<System, StartError> {
    System::try_current().filter(|system| system.arbiter().alive()).ok_or(StartError::NoSystem)
}

/// Lives in the application's `System`, and is dropped with it: the member then leaves its group, and that drop, by
/// which the process ends, waits for it.
pub(super) struct Guard {
    pub(super) system: Addr<ConsumerSystem>,
    pub(super) life: Arc<Life>,
    /// Disconnected when control has ended.
    pub(super) alive: Receiver<()>,
    /// `troupe.shutdown.timeout.ms`.
    pub(super) limit: Duration,
}

/// All members that have a guard, with the number of the `System` that they were started in.
static GUARDED: Mutex<Vec<Guarded>> = Mutex::new(Vec::new());

struct Guarded {
    application: usize,
    system: Addr<ConsumerSystem>,
    limit: Duration,
}

fn guarded() -> MutexGuard<'static, Vec<Guarded>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    pub(super) fn watch(self, application: &System) -> bool {
        let (system, limit) = (self.system.clone(), self.limit);
        guarded().push(Guarded { application: application.id(), system, limit });
        application.arbiter().spawn(async move {
            let guard = self;
            guard.life.over().await;
        })
    }

    /// Has all members of the same `System` leave: guards are dropped one after the other, and each waits.
    fn tell_all(&self) {
        let mut guarded = guarded();
        let own = guarded.iter().position(|it| it.system == self.system);
        let Some(Guarded { application, .. }) = own.map(|own| guarded.swap_remove(own)) else { return };
        if self.life.outcome().is_some() {
            return;
        }
        let shutdown = |limit| Shutdown {
            within: Some(limit),
            why: "the actix system that it was started in has ended",
        };
        self.system.do_send(shutdown(self.limit));
        for Guarded { system, limit, .. } in guarded.iter().filter(|it| it.application == application) {
            system.do_send(shutdown(*limit));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.tell_all();
        if self.life.outcome().is_some() {
            return;
        }
        // the threads end after it
        let until = Instant::now() + self.limit + THREADS_END.1;
        if !has_ended(&self.alive, until) {
            tracing::error!(limit = ?self.limit, why = "troupe.shutdown.timeout.ms", "the group is not left in time: what is not released is so when the session has expired");
        }
    }
}
