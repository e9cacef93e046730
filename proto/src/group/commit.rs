//! The rules by which an offset node in ZooKeeper may be written (rule 10: fenced commits).
//!
//! An offset is written only with the version that was read after the claim. When somebody else wrote
//! meanwhile, the offset (value, version) is read first and the owner node THEN, and [`resolve`] decides.

use super::Owner;
use crate::group::SessionNumber;
use crate::zk::ConsumerThreadId;

/// What to do about an offset node that changed under us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Still ours: write this value with this version (never lower than what is stored).
    Write {
        /// Next offset to consume.
        value: i64,
        /// Version of the node that was read before the owner.
        version: i32,
    },
    /// The partition is somebody else's now: commit nothing, deliver nothing.
    Lost,
}

/// Decides on an offset node whose version is not the one we knew.
///
/// `stored` is its value and version, read *before* `owner`; `ours` is what we meant to commit.
pub fn resolve(
    stored: (Option<i64>, i32),
    owner: Option<&Owner>,
    session: SessionNumber,
    thread: &ConsumerThreadId,
    ours: i64,
) -> Resolution {
    let (value, version) = stored;
    match owner {
        Some(owner) if owner.is(session, thread) => {
            Resolution::Write { value: value.map_or(ours, |value| value.max(ours)), version }
        }
        _ => Resolution::Lost,
    }
}

/// Why an offset that somebody asked for is not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Offsets begin at 0.
    Negative,
    /// A larger one is stored.
    Backwards,
    /// It would pass over records that were not handed over yet.
    NotDelivered,
}

/// Whether an offset that somebody asked for may be committed, where `stored` is stored and `delivered` is the next to
/// hand over; either is negative when there is none.
///
/// # Errors
/// [`Refusal`]: why not.
pub fn may_commit(offset: i64, stored: i64, delivered: i64) -> Result<(), Refusal> {
    match offset {
        ..0 => Err(Refusal::Negative),
        _ if offset < stored => Err(Refusal::Backwards),
        _ if offset > delivered => Err(Refusal::NotDelivered),
        _ => Ok(()),
    }
}

/// What a commit of `offset` writes to an offset node that holds `stored` (negative when there is none): nothing when
/// it is not ahead, unless the node may hold a seek that is to be taken back (`takes_back`); never less than `stored`.
pub fn to_write(offset: i64, stored: i64, takes_back: bool) -> Option<i64> {
    let is_needed = offset >= 0 && (offset > stored || takes_back);
    // an explicit commit may be ahead, and is not what is taken back
    is_needed.then(|| offset.max(stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_committed_between_what_is_stored_and_what_was_delivered() {
        for (offset, stored, delivered, outcome) in [
            (-1, -1, 9, Err(Refusal::Negative)),
            (-2, 5, -1, Err(Refusal::Negative)),
            (4, 5, 9, Err(Refusal::Backwards)),
            (4, 5, -1, Err(Refusal::Backwards)),
            (5, 5, 9, Ok(())),
            (9, 5, 9, Ok(())),
            (0, -1, 0, Ok(())),
            (10, 5, 9, Err(Refusal::NotDelivered)),
            (0, -1, -1, Err(Refusal::NotDelivered)),
        ] {
            let at = format!("{offset} of {stored}..={delivered}");
            assert_eq!(may_commit(offset, stored, delivered), outcome, "{at}");
        }
    }

    #[test]
    fn only_what_is_ahead_is_written_unless_a_seek_is_taken_back() {
        for (offset, stored, takes_back, written) in [
            (-1, -1, false, None),
            (-1, 5, true, None),
            (0, -1, false, Some(0)),
            (6, 5, false, Some(6)),
            (5, 5, false, None),
            (4, 5, false, None),
            (5, 5, true, Some(5)),
            (4, 5, true, Some(5)),
            (6, 5, true, Some(6)),
        ] {
            let at = format!("{offset} over {stored}, takes back: {takes_back}");
            assert_eq!(to_write(offset, stored, takes_back), written, "{at}");
        }
    }

    fn owner(session: i64, thread: &str) -> Owner {
        Owner { session: SessionNumber(session), thread: thread.to_owned() }
    }

    #[test]
    fn an_owner_writes_the_larger_value() {
        let me = ConsumerThreadId::new("g_a", 0);
        let at = |stored| resolve((stored, 7), Some(&owner(5, "g_a-0")), SessionNumber(5), &me, 10);
        assert_eq!(at(Some(8)), Resolution::Write { value: 10, version: 7 });
        assert_eq!(at(Some(12)), Resolution::Write { value: 12, version: 7 });
        assert_eq!(at(None), Resolution::Write { value: 10, version: 7 });
    }

    #[test]
    fn anybody_else_has_lost_the_partition() {
        let me = ConsumerThreadId::new("g_a", 0);
        for other in [None, Some(owner(6, "g_a-0")), Some(owner(5, "g_b-0")), Some(owner(5, "g_a-1"))] {
            assert_eq!(resolve((Some(8), 7), other.as_ref(), SessionNumber(5), &me, 10), Resolution::Lost);
        }
    }
}
