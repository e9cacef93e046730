//! What becomes of a record that its handler could not handle, or that could not be decoded.
//!
//! ```text
//! failed, for the n-th time ──▶ n <= retries: the same record again, after a pause that doubles
//!                           └─▶ then: its partition stops, its stream stops, it is skipped, or a dead letter
//! undecodable ─────────────────▶ `undecodable`, or `then`: a decoder would say the same again
//! ```

use std::sync::Arc;
use std::time::Duration;

/// The pause before the first retry, where none is given.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause between two retries, where none is given.
const MOST: Duration = Duration::from_secs(10);
/// How often a record is retried, where nothing else is said: about three quarters of a minute in all.
const RETRIES: u32 = 10;

/// What becomes of a record when its retries are used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Then {
    /// Its partition is handed over no further; the others of its stream go on. It stays owned, nothing is
    /// acknowledged, and the record comes again with a resume, a seek, or the next claim. The default.
    #[default]
    StopPartition,
    /// The same, for all partitions of its stream, also for those that it is given later.
    StopStream,
    /// It is counted and reported, and acknowledged: it is not handled again.
    Skip,
    /// It is written to this topic, with its coordinates and the reason, and acknowledged once that is answered.
    DeadLetter(Arc<str>),
}

/// What to do about one failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The same record again, after this.
    RetryAfter(Duration),
    /// Nothing more of its partition.
    StopPartition,
    /// Nothing more of its stream.
    StopStream,
    /// Report it and go on after it.
    Skip,
    /// Write it to this topic, then go on after it.
    DeadLetter(Arc<str>),
}

impl From<&Then> for Decision {
    fn from(then: &Then) -> Self {
        match then {
            Then::StopPartition => Self::StopPartition,
            Then::StopStream => Self::StopStream,
            Then::Skip => Self::Skip,
            Then::DeadLetter(topic) => Self::DeadLetter(Arc::clone(topic)),
        }
    }
}

/// How often a record that failed is handled again, with which pauses, and what becomes of it then.
///
/// The default retries 10 times, after 100 ms, doubling up to 10 s, and then stops the partition: no record is passed
/// over unless the policy says so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailurePolicy {
    /// None: without end.
    retries: Option<u32>,
    first: Duration,
    most: Duration,
    then: Then,
    undecodable: Option<Then>,
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self::retry(RETRIES)
    }
}

impl FailurePolicy {
    /// A record that failed is handled again up to so many times; with 0, `then` follows at once.
    pub fn retry(times: u32) -> Self {
        Self { retries: Some(times), first: FIRST, most: MOST, then: Then::default(), undecodable: None }
    }

    /// A record that failed is handled again until it is done. One that cannot be decoded still falls under
    /// [`undecodable`](Self::undecodable).
    pub fn retry_forever() -> Self {
        Self { retries: None, ..Self::retry(0) }
    }

    /// The pause before the first retry (100 ms), which doubles with each up to `most` (10 s). Without pauses, a record
    /// that always fails keeps its thread busy.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        (self.first, self.most) = (first, most);
        self
    }

    /// What becomes of a record when its retries are used up (its partition stops).
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// What becomes of a record that cannot be decoded, which is not retried (the same as [`then`](Self::then)).
    pub fn undecodable(mut self, then: Then) -> Self {
        self.undecodable = Some(then);
        self
    }

    /// What to do about a record that has failed so many times in a row, this one included.
    pub fn decide(&self, failures: u32, undecodable: bool) -> Decision {
        if undecodable {
            return self.undecodable.as_ref().unwrap_or(&self.then).into();
        }
        match self.retries {
            Some(times) if failures > times => (&self.then).into(),
            _ => Decision::RetryAfter(self.pause_after(failures)),
        }
    }

    /// The pause after the n-th failure in a row: also between two tries to write a dead letter.
    pub fn pause_after(&self, failures: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.most)
    }

    /// The topics to which it may write dead letters; a topic may come twice.
    pub fn dead_letter_topics(&self) -> impl Iterator<Item = &Arc<str>> {
        [Some(&self.then), self.undecodable.as_ref()].into_iter().flatten().filter_map(|then| match then {
            Then::DeadLetter(topic) => Some(topic),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Decision {
        Decision::RetryAfter(Duration::from_millis(ms))
    }

    #[test]
    fn a_record_is_retried_as_often_as_said_with_pauses_that_double_and_are_bounded() {
        let policy = FailurePolicy::retry(4)
            .backoff(Duration::from_millis(10), Duration::from_millis(45))
            .then(Then::Skip);
        let decisions: Vec<_> = (1..=6).map(|failures| policy.decide(failures, false)).collect();
        assert_eq!(decisions, [ms(10), ms(20), ms(40), ms(45), Decision::Skip, Decision::Skip]);
        assert_eq!(FailurePolicy::retry(0).decide(1, false), Decision::StopPartition);
    }

    #[test]
    fn by_default_nothing_is_passed_over() {
        let policy = FailurePolicy::default();
        let pauses: Duration = (1..=10)
            .map(|failures| match policy.decide(failures, false) {
                Decision::RetryAfter(pause) => pause,
                other => panic!("{other:?} after {failures}"),
            })
            .sum();
        assert_eq!(pauses, Duration::from_millis(42_700));
        assert_eq!(policy.decide(11, false), Decision::StopPartition);
        assert_eq!(policy.decide(1, true), Decision::StopPartition);
        assert_eq!(policy.dead_letter_topics().count(), 0);
    }

    #[test]
    fn without_end_is_without_end() {
        let policy = FailurePolicy::retry_forever().then(Then::Skip);
        assert_eq!(policy.decide(u32::MAX, false), ms(10_000));
        let odd = policy.backoff(Duration::MAX, Duration::MAX);
        assert_eq!(odd.decide(u32::MAX, false), Decision::RetryAfter(Duration::MAX));
        assert_eq!(odd.pause_after(0), Duration::MAX);
        assert_eq!(odd.decide(1, true), Decision::Skip, "the decoder would say the same again");
    }

    #[test]
    fn what_cannot_be_decoded_is_not_retried_and_has_its_own_end() {
        let policy = FailurePolicy::retry(3).undecodable(Then::DeadLetter("dead".into()));
        assert_eq!(policy.decide(1, true), Decision::DeadLetter("dead".into()));
        assert_eq!(policy.decide(4, false), Decision::StopPartition);
        let both = policy.then(Then::DeadLetter("other".into()));
        assert_eq!(both.decide(4, false), Decision::DeadLetter("other".into()));
        assert_eq!(both.dead_letter_topics().map(|topic| &**topic).collect::<Vec<_>>(), ["other", "dead"]);
        assert_eq!(policy_stopping_the_stream().decide(1, false), Decision::StopStream);
    }

    fn policy_stopping_the_stream() -> FailurePolicy {
        FailurePolicy::retry(0).then(Then::StopStream)
    }
}
