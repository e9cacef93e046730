//! One partition under one claim: its gate and its positions.

mod gate;
mod halting;
mod retried;
mod stored;
mod topic;
mod unfetched;
mod unwritten;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use tokio::sync::Notify;

pub use gate::Gate;
use halting::Halting;
pub use halting::{Halt, HaltReason, Round};
use retried::Retrying;
pub(crate) use stored::Unanswered;
use stored::{StoredOffsets, Writing};
use unfetched::Unfetched;
pub(crate) use unwritten::LetterUnderWay;
pub use unwritten::UnwrittenLetter;
use unwritten::UnwrittenLetters;

use super::{Claim, Position};
use crate::clock;
use crate::lease::{Lease, SessionEpoch};
use crate::stream_queue::Credit;

/// No offset node.
pub const NO_VERSION: i32 = -1;
/// No offset known.
pub const NO_OFFSET: i64 = -1;
/// No leader epoch known.
pub const NO_EPOCH: i32 = -1;

/// How a chunk joins on to the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// It goes on where the last ended, or before: what it repeats is skipped when it is read.
    Next,
    /// Nothing in it is new.
    Repeated,
    /// Something is missing before it.
    Gap,
}

/// One partition under one claim: who, where to, how far.
///
/// Its gate enforces INV-1 and INV-2: a record is handed over between [`enter`](Self::enter) and
/// [`leave`](Self::leave), `enter` refuses once the gate is closed or the lease has ended, and
/// [`drained`](Self::drained) waits for the one inside.
pub struct OwnedPartition {
    /// Which partition.
    pub topic_partition: TopicPartition,
    /// The rebalance that started it.
    pub generation: Generation,
    /// The ZooKeeper session of the claim.
    pub session: SessionNumber,
    /// The same session, by the session actor's count: its lease guards every hand-over.
    pub epoch: SessionEpoch,
    /// Who consumes it.
    pub thread: ConsumerThreadId,
    /// Since when.
    pub owned_since: SystemTime,
    /// What its stream still has room for.
    pub credit: Arc<Credit>,
    lease: Arc<Lease>,
    halting: Halting,
    in_hand: AtomicBool,
    /// It is halted or closed, or has nothing in hand any more then.
    moved: Notify,
    /// Chunks that were fetched and that the stream has not taken in yet.
    on_the_way: AtomicUsize,
    /// Once set it stays.
    appeared: AtomicBool,
    /// How often it was made again, doubled, and 1 more while the positions are of an earlier one: that is cleared
    /// after they are set, and read before them.
    topic: AtomicU64,
    /// Held while the positions are set, other than by the stream that moves them on.
    setting: Mutex<()>,
    fetched: AtomicI64,
    delivered: AtomicI64,
    acked: AtomicI64,
    /// The claims that are this one renewed have the same.
    stored: Arc<StoredOffsets>,
    writing: Writing,
    high_watermark: AtomicI64,
    leader_epoch: AtomicI32,
    last_epoch: AtomicI32,
    unfetched: Unfetched,
    retrying: Retrying,
    unwritten: UnwrittenLetters,
    records: AtomicU64,
    bytes: AtomicU64,
}

impl OwnedPartition {
    /// A partition that was just claimed, at its stored offset.
    pub fn new(claim: Claim, credit: Arc<Credit>, lease: Arc<Lease>) -> Self {
        let at = claim.position.offset.unwrap_or(NO_OFFSET);
        Self {
            topic_partition: claim.topic_partition,
            generation: claim.generation,
            session: claim.session,
            epoch: claim.epoch,
            thread: claim.thread,
            owned_since: clock::now(),
            credit,
            lease,
            halting: Halting::default(),
            in_hand: AtomicBool::new(false),
            moved: Notify::new(),
            on_the_way: AtomicUsize::new(0),
            appeared: AtomicBool::new(claim.appeared),
            topic: AtomicU64::new(claim.position.earlier_topic.into()),
            setting: Mutex::default(),
            fetched: AtomicI64::new(at),
            delivered: AtomicI64::new(at),
            acked: AtomicI64::new(at),
            stored: Arc::new(StoredOffsets::new(&claim.position)),
            writing: Writing::default(),
            high_watermark: AtomicI64::new(NO_OFFSET),
            leader_epoch: AtomicI32::new(NO_EPOCH),
            last_epoch: AtomicI32::new(NO_EPOCH),
            unfetched: Unfetched::default(),
            retrying: Retrying::default(),
            unwritten: UnwrittenLetters::default(),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The same claim once more, at its acknowledged position, for a stream that is made anew. Close this one first.
    pub fn renewed(&self) -> Self {
        // first: a position that is made meanwhile then only seems to be of the earlier topic, and not the reverse
        let topic = self.topic.load(Acquire);
        let position = Position { offset: Some(self.acked()).filter(|at| *at >= 0), ..Position::NONE };
        let claim = Claim {
            topic_partition: self.topic_partition.clone(),
            generation: self.generation,
            session: self.session,
            epoch: self.epoch,
            thread: self.thread.clone(),
            appeared: self.has_appeared(),
            position,
        };
        let renewed = Self::new(claim, Arc::clone(&self.credit), Arc::clone(&self.lease));
        renewed.set_leader_epoch(self.leader_epoch());
        renewed.set_last_epoch(self.last_epoch());
        let renewed = Self {
            owned_since: self.owned_since,
            topic: AtomicU64::new(topic),
            halting: self.halting.renewed(),
            // what is under way for this one is answered to it, and is so for the next
            stored: Arc::clone(&self.stored),
            ..renewed
        };
        renewed.set_unanswered(renewed.topic_number(), self.unanswered());
        renewed
    }

    /// The same, at a position that somebody asked for.
    pub(crate) fn sought(&self, offset: i64) -> Self {
        let stored = Arc::new(StoredOffsets::clone(&self.stored));
        let sought = Self { stored, writing: Writing::default(), ..self.renewed() };
        sought.lift(&[HaltReason::Failed, HaltReason::Unreadable]);
        sought.reset(offset);
        sought
    }

    /// The next offset to fetch, or [`NO_OFFSET`].
    pub fn fetched(&self) -> i64 {
        self.fetched.load(Acquire)
    }

    /// A chunk of the offsets `from` to `to` came to the stream: says how it joins on to what came before, and
    /// moves on when it does. Only the stream calls this.
    ///
    /// A fetcher that starts anew begins where the stream was *then*, while a chunk of its predecessor may still be
    /// on its way: so a chunk may overlap with the last, or lie behind a rewound position.
    pub fn take_in(&self, from: i64, to: i64) -> Joint {
        let at = self.fetched.load(Acquire);
        if from > at {
            return Joint::Gap;
        }
        // a position that was set meanwhile stands
        if to <= at || self.fetched.compare_exchange(at, to, AcqRel, Acquire).is_err() {
            return Joint::Repeated;
        }
        Joint::Next
    }

    /// The position is (again) the acknowledged one: what was fetched past it is forgotten.
    pub fn rewind(&self) -> i64 {
        let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let acked = self.acked.load(Acquire);
        self.fetched.store(acked, Release);
        self.delivered.store(acked, Release);
        acked
    }

    /// `auto.offset.reset`, a truncated log or a seek gave a new position: the one way by which offsets may go down.
    pub fn reset(&self, offset: i64) {
        self.reset_in(self.topic_number(), offset);
    }

    /// The same, for a position in the topic of this [number](Self::topic_number): in a later one, another is needed.
    pub(crate) fn reset_in(&self, topic: u64, offset: i64) {
        // what is stored ahead of it must not keep the next commit from being written
        self.stored.forget_above(offset);
        // what was taken in before says nothing of the log from there on
        self.next_round();
        let setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        for position in [&self.fetched, &self.delivered, &self.acked] {
            position.store(offset, Release);
        }
        drop(setting);
        self.forget_unreadable();
        self.forget_retried();
        self.last_epoch.store(NO_EPOCH, Release);
        self.set_of_topic(topic);
    }

    /// The next offset to hand over.
    pub fn delivered(&self) -> i64 {
        self.delivered.load(Acquire)
    }

    /// The record before `next` is being handed over. Only its stream calls this, and nobody else sets the position
    /// while something is unhandled, so a load and a store are enough.
    #[inline]
    pub fn advance_delivered(&self, next: i64) {
        raise(&self.delivered, next);
    }

    /// Everything before this offset is handled: what a commit may store. [`NO_OFFSET`] before the first position.
    pub fn acked(&self) -> i64 {
        self.acked.load(Acquire)
    }

    /// A chunk was made, which the stream is to [take in](Self::take_in).
    pub(crate) fn sent(&self) {
        self.on_the_way.fetch_add(1, AcqRel);
    }

    /// It has been, or was dropped.
    pub(crate) fn arrived(&self) {
        self.on_the_way.fetch_sub(1, AcqRel);
    }

    /// A chunk lies in the stream's mailbox: [`fetched`](Self::fetched) does not know of it yet.
    pub(crate) fn is_on_the_way(&self) -> bool {
        self.on_the_way.load(Acquire) > 0
    }

    /// Something was fetched that is not handled yet.
    pub fn has_unhandled(&self) -> bool {
        let on_the_way = self.is_on_the_way();
        let acked = self.acked();
        on_the_way || (acked != NO_OFFSET && acked < self.fetched())
    }

    /// Everything before `next` is handled. Only its stream calls this; see
    /// [`advance_delivered`](Self::advance_delivered).
    #[inline]
    pub fn ack(&self, next: i64) {
        debug_assert!(next <= self.delivered(), "INV-4: {} acked past delivered", self.topic_partition);
        raise(&self.acked, next);
    }

    /// Whether the lease of the claiming session lives: needed to hand over and to commit.
    pub fn is_leased(&self) -> bool {
        self.lease.is_live_in(self.epoch)
    }

    /// The time that it has left; zero when it has ended.
    pub fn lease_left(&self) -> Duration {
        let left = self.lease.remaining();
        // asked second: what was left then was of this session
        if self.is_leased() { left } else { Duration::ZERO }
    }

    /// The broker's high watermark at the last fetch, or [`NO_OFFSET`].
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Acquire)
    }

    /// The broker said so.
    pub fn set_high_watermark(&self, offset: i64) {
        self.high_watermark.store(offset, Release);
    }

    /// How many records are not handled yet; none before the first fetch. Never below 0.
    pub fn lag(&self) -> Option<i64> {
        let (end, acked) = (self.high_watermark(), self.acked());
        (end != NO_OFFSET && acked != NO_OFFSET).then(|| (end - acked).max(0))
    }

    /// Counts a record that was handed over, and the bytes of its key and value. Only its stream calls this,
    /// so a load and a store are enough.
    #[inline]
    pub fn count(&self, bytes: u64) {
        self.records.store(self.records.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
    }

    /// The same for many at once; the bytes are those of their batches' payloads.
    pub fn count_all(&self, records: u64, bytes: u64) {
        self.records.store(self.records.load(Relaxed) + records, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
    }

    /// Records and bytes handed over under this claim.
    pub fn counted(&self) -> (u64, u64) {
        (self.records.load(Relaxed), self.bytes.load(Relaxed))
    }
}

/// Moves a position that has one writer up to `next`.
#[inline]
fn raise(position: &AtomicI64, next: i64) {
    if position.load(Relaxed) < next {
        position.store(next, Release);
    }
}
