//! Keeps the client of the present session outside the actor: a restarted actor takes it over, else the nodes of
//! the old session would conflict with its own.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::WeakRecipient;
use tokio::sync::Notify;

use super::News;
use super::SessionNews;
use super::heartbeat;
use super::port::{EventSink, NodeChange, ZkClient, ZkEvent};
use super::watches::Watches;
use crate::lease::{BootInstant, Lease, SessionEpoch};

/// The client of the present session, the watches wanted and the lease. Make one per consumer and hand it to each
/// start of its [`ZkSession`](super::ZkSession); dropping the last handle ends the client.
pub struct ClientHolder {
    pub(super) lease: Arc<Lease>,
    pub(super) watches: Watches,
    pub(super) reconnects: AtomicU64,
    /// Whether a session ever stood: before, a failed connect is final.
    pub(super) stood: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last_session: SessionEpoch,
    live: Option<Arc<Live>>,
    /// The actor that is running now. Not kept alive by us, as it keeps us alive.
    actor: Option<WeakRecipient<SessionNews>>,
    /// Ids of our earlier sessions: their nodes are not ours any more.
    past_ids: BTreeSet<i64>,
}

impl ClientHolder {
    /// An empty holder that extends and closes `lease`.
    pub fn new(lease: Arc<Lease>) -> Arc<Self> {
        Arc::new(Self {
            lease,
            watches: Watches::default(),
            reconnects: AtomicU64::new(0),
            stood: AtomicBool::new(false),
            inner: Mutex::default(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn attach(&self, actor: WeakRecipient<SessionNews>) {
        self.inner().actor = Some(actor);
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.inner().live.clone()
    }

    /// Whether the session has ended and no actor has replaced it yet.
    pub fn is_over(&self) -> bool {
        self.live().is_some_and(|live| live.over.load(Ordering::Acquire))
    }

    pub(super) fn next_session(&self) -> SessionEpoch {
        let mut inner = self.inner();
        inner.last_session.0 += 1;
        inner.last_session
    }

    /// Where the client of `session` reports. It keeps no handle on the holder.
    pub(super) fn sink(self: &Arc<Self>, session: SessionEpoch) -> EventSink {
        let holder = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(holder) = holder.upgrade() {
                holder.client_event(session, event);
            }
        })
    }

    /// Makes `client`, which began to connect at `opened`, the present one and starts its heartbeat.
    pub(super) fn install(
        self: &Arc<Self>,
        session: SessionEpoch,
        opened: BootInstant,
        client: Arc<dyn ZkClient>,
    ) {
        let live = Arc::new(Live::new(session, client, self.inner().past_ids.clone()));
        self.inner().live = Some(live.clone());
        let beat = heartbeat::beat(live.clone(), opened, Arc::downgrade(self));
        live.client.spawn(Box::pin(beat));
    }

    /// Ends `session` for good: nothing may act for it from here on.
    pub(super) fn retire(&self, session: SessionEpoch) -> Option<Arc<Live>> {
        self.lease.close(session);
        let mut inner = self.inner();
        let live = inner.live.take_if(|live| live.session == session)?;
        inner.past_ids.extend(live.id());
        Some(live)
    }

    /// Sends `news` to the actor. The end of the session is noted here as well: no actor may be running.
    pub(super) fn tell(&self, session: SessionEpoch, news: News) {
        if news.ends_the_session() {
            self.lease.close(session);
            if let Some(live) = self.live().filter(|live| live.session == session) {
                live.over.store(true, Ordering::Release);
            }
        }
        // the lock is let go before the message is sent: a full arbiter must not hold it
        let actor = self.inner().actor.as_ref().and_then(WeakRecipient::upgrade);
        if let Some(actor) = actor {
            actor.do_send(SessionNews { session, news });
        }
    }

    /// The part of an event that must not wait for a mailbox, then the message.
    fn client_event(&self, session: SessionEpoch, event: ZkEvent) {
        if let Some(live) = self.live().filter(|live| live.session == session)
            && live.note(&event)
        {
            self.tell(session, News::RegistrationMissing);
        }
        self.tell(session, News::Client(event));
    }
}

impl Drop for ClientHolder {
    fn drop(&mut self) {
        if let Some(live) = self.inner().live.take() {
            self.lease.close(live.session);
            live.client.end();
        }
    }
}

/// One session: its client and what is known of it.
pub(super) struct Live {
    pub(super) session: SessionEpoch,
    pub(super) client: Arc<dyn ZkClient>,
    /// A heartbeat has been answered on the connection of now.
    verified: AtomicBool,
    /// The session has ended, and no actor has heard of it yet.
    pub(super) over: AtomicBool,
    /// Send a heartbeat now.
    pub(super) wake: Notify,
    /// Look again whether the registration's node is free.
    pub(super) look_again: Notify,
    /// Owner nodes that are being claimed or released.
    claims: AtomicUsize,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Facts {
    /// The session's id, once a node of ours has shown it.
    id: Option<i64>,
    /// Our ids node, once registered.
    registered: Option<String>,
    /// Creates whose answer has not come.
    in_doubt: BTreeSet<String>,
    past_ids: BTreeSet<i64>,
}

impl Live {
    fn new(session: SessionEpoch, client: Arc<dyn ZkClient>, past_ids: BTreeSet<i64>) -> Self {
        Self {
            session,
            client,
            verified: AtomicBool::new(false),
            over: AtomicBool::new(false),
            wake: Notify::new(),
            look_again: Notify::new(),
            claims: AtomicUsize::new(0),
            facts: Mutex::new(Facts { past_ids, ..Facts::default() }),
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim or a release is under way until what is returned is dropped.
    pub(super) fn claiming(self: &Arc<Self>) -> Claiming {
        self.claims.fetch_add(1, Ordering::AcqRel);
        Claiming(self.clone())
    }

    /// How many are.
    pub(super) fn claims(&self) -> usize {
        self.claims.load(Ordering::Acquire)
    }

    /// Takes note of an event; true when it took our ids node away.
    fn note(&self, event: &ZkEvent) -> bool {
        match event {
            ZkEvent::Connected => {
                self.verified.store(false, Ordering::Release);
                self.wake.notify_one();
                self.look_again.notify_one();
            }
            ZkEvent::Suspended | ZkEvent::Expired | ZkEvent::Broken { .. } => {
                self.verified.store(false, Ordering::Release);
            }
            ZkEvent::Fired { change: NodeChange::Deleted, path } => {
                self.look_again.notify_one();
                return self.forget_registered(path);
            }
            ZkEvent::Fired { .. } => {}
        }
        false
    }

    /// Marks the connection as verified; true when it was not yet.
    pub(super) fn verify(&self) -> bool {
        !self.verified.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_verified(&self) -> bool {
        self.verified.load(Ordering::Acquire)
    }

    pub(super) fn id(&self) -> Option<i64> {
        self.facts().id
    }

    pub(super) fn learn_id(&self, id: i64) {
        self.facts().id = Some(id);
    }

    pub(super) fn registered(&self) -> Option<String> {
        self.facts().registered.clone()
    }

    pub(super) fn set_registered(&self, path: &str) {
        self.facts().registered = Some(path.to_owned());
    }

    /// Forgets the registration if it is at `path`; true when it was.
    pub(super) fn forget_registered(&self, path: &str) -> bool {
        self.facts().registered.take_if(|registered| registered == path).is_some()
    }

    /// The answer of a create at `path` has not come: a node there may be ours.
    pub(super) fn doubt(&self, path: &str) {
        self.facts().in_doubt.insert(path.to_owned());
    }

    pub(super) fn settle(&self, path: &str) {
        self.facts().in_doubt.remove(path);
    }

    /// Whether a node at `path` that holds our data and is `owner`'s comes from a create of ours that was never
    /// answered. Asked only while the session's id is unknown.
    pub(super) fn may_be_ours(&self, path: &str, owner: i64) -> bool {
        let facts = self.facts();
        facts.in_doubt.contains(path) && owner != 0 && !facts.past_ids.contains(&owner)
    }
}

/// A claim that is under way.
pub(super) struct Claiming(Arc<Live>);

impl Drop for Claiming {
    fn drop(&mut self) {
        self.0.claims.fetch_sub(1, Ordering::AcqRel);
    }
}
