//! Handlers that do not get on with a record, noticed by looking from time to time: no clock is read for a record, and
//! it works while a handler blocks its thread.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix::prelude::*;
use kafka_troupe_proto::schemas::status::v1 as status;
use tokio::time::Instant;

use super::ConsumerSystem;
use crate::clock;
use crate::registry::{OwnedPartition, TopicRegistry};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// A partition of which a record has been in hand since the last look, at the same position.
struct Waiting {
    claim: Arc<OwnedPartition>,
    acked: i64,
    since: (Instant, SystemTime),
    /// For so long that it was told.
    is_stuck: bool,
}

/// What the looks have found.
#[derive(Default)]
pub(super) struct StuckHandlers(Vec<Waiting>);

impl StuckHandlers {
    fn look(&mut self, registry: &TopicRegistry, limit: Duration) {
        let now = (Instant::now(), clock::now());
        // whoever has the partition by now: the handler is with the record until it lets go of it
        self.0.retain_mut(|waiting| waiting.is_with_handler(now));
        for claim in registry.all().into_iter().chain(registry.unflushed()) {
            let is_known = self.0.iter().any(|waiting| Arc::ptr_eq(&waiting.claim, &claim));
            if !is_known && is_with_handler(&claim) {
                self.0.push(Waiting::new(claim, now));
            }
        }
        self.0.iter_mut().for_each(|waiting| waiting.note(now.0, limit));
    }

    /// Those that are stuck now.
    pub(super) fn describe(&self) -> Vec<status::StuckHandler> {
        let mut stuck: Vec<_> = self.0.iter().filter(|waiting| waiting.is_stuck).collect();
        stuck.sort_by_key(|waiting| (&waiting.claim.topic_partition, waiting.acked));
        let stuck = stuck.into_iter().map(|Waiting { claim, acked, since, .. }| status::StuckHandler {
            topic: claim.topic_partition.topic.to_string(),
            partition: claim.topic_partition.partition,
            offset: *acked,
            since_ms: clock::millis(since.1),
            thread: claim.thread.to_string(),
        });
        stuck.collect()
    }
}

/// A handler that has given a record up is not kept by it: its dead letter is; nor by one that is tried again: others
/// are in hand beside it. Both are told as what they are.
fn is_with_handler(claim: &OwnedPartition) -> bool {
    let is_retried = || claim.retried().is_some_and(|retried| retried.offset == claim.acked());
    claim.is_in_hand() && !claim.has_letter_under_way() && !is_retried()
}

impl Waiting {
    fn new(claim: Arc<OwnedPartition>, since: (Instant, SystemTime)) -> Self {
        let acked = claim.acked();
        Self { claim, acked, since, is_stuck: false }
    }

    /// Whether a record still is, and since now if it is another.
    fn is_with_handler(&mut self, now: (Instant, SystemTime)) -> bool {
        let (is_with_handler, has_moved) = (is_with_handler(&self.claim), self.claim.acked() != self.acked);
        if !is_with_handler || has_moved {
            self.moved_on();
            *self = Self::new(Arc::clone(&self.claim), now);
        }
        is_with_handler
    }

    fn note(&mut self, now: Instant, limit: Duration) {
        if !self.is_stuck && now - self.since.0 >= limit {
            self.is_stuck = true;
            let Self { claim, acked, .. } = self;
            tracing::warn!(partition = %claim.topic_partition, offset = *acked, thread = %claim.thread, ?limit, why = "troupe.handler.stuck.ms", "its handler does not get on with this record");
        }
    }

    fn moved_on(&self) {
        if self.is_stuck {
            let Self { claim, acked, since: (since, _), .. } = self;
            tracing::info!(partition = %claim.topic_partition, offset = *acked, after = ?since.elapsed(), "its handler has got on");
        }
    }
}

impl ConsumerSystem {
    pub(super) fn look_for_stuck_handlers(&self, ctx: &mut Context<Self>) {
        let limit = self.parts.config.handler_stuck;
        if !limit.is_zero() {
            ctx.run_interval(LOOK, move |this, _| this.stuck.look(&this.parts.registry, limit));
        }
    }
}
