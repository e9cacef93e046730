//! Logs and traces of rebalances.

use std::collections::VecDeque;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, Progress};
use kafka_troupe_proto::schemas::rebalance::v1::{Outcome, Partition, RebalanceTrace, WaitedFor};
use tokio::time::Instant;
use tracing::Span;

use super::rebalance_span::{self, RebalanceSpan};
use crate::clock;

/// How many past rebalances are kept.
const KEPT: usize = 32;

/// Past rebalances, the one under way, and what fails for too long.
#[derive(Default)]
pub(super) struct Traces {
    /// Group and consumer id.
    member: (String, String),
    past: VecDeque<RebalanceTrace>,
    current: Option<Current>,
    settled: u64,
    /// How long all that have ended took.
    took: Duration,
    /// Whole ownership has been missing for too long.
    unowned: Option<String>,
    /// What is owned has not started for as long.
    unstarted: Option<String>,
}

/// A rebalance under way.
struct Current {
    trace: RebalanceTrace,
    began: Instant,
    span: RebalanceSpan,
}

impl Traces {
    pub(super) fn new(group: &str, consumer_id: &str) -> Self {
        Self { member: (group.to_owned(), consumer_id.to_owned()), ..Self::default() }
    }

    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    pub(super) fn took(&self) -> Duration {
        self.took
    }

    pub(super) fn last(&self) -> Vec<RebalanceTrace> {
        self.past.iter().cloned().collect()
    }

    pub(super) fn failing(&self) -> Option<&str> {
        self.unowned.as_deref().or(self.unstarted.as_deref())
    }

    /// Something is owned, and has not started for as long as whole ownership may be missing.
    pub(super) fn start_is_missing(&mut self, generation: Generation, why: &str) {
        fail(&mut self.unstarted, generation, why, "a partition could not start for too long; still trying");
    }

    pub(super) fn no_start_is_missing(&mut self) {
        self.unstarted = None;
    }

    pub(super) fn note(&mut self, progress: &Progress) {
        if let Progress::Started { generation, reasons } = progress {
            self.begin(generation.0, reasons.iter().map(|reason| reason.as_str().to_owned()).collect());
        }
        let span = self.current.as_ref().map_or_else(Span::none, |current| current.span.0.clone());
        span.in_scope(|| self.tell(progress));
    }

    /// Inside the span of what is under way.
    fn tell(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { generation, reasons } => {
                let reasons: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
                tracing::info!(%generation, why = reasons.join(","), "rebalance begins");
            }
            Progress::Planned { generation, kept, released, claimed, moved } => {
                tracing::info!(%generation, kept, released, claimed, moved, "rebalance planned");
                self.with(|trace| {
                    (trace.kept, trace.released) = (count(*kept), count(*released));
                    (trace.claimed, trace.moved) = (count(*claimed), count(*moved));
                });
            }
            Progress::Waiting { generation, holders } => {
                tracing::info!(%generation, ?holders, "waiting for owners to let go");
                self.with(|trace| trace.waited_for = holders.iter().map(waited_for).collect());
            }
            Progress::Settled { generation, owned } => {
                tracing::info!(%generation, owned, "rebalance done");
                self.unowned = None;
                self.settled += 1;
                self.end(Outcome::Stable, "");
            }
            Progress::Failing { generation, why } => {
                let what = "whole ownership is missing for too long; still trying";
                fail(&mut self.unowned, *generation, why, what);
            }
            Progress::Lost { partitions, why } => {
                tracing::warn!(partitions = partitions.len(), why, "partitions lost");
                self.with(|trace| trace.error.clone_from(why));
            }
            Progress::Retrying { generation, why } => {
                tracing::warn!(%generation, why, "rebalance step failed; trying again after rebalance.backoff.ms");
                self.end(Outcome::BackingOff, why);
            }
            unknown => tracing::info!(?unknown, "rebalance"),
        }
    }

    /// A rebalance that was begun again before it settled goes on, with more reasons.
    fn begin(&mut self, generation: u64, reasons: Vec<String>) {
        match &mut self.current {
            Some(Current { trace, span, .. }) => {
                trace.generation = generation;
                trace.reasons.extend(reasons);
                trace.reasons.dedup();
                span.begin(trace);
            }
            None => {
                let started_ms = clock::millis(clock::now());
                let trace = RebalanceTrace { generation, started_ms, reasons, ..RebalanceTrace::default() };
                let (group, consumer_id) = &self.member;
                let span = rebalance_span::new(group, consumer_id, &trace);
                self.current = Some(Current { trace, began: Instant::now(), span });
            }
        }
    }

    fn with(&mut self, change: impl FnOnce(&mut RebalanceTrace)) {
        if let Some(Current { trace, .. }) = &mut self.current {
            change(trace);
        }
    }

    fn end(&mut self, outcome: Outcome, error: &str) {
        if let Some(Current { mut trace, began, span }) = self.current.take() {
            let took = began.elapsed();
            self.took += took;
            trace.duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            trace.set_outcome(outcome);
            error.clone_into(&mut trace.error);
            span.end(&trace);
            if self.past.len() == KEPT {
                self.past.pop_front();
            }
            self.past.push_back(trace);
        }
    }
}

/// Told once per spell; the last reason is kept.
fn fail(spell: &mut Option<String>, generation: Generation, why: &str, what: &str) {
    if spell.is_none() {
        tracing::error!(%generation, why, "{what}");
    }
    *spell = Some(why.to_owned());
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn waited_for((tp, holder): (&TopicPartition, &String)) -> WaitedFor {
    let partition = Partition { topic: tp.topic.to_string(), partition: tp.partition };
    WaitedFor { partition: Some(partition), holder: holder.clone() }
}
