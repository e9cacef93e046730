//! Dead letters for which a partition waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{OwnedPartition, Round};
use crate::clock;

/// A dead letter that is not written yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwrittenLetter {
    /// The dead-letter topic.
    pub topic: Arc<str>,
    /// Since when it is being written.
    pub since: SystemTime,
    /// Why the last try failed; none before one has.
    pub why: Option<String>,
    /// Somebody must do something about it: it does not pass by itself.
    pub is_lasting: bool,
    /// What is given up in one round comes again in the next.
    round: Round,
    is_under_way: bool,
}

/// By offset.
#[derive(Default)]
pub(super) struct UnwrittenLetters(Mutex<BTreeMap<i64, UnwrittenLetter>>);

impl UnwrittenLetters {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, UnwrittenLetter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A letter is with its writer until this is dropped, which is to wait for it no longer, or is told how it went.
pub(crate) struct LetterUnderWay {
    partition: Arc<OwnedPartition>,
    offset: i64,
    has_failed: bool,
}

impl LetterUnderWay {
    pub(crate) fn begin(partition: &Arc<OwnedPartition>, offset: i64, topic: &Arc<str>) -> Self {
        let round = partition.round();
        let mut letters = partition.unwritten_now();
        let letter = letters.entry(offset).or_insert_with(|| UnwrittenLetter {
            topic: Arc::clone(topic),
            since: clock::now(),
            why: None,
            is_lasting: false,
            round,
            is_under_way: true,
        });
        (letter.round, letter.is_under_way) = (round, true);
        drop(letters);
        Self { partition: Arc::clone(partition), offset, has_failed: false }
    }

    /// It is to be written again, unless its partition is halted or given up before.
    pub(crate) fn failed(mut self, why: String, is_lasting: bool) {
        self.has_failed = true;
        if let Some(letter) = self.partition.unwritten.lock().get_mut(&self.offset) {
            (letter.why, letter.is_lasting) = (Some(why), is_lasting);
            letter.is_under_way = false;
        }
    }
}

impl Drop for LetterUnderWay {
    fn drop(&mut self) {
        if !self.has_failed {
            self.partition.unwritten.lock().remove(&self.offset);
        }
    }
}

impl OwnedPartition {
    /// The dead letters that it waits for, by the offsets of their records.
    pub fn unwritten_letters(&self) -> Vec<(i64, UnwrittenLetter)> {
        self.unwritten_now().iter().map(|(offset, letter)| (*offset, letter.clone())).collect()
    }

    /// Without what was given up while it waited for its next try.
    fn unwritten_now(&self) -> MutexGuard<'_, BTreeMap<i64, UnwrittenLetter>> {
        let mut letters = self.unwritten.lock();
        letters.retain(|_, letter| letter.is_under_way || self.is_delivered_in(letter.round));
        letters
    }

    /// One of them is with its writer: what is in hand need not be with the handler.
    pub(crate) fn has_letter_under_way(&self) -> bool {
        self.unwritten.lock().values().any(|letter| letter.is_under_way)
    }
}
