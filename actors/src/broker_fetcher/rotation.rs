//! Which partitions the next fetch asks for, and what its response means: no sockets, no clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::fetch::{
    FetchPartition, FetchRequest, FetchTopic, FetchedPartition, NO_SESSION_EPOCH,
};
use kafka_troupe_proto::kafka::records;

use crate::fetcher_manager::{Assigned, FailedPartition, FetchSettings};
use crate::stream_queue::{Credit, FetchedChunk};

/// How long a broker may wait for data while a partition is left out for lack of room: an idle one must not delay
/// one that gets room again.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// One partition in the rotation.
struct Turn {
    assigned: Assigned,
    /// Its place in the next request: a broker fills a response from the front, so who got data goes to the back.
    order: u64,
    /// The next offset to ask for. It begins at the claim's [`fetched`](crate::registry::OwnedPartition::fetched)
    /// offset, which follows as the stream takes the chunks in.
    next: i64,
    /// The request in flight asks for it. Not so for a claim that was put in since: the answer to its predecessor
    /// is not its own.
    asked: bool,
}

/// The partitions of one fetcher.
#[derive(Default)]
pub(super) struct Rotation {
    turns: BTreeMap<TopicPartition, Turn>,
    next_order: u64,
}

impl Turn {
    /// A stream that has ended would swallow whatever is fetched; the next begins again where it stood.
    fn has_taker(&self) -> bool {
        !self.assigned.partition.is_closed() && self.assigned.stream.connected()
    }
}

/// What to do next.
pub(super) enum Plan {
    /// Nothing is to be fetched.
    Rest,
    /// No stream has room: wait for one of these.
    Full(Vec<Arc<Credit>>),
    /// Send this.
    Ask(FetchRequest),
}

/// What a response brought.
#[derive(Default)]
pub(super) struct Harvest {
    /// In the order of the response.
    pub(super) chunks: Vec<(Recipient<FetchedChunk>, FetchedChunk)>,
    /// Taken out of the rotation.
    pub(super) failed: Vec<FailedPartition>,
    /// Of record sets, with cut-off tails.
    pub(super) bytes: usize,
}

impl Rotation {
    /// Puts a partition at the end, in place of an earlier claim.
    pub(super) fn add(&mut self, assigned: Assigned) {
        let key = assigned.partition.topic_partition.clone();
        let order = self.take_order();
        let next = assigned.partition.fetched();
        self.turns.insert(key, Turn { assigned, order, next, asked: false });
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, partition: &TopicPartition) {
        self.turns.remove(partition);
    }

    /// Takes all out.
    pub(super) fn fail_all(&mut self, disposition: Disposition, why: &str) -> Vec<FailedPartition> {
        let turns = std::mem::take(&mut self.turns);
        turns.into_values().map(|turn| (turn.assigned.partition, disposition, why.to_owned())).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Decides the next request.
    pub(super) fn plan(&mut self, settings: &FetchSettings) -> Plan {
        let (mut ready, full): (Vec<_>, Vec<_>) = self
            .turns
            .values_mut()
            .filter(|turn| turn.has_taker())
            .partition(|turn| turn.assigned.partition.credit.has_room());
        if ready.is_empty() {
            let credits = distinct(full.iter().map(|turn| &turn.assigned.partition.credit));
            return if credits.is_empty() { Plan::Rest } else { Plan::Full(credits) };
        }
        let free = distinct(ready.iter().map(|turn| &turn.assigned.partition.credit));
        let free = free.iter().map(|credit| credit.free_bytes()).fold(0, usize::saturating_add);
        let wait = if full.is_empty() { settings.wait_max } else { settings.wait_max.min(SHORT_WAIT) };
        ready.sort_by_key(|turn| turn.order);
        Plan::Ask(FetchRequest {
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: settings.min_bytes,
            max_bytes: settings.response_max_bytes.min(i32::try_from(free).unwrap_or(i32::MAX)),
            read_committed: false,
            session_id: 0,
            session_epoch: NO_SESSION_EPOCH,
            topics: by_topic(ready, settings.partition_max_bytes),
            forgotten: Vec::new(),
            rack: Arc::from(""),
        })
    }

    /// Splits a response into chunks, and takes out what failed.
    pub(super) fn harvest(
        &mut self,
        answered: Vec<(TopicPartition, FetchedPartition)>,
        settings: &FetchSettings,
    ) -> Harvest {
        let mut harvest = Harvest::default();
        for (key, fetched) in answered {
            self.take(&key, fetched, settings, &mut harvest);
        }
        harvest
    }

    fn take(
        &mut self,
        key: &TopicPartition,
        fetched: FetchedPartition,
        settings: &FetchSettings,
        harvest: &mut Harvest,
    ) {
        let order = self.take_order();
        let Some(turn) = self.turns.get_mut(key) else { return };
        if !std::mem::take(&mut turn.asked) {
            return;
        }
        let (partition, asked) = (&turn.assigned.partition, turn.next);
        harvest.bytes += fetched.records.len();
        match judge(asked, fetched.error, &fetched.records, settings.partition_max_bytes) {
            Verdict::Nothing => note_end(partition, fetched.high_watermark),
            Verdict::Records { next_offset, bytes } => {
                note_end(partition, fetched.high_watermark);
                turn.order = order;
                turn.next = next_offset;
                let records = fetched.records.slice(..bytes);
                let chunk = FetchedChunk::new(Arc::clone(partition), asked, next_offset, records);
                harvest.chunks.push((turn.assigned.stream.clone(), chunk));
            }
            Verdict::Failed(disposition, why) => {
                harvest.failed.push((Arc::clone(partition), disposition, why));
                self.turns.remove(key);
            }
        }
    }

    fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }
}

fn note_end(partition: &crate::registry::OwnedPartition, high_watermark: i64) {
    if high_watermark >= 0 {
        partition.set_high_watermark(high_watermark);
    }
}

/// The streams' credits, each once.
fn distinct<'a>(credits: impl Iterator<Item = &'a Arc<Credit>>) -> Vec<Arc<Credit>> {
    let by_address: BTreeMap<_, _> = credits.map(|credit| (Arc::as_ptr(credit), credit)).collect();
    by_address.into_values().map(Arc::clone).collect()
}

/// The request's partitions in their order; a topic may come up more than once.
fn by_topic(turns: Vec<&mut Turn>, max_bytes: i32) -> Vec<FetchTopic> {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for turn in turns {
        let (offset, key) = (turn.next, &turn.assigned.partition.topic_partition);
        turn.asked = true;
        let partition = FetchPartition { partition: key.partition, leader_epoch: -1, offset, max_bytes };
        match topics.last_mut() {
            Some(last) if last.topic == key.topic => last.partitions.push(partition),
            _ => topics.push(FetchTopic { topic: Arc::clone(&key.topic), partitions: vec![partition] }),
        }
    }
    topics
}

/// What the answer for one partition means.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// No news.
    Nothing,
    /// Whole batches, and where to go on.
    Records { next_offset: i64, bytes: usize },
    /// Give it back.
    Failed(Disposition, String),
}

fn judge(asked: i64, error: ErrorCode, records: &Bytes, max_bytes: i32) -> Verdict {
    if let Err(error) = error.ok() {
        return Verdict::Failed(error.disposition(), format!("fetch at offset {asked}: {error}"));
    }
    if records.is_empty() {
        return Verdict::Nothing;
    }
    let extent = records::extent(records);
    match (extent.next_offset, extent.error) {
        (Some(next_offset), _) if next_offset > asked => {
            Verdict::Records { next_offset, bytes: extent.complete_bytes }
        }
        (_, Some(error)) => Verdict::Failed(Disposition::Retry, format!("fetch at offset {asked}: {error}")),
        (Some(next_offset), None) => {
            let why = format!("fetch at offset {asked}: the records end before offset {next_offset}");
            Verdict::Failed(Disposition::Retry, why)
        }
        (None, None) => Verdict::Failed(
            Disposition::Fatal,
            format!("the batch at offset {asked} exceeds fetch.message.max.bytes ({max_bytes}): raise it"),
        ),
    }
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
