//! Our own supervision. A panic ends an actix actor silently, and its `Supervisor` restarts at once, with the
//! same state, for ever; so every actor of ours carries an [`ExitGuard`], and its parent decides with a
//! [`RestartBudget`] whether and when it comes back.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, MailboxError, Message, Recipient};
use tokio::time::Instant;

/// A child has ended without having been told to: it panicked, or its arbiter is gone.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
pub struct ChildExited {
    /// Which child, as its parent named it.
    pub child: String,
    /// Which of its lives, so that a late notice does not count against the next.
    pub life: u64,
}

/// Carried by an actor; tells the parent when the actor is gone without having said goodbye.
pub struct ExitGuard {
    parent: Recipient<ChildExited>,
    notice: Option<ChildExited>,
}

impl ExitGuard {
    /// A guard for one life of a child.
    pub fn new(child: impl Into<String>, life: u64, parent: Recipient<ChildExited>) -> Self {
        Self { parent, notice: Some(ChildExited { child: child.into(), life }) }
    }

    /// The actor stops because it was told to. Not to be called in `Actor::stopped`: actix calls that after a panic
    /// as well, when it drops the context.
    pub fn dismiss(&mut self) {
        self.notice = None;
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        if let Some(notice) = self.notice.take() {
            self.parent.do_send(notice);
        }
    }
}

/// How often a child may come back: 10 times in 60 s, after 100 ms, doubling up to 5 s.
#[derive(Default)]
pub struct RestartBudget {
    recent: VecDeque<Instant>,
    /// Restarts in all.
    pub restarts: u64,
}

impl RestartBudget {
    const WINDOW: Duration = Duration::from_secs(60);
    const MOST: usize = 10;

    /// When to restart after an exit now; none when the budget is used up.
    pub fn next_delay(&mut self) -> Option<Duration> {
        let now = Instant::now();
        while self.recent.front().is_some_and(|at| now - *at > Self::WINDOW) {
            self.recent.pop_front();
        }
        let so_far = self.recent.len();
        if so_far >= Self::MOST {
            return None;
        }
        self.recent.push_back(now);
        self.restarts += 1;
        Some(Duration::from_millis(100 << so_far).min(Duration::from_secs(5)))
    }
}

/// Where an actor that may be restarted is reached: peers keep the slot, the parent puts each new life in.
pub struct Slot<A: Actor>(Arc<RwLock<Option<Addr<A>>>>);

impl<A: Actor> Clone for Slot<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Actor> fmt::Debug for Slot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.get().is_some()).finish()
    }
}

impl<A: Actor> Default for Slot<A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<A: Actor> Slot<A> {
    /// Puts a new life in.
    pub fn set(&self, addr: Addr<A>) {
        *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(addr);
    }

    /// No life any more, and none to come.
    pub fn clear(&self) {
        *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// The current life.
    pub fn get(&self) -> Option<Addr<A>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Sends without waiting; lost when the actor is not alive (its restart asks again for what matters).
    pub fn do_send<M>(&self, message: M)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        if let Some(addr) = self.get() {
            addr.do_send(message);
        }
    }

    /// Sends and waits for the answer.
    ///
    /// # Errors
    /// [`MailboxError::Closed`] when the actor is not alive or dies before it answers.
    pub fn send<M>(
        &self,
        message: M,
    ) -> impl Future<Output = Result<M::Result, MailboxError>> + Send + use<A, M>
    where
        M: Message + Send + Unpin + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        let addr = self.get();
        async move {
            match addr {
                Some(addr) => addr.send(message).await,
                None => Err(MailboxError::Closed),
            }
        }
    }
}
