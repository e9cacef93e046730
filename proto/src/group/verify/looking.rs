//! Looking at a group again and again, until it is as it should be or has had its time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Reason, ReasonKind, Verdict, verify};
use crate::schemas::group::v1::GroupView;

/// What looks at a group have shown so far. The time of each look is that since the first.
#[derive(Clone, Debug)]
pub struct Looking {
    /// How long members and owners may be wrong at a stretch: a rebalance.
    structure: Duration,
    /// How long it may take until each offset has moved that is behind, from the first look.
    offsets: Duration,
    /// The first look that told everything, else the last one.
    first: Option<GroupView>,
    /// Partitions that nothing was behind, or whose offset has moved, at one look at least: who gets new records later has
    /// not had its time to commit them.
    read: BTreeSet<(String, i32)>,
    wrong_since: Option<Duration>,
}

impl Looking {
    /// `structure`: how long members and owners may be wrong at a stretch; `offsets`: how long it may take from the first
    /// look until each offset has moved that is behind (longer than `auto.commit.interval.ms`).
    pub fn new(structure: Duration, offsets: Duration) -> Self {
        Self { structure, offsets, first: None, read: BTreeSet::new(), wrong_since: None }
    }

    /// What is wrong `now`, and how much longer to look for it to be mended; none when the verdict is the last.
    pub fn judge(&mut self, view: &GroupView, now: Duration) -> (Verdict, Option<Duration>) {
        if self.first.as_ref().is_none_or(|first| !first.errors.is_empty()) {
            self.first = Some(view.clone());
        }
        let mut verdict = verify(self.first.as_ref().unwrap_or(view), view);
        self.note_read(view, &verdict);
        verdict.reasons.retain(|reason| {
            reason.kind != ReasonKind::OffsetStuck || key(reason).is_none_or(|key| !self.read.contains(&key))
        });
        let until = match verdict.is_settled() {
            true => {
                self.wrong_since = None;
                self.offsets
            }
            false => *self.wrong_since.get_or_insert(now) + self.structure,
        };
        let left = until.checked_sub(now).filter(|left| !left.is_zero() && !verdict.is_good());
        (verdict, left)
    }

    fn note_read(&mut self, view: &GroupView, verdict: &Verdict) {
        let behind: BTreeSet<_> =
            verdict.reasons.iter().filter(|it| it.kind.waits_for_commit()).filter_map(key).collect();
        let told = view.partitions.iter().filter(|it| it.log_end.is_some());
        self.read.extend(
            told.map(|it| (it.topic.clone(), it.partition)).filter(|partition| !behind.contains(partition)),
        );
    }
}

fn key(reason: &Reason) -> Option<(String, i32)> {
    Some((reason.topic.clone()?, reason.partition?))
}
