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

#[cfg(test)]
mod tests {
    use super::*;

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
