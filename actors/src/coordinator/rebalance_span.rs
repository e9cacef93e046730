//! The span of a rebalance: from its first trigger to its outcome, with all that is logged in between.

use kafka_troupe_proto::schemas::rebalance::v1::RebalanceTrace;
use tracing::{Span, field};

/// It ends when this is dropped.
pub(super) struct RebalanceSpan(pub(super) Span);

/// A rebalance of this member begins.
pub(super) fn new(group: &str, consumer_id: &str, trace: &RebalanceTrace) -> RebalanceSpan {
    RebalanceSpan(tracing::info_span!(
        target: "kafka_troupe::rebalance",
        parent: None,
        "rebalance",
        group,
        consumer_id,
        generation = trace.generation,
        why = trace.reasons.join(","),
        kept = field::Empty,
        released = field::Empty,
        claimed = field::Empty,
        moved = field::Empty,
        waited_for = field::Empty,
        outcome = field::Empty,
        error = field::Empty,
    ))
}

impl RebalanceSpan {
    /// It was begun again before it settled.
    pub(super) fn begin(&self, trace: &RebalanceTrace) {
        self.0.record("generation", trace.generation).record("why", trace.reasons.join(","));
    }

    /// What it did, and how it ended.
    pub(super) fn end(&self, trace: &RebalanceTrace) {
        let outcome = trace.outcome().as_str_name().trim_start_matches("OUTCOME_").to_lowercase();
        self.0
            .record("kept", trace.kept)
            .record("released", trace.released)
            .record("claimed", trace.claimed)
            .record("moved", trace.moved)
            .record("outcome", outcome);
        let waited_for: Vec<_> = trace.waited_for.iter().filter_map(|it| it.partition.as_ref()).collect();
        if !waited_for.is_empty() {
            let names = waited_for.iter().map(|it| format!("{}-{}", it.topic, it.partition));
            self.0.record("waited_for", names.collect::<Vec<_>>().join(","));
        }
        if !trace.error.is_empty() {
            self.0.record("error", &*trace.error);
        }
    }
}
