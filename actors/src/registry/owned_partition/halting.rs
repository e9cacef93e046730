//! Whether a partition is handed over at all, and why not: one word that is looked at before each record.
//!
//! ```text
//! delivered (round n) ── halt(reason) ──▶ halted ── lift(the last reason) ──▶ nothing in hand?
//!        ▲                                                                        │
//!        └── begin_again: round n + 1, fetched again from the acknowledged position ◀┘
//! ```
//!
//! A position that is made in the place of another begins a round as well, of the log that it is in.
//!
//! What was fetched in an earlier round is never handed over, wherever it still lies (a queue, a reader): so a partition
//! that is halted and goes on while its handler is still busy with a record neither passes over what its stream has
//! dropped, nor hands over twice what it has not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Gate, OwnedPartition};
use crate::clock;

const CLOSED: u64 = 1;
/// It was halted, and what was fetched before may still lie somewhere.
const STALE: u64 = 1 << 1;
/// All that shuts the gate; the round is above.
const SHUT: u64 = 0xff;
const ONE_ROUND: u64 = SHUT + 1;

/// Why a partition that is owned is not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HaltReason {
    /// The application has paused it.
    Paused,
    /// The application has paused its topic.
    TopicPaused,
    /// Its failure policy has stopped it: a record could not be handled.
    Failed,
    /// A record cannot be read.
    Unreadable,
}

impl HaltReason {
    /// Those that last when the claim is renewed.
    const KEPT: [Self; 3] = [Self::Paused, Self::TopicPaused, Self::Failed];

    /// In a word, as status and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::TopicPaused => "topic_paused",
            Self::Failed => "failed",
            Self::Unreadable => "unreadable",
        }
    }

    const fn bit(self) -> u64 {
        match self {
            Self::Paused => 1 << 2,
            Self::TopicPaused => 1 << 3,
            Self::Failed => 1 << 4,
            Self::Unreadable => 1 << 5,
        }
    }
}

fn bits(reasons: &[HaltReason]) -> u64 {
    reasons.iter().fold(0, |bits, reason| bits | reason.bit())
}

/// What is known of a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halt {
    /// The record that could not be handled or read; else none.
    pub offset: Option<i64>,
    /// Since when.
    pub since: SystemTime,
    /// In words.
    pub why: String,
    /// How often it was tried; 0 where nothing was.
    pub attempts: u32,
}

impl Halt {
    /// Since now, and for this.
    pub(crate) fn asked_for(why: &str) -> Self {
        Self { offset: None, since: clock::now(), why: why.to_owned(), attempts: 0 }
    }
}

/// A time between two halts or positions that were made: what was taken in in one is not handed over in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round(u64);

/// The word, and the details that nobody looks at before a record.
#[derive(Default)]
pub(super) struct Halting {
    word: AtomicU64,
    why: Mutex<BTreeMap<HaltReason, Halt>>,
}

impl Halting {
    /// None: it may be handed over, as far as this goes.
    #[inline]
    pub(super) fn shut_in(&self, round: Round) -> Option<Gate> {
        let word = self.word.load(SeqCst);
        if word == round.0 {
            return None;
        }
        Some(if word & CLOSED == 0 { Gate::Halted } else { Gate::Closed })
    }

    pub(super) fn is_shut(&self) -> bool {
        self.word.load(SeqCst) & SHUT != 0
    }

    /// For a claim that is renewed: halted for the same reasons, and not closed. What could not be read is tried again,
    /// for whoever meant to has forgotten it.
    pub(super) fn renewed(&self) -> Self {
        let mut why = self.why().clone();
        why.remove(&HaltReason::Unreadable);
        let halted = self.word.load(SeqCst) & bits(&HaltReason::KEPT);
        let word = if halted == 0 { 0 } else { halted | STALE };
        Self { word: AtomicU64::new(word), why: Mutex::new(why) }
    }

    fn why(&self) -> MutexGuard<'_, BTreeMap<HaltReason, Halt>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedPartition {
    /// Nothing more is handed over. For good.
    pub fn close(&self) {
        self.halting.word.fetch_or(CLOSED, SeqCst);
        self.moved.notify_waiters();
    }

    /// Whether the partition is given up.
    pub fn is_closed(&self) -> bool {
        self.halting.word.load(SeqCst) & CLOSED != 0
    }

    /// The round in which what comes now is taken in.
    pub fn round(&self) -> Round {
        Round(self.halting.word.load(SeqCst) & !SHUT)
    }

    /// Whether what was taken in in this round may still be handed over.
    pub fn is_delivered_in(&self, round: Round) -> bool {
        self.halting.shut_in(round).is_none()
    }

    /// Whether nothing of it is handed over, or fetched, for now.
    pub fn is_halted(&self) -> bool {
        self.halting.word.load(SeqCst) & (SHUT & !CLOSED) != 0
    }

    /// Nobody has a reason to halt it, or to end it.
    pub(crate) fn may_go_on(&self) -> bool {
        self.halting.word.load(SeqCst) & (SHUT & !STALE) == 0
    }

    /// From here on nothing more is handed over; a record may be in a handler's hand, and is acknowledged when it is
    /// done.
    pub(crate) fn halt(&self, reason: HaltReason, halt: Halt) {
        let mut why = self.halting.why();
        self.halting.word.fetch_or(reason.bit() | STALE, SeqCst);
        why.insert(reason, halt);
        self.moved.notify_waiters();
    }

    /// These are no reasons any more; [`begin_again`](Self::begin_again) is to follow when none is left.
    pub(crate) fn lift(&self, reasons: &[HaltReason]) {
        let mut why = self.halting.why();
        self.halting.word.fetch_and(!bits(reasons), SeqCst);
        why.retain(|reason, _| !reasons.contains(reason));
    }

    /// What could not be read is to be tried again; until it is read, it is still shown.
    pub(crate) fn try_to_read(&self) {
        self.halting.word.fetch_and(!HaltReason::Unreadable.bit(), SeqCst);
    }

    /// What could not be read says nothing of the log from a new position on.
    pub(super) fn forget_unreadable(&self) {
        let mut why = self.halting.why();
        if !self.is_halted_as(HaltReason::Unreadable) {
            why.remove(&HaltReason::Unreadable);
        }
    }

    /// Whether it is halted for this.
    pub(crate) fn is_halted_as(&self, reason: HaltReason) -> bool {
        self.halting.word.load(SeqCst) & reason.bit() != 0
    }

    /// What is known of this reason, if it is one.
    pub(in crate::registry) fn halted_for(&self, reason: HaltReason) -> Option<Halt> {
        self.halting.why().get(&reason).cloned()
    }

    /// A new round from the acknowledged position on; `false`, and nothing done, while there is a reason to halt it.
    /// Only when nothing of it is in a handler's hand.
    pub(crate) fn begin_again(&self) -> bool {
        loop {
            let word = self.halting.word.load(SeqCst);
            if word & (SHUT & !STALE) != 0 {
                return false;
            }
            // first: what is handed over in the new round is counted from there
            self.rewind();
            let next = (word & !SHUT) + ONE_ROUND;
            if self.halting.word.compare_exchange(word, next, SeqCst, SeqCst).is_ok() {
                return true;
            }
        }
    }

    /// Before a new position is made: what was taken in until now, all of which is handled, is of no effect any more;
    /// `false` while its stream has a hand on it, and may move the positions yet.
    pub(crate) fn end_round(&self) -> bool {
        // in this order: who takes it in hand after this finds the new round
        self.next_round();
        !self.is_in_hand()
    }

    /// One that is shut gets its next round when it goes on.
    pub(super) fn next_round(&self) {
        let next = |word: u64| (word & SHUT == 0).then_some(word + ONE_ROUND);
        // an error: it is shut
        let _ = self.halting.word.fetch_update(SeqCst, SeqCst, next);
    }

    /// Why it is halted, and since when.
    pub fn halts(&self) -> Vec<(HaltReason, Halt)> {
        let delivered = self.delivered();
        let mut why = self.halting.why();
        let is_read = |halt: &Halt| halt.offset.is_some_and(|offset| offset < delivered);
        why.retain(|reason, halt| {
            self.is_halted_as(*reason) || (*reason == HaltReason::Unreadable && !is_read(halt))
        });
        why.iter().map(|(reason, halt)| (*reason, halt.clone())).collect()
    }

    /// It comes in the place of `claim`: what the application has paused or resumed since it was renewed counts.
    pub(in crate::registry) fn pause_as(&self, claim: &Self) {
        for reason in [HaltReason::Paused, HaltReason::TopicPaused] {
            match claim.halting.why().get(&reason) {
                Some(halt) => self.halt(reason, halt.clone()),
                None => self.lift(&[reason]),
            }
        }
    }
}
