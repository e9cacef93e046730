//! The span of a commit: from its turn until the stores have answered.

use std::fmt;
use std::sync::Arc;

use tracing::{Span, field};

use super::CommitOutcome;
use crate::registry::OwnedPartition;

/// A commit is its turn now. Of one that has nothing to commit there is none.
pub(super) fn committing(offsets: &[(i64, Arc<OwnedPartition>)], why: &str) -> Span {
    if offsets.is_empty() {
        return Span::none();
    }
    tracing::debug_span!(
        target: "kafka_troupe::commit",
        "commit",
        why,
        offsets = %Offsets(offsets),
        written = field::Empty,
        error = field::Empty,
    )
}

/// How many offsets were written, and the first error.
pub(super) fn committed(span: &Span, outcome: &CommitOutcome) {
    if span.is_disabled() {
        return;
    }
    let written = outcome.iter().filter(|(_, it)| it.as_ref().is_ok_and(|it| it.written)).count();
    span.record("written", written);
    if let Some(error) = outcome.iter().find_map(|(_, it)| it.as_ref().err()) {
        span.record("error", field::display(error));
    }
}

/// Each partition with the offset: `orders-0@42`.
struct Offsets<'a>(&'a [(i64, Arc<OwnedPartition>)]);

impl fmt::Display for Offsets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (offset, claim) in self.0 {
            write!(f, "{between}{}@{offset}", claim.topic_partition)?;
            between = ",";
        }
        Ok(())
    }
}
