//! Which partitions the next fetch asks for, and what its response means: no sockets, no clock.
//!
//! Before Fetch 3 a response has no limit, so only some partitions are asked for at a time. Then who was asked and had
//! nothing must go to the back of the rotation too: the first would be asked for ever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::fetch::{FetchPartition, FetchedPartition};
use kafka_troupe_proto::kafka::records;

use super::budget::{Asked, Budget};
use crate::fetcher_manager::{Assigned, FailedPartition, FetchSettings};
use crate::registry::OwnedPartition;
use crate::stream_queue::{Credit, FetchedChunk};

/// How long a broker may wait for data while a partition is left out for lack of room: an idle one must not delay
/// one that gets room again. Twice as long each time that the same streams are full, for one that stays full must not
/// make us ask for nothing.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// One partition in the rotation.
struct Turn {
    assigned: Assigned,
    /// This broker only follows its leader: it may not know what the leader knows.
    follows: bool,
    /// Its place in the next request: a broker fills a response from the front, so who got data goes to the back.
    order: u64,
    /// The next offset to ask for. It begins at the claim's [`fetched`](crate::registry::OwnedPartition::fetched)
    /// offset, which follows as the stream takes the chunks in.
    next: i64,
    /// Bytes to ask for in place of `fetch.message.max.bytes`, until what is larger has come.
    grown: Option<i32>,
    /// The request in flight asks for it. Not so for a claim that was put in since: the answer to its predecessor
    /// is not its own.
    asked: bool,
}

/// The partitions of one fetcher.
#[derive(Default)]
pub(super) struct Rotation {
    turns: BTreeMap<TopicPartition, Turn>,
    next_order: u64,
    budget: Arc<Budget>,
    full: FullStreams,
}

/// Those that had no room when the last request was made.
#[derive(Default)]
struct FullStreams {
    streams: Vec<Arc<Credit>>,
    wait: Duration,
}

impl FullStreams {
    /// How long the broker may wait now that these are full.
    fn wait(&mut self, full: Vec<Arc<Credit>>) -> Duration {
        let are_same = full.iter().map(Arc::as_ptr).eq(self.streams.iter().map(Arc::as_ptr));
        self.wait = if are_same { self.wait.saturating_mul(2) } else { SHORT_WAIT };
        self.streams = full;
        if self.streams.is_empty() { Duration::MAX } else { self.wait }
    }
}

impl Turn {
    /// A stream that has ended would swallow whatever is fetched; the next begins again where it stood. So does one
    /// that cannot read on.
    fn has_taker(&self) -> bool {
        let partition = &self.assigned.partition;
        !partition.is_closed() && !partition.is_halted() && self.assigned.stream.connected()
    }

    fn max_bytes(&self, settings: &FetchSettings) -> i32 {
        self.grown.unwrap_or(settings.partition_max_bytes)
    }

    fn ask(&mut self, settings: &FetchSettings) -> (TopicPartition, FetchPartition) {
        self.asked = true;
        let partition = &self.assigned.partition;
        let asked = FetchPartition {
            partition: partition.topic_partition.partition,
            leader_epoch: partition.leader_epoch(),
            offset: self.next,
            max_bytes: self.max_bytes(settings),
        };
        (partition.topic_partition.clone(), asked)
    }

    /// The first `bytes` for the stream, which end before `next_offset`: there it goes on.
    fn chunk(
        &mut self,
        fetched: FetchedPartition,
        bytes: usize,
        next_offset: i64,
        leader_epoch: i32,
    ) -> (Recipient<FetchedChunk>, FetchedChunk) {
        self.grown = None;
        let asked = std::mem::replace(&mut self.next, next_offset);
        let Assigned { partition, stream } = self.assigned.clone();
        if leader_epoch >= 0 {
            partition.set_last_epoch(leader_epoch);
        }
        let records = fetched.records.slice(..bytes);
        (stream, FetchedChunk::new(partition, asked, next_offset, records, fetched.aborted))
    }
}

/// What to do next.
pub(super) enum Plan {
    /// Nothing is to be fetched.
    Rest,
    /// No stream has room: wait for one of these.
    Full(Vec<Arc<Credit>>),
    /// Ask for this.
    Ask(Wanted),
}

/// What the next fetch is to bring.
pub(super) struct Wanted {
    /// How long the broker may wait for data.
    pub(super) wait: Duration,
    /// Bytes of the whole response, as long as they are on their way.
    pub(super) asked: Asked,
    /// In this order.
    pub(super) partitions: Vec<(TopicPartition, FetchPartition)>,
}

/// What a response brought.
#[derive(Default)]
pub(super) struct Harvest {
    /// In the order of the response.
    pub(super) chunks: Vec<(Recipient<FetchedChunk>, FetchedChunk)>,
    /// Taken out of the rotation.
    pub(super) failed: Vec<FailedPartition>,
    /// Taken out, since their next batch is larger than may be asked for.
    pub(super) oversize: Vec<FailedPartition>,
    /// Taken out: to be read from this broker, a replica in our rack.
    pub(super) moved: Vec<(Arc<OwnedPartition>, i32)>,
    /// Of record sets, with cut-off tails.
    pub(super) bytes: usize,
}

impl Rotation {
    /// An empty one.
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Puts a partition at the end, in place of an earlier claim. `follows`: the broker is not its leader.
    pub(super) fn add(&mut self, assigned: Assigned, follows: bool) {
        let key = assigned.partition.topic_partition.clone();
        let order = self.take_order();
        let next = assigned.partition.fetched();
        self.turns.insert(key, Turn { assigned, follows, order, next, grown: None, asked: false });
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

    /// Decides the next request. `limits_whole`: the broker keeps to a limit of the whole response (Fetch 3); else
    /// only so many partitions are asked for as fit in, in turn.
    pub(super) fn plan(&mut self, settings: &FetchSettings, limits_whole: bool) -> Plan {
        self.turns.values_mut().for_each(|turn| turn.asked = false);
        let (mut ready, full): (Vec<_>, Vec<_>) = self
            .turns
            .values_mut()
            .filter(|turn| turn.has_taker())
            .partition(|turn| turn.assigned.partition.credit.has_room());
        // what is not asked for does not fail either
        full.iter().for_each(|turn| turn.assigned.partition.set_fetched_well());
        if ready.is_empty() {
            let credits = distinct(full.iter().map(|turn| &turn.assigned.partition.credit));
            return if credits.is_empty() { Plan::Rest } else { Plan::Full(credits) };
        }
        let full = distinct(full.iter().map(|turn| &turn.assigned.partition.credit));
        let wait_while_full = self.full.wait(full);
        let free = distinct(ready.iter().map(|turn| &turn.assigned.partition.credit));
        let most = usize::try_from(settings.response_max_bytes).unwrap_or_default();
        let asked = self.budget.ask(free, most);
        ready.sort_by_key(|turn| turn.order);
        let all = ready.len();
        if !limits_whole {
            ready.truncate(fitting(&ready, asked.max_bytes(), settings));
        }
        // one round over all takes as long as one request for all would
        let rounds = u32::try_from(all.div_ceil(ready.len())).unwrap_or(u32::MAX);
        let round = (settings.wait_max / rounds).max(SHORT_WAIT);
        let (last, rotates) = (self.next_order, all > ready.len());
        let partitions = ready.into_iter().zip(1..).map(|(turn, place)| {
            if rotates {
                turn.order = last + place;
            }
            turn.ask(settings)
        });
        let partitions: Vec<_> = partitions.collect();
        self.next_order += partitions.len() as u64;
        Plan::Ask(Wanted { wait: wait_while_full.min(round).min(settings.wait_max), asked, partitions })
    }

    /// Takes in a response; partitions that it leaves out have no news.
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
        harvest.bytes += fetched.records.len();
        let partition = Arc::clone(&turn.assigned.partition);
        match judge(turn.next, turn.follows, &fetched) {
            Verdict::Nothing => note_end(&partition, &fetched, settings),
            Verdict::Records { next_offset, bytes, leader_epoch } => {
                note_end(&partition, &fetched, settings);
                turn.order = order;
                harvest.chunks.push(turn.chunk(fetched, bytes, next_offset, leader_epoch));
            }
            Verdict::Oversize { size } => match grown(turn.max_bytes(settings), size, settings) {
                Some(grown) => turn.grown = Some(grown),
                None => {
                    let why = too_large(turn.next, size, settings);
                    harvest.oversize.push((partition, Disposition::Retry, why));
                    self.turns.remove(key);
                }
            },
            Verdict::ReadFrom(replica) => {
                harvest.moved.push((partition, replica));
                self.turns.remove(key);
            }
            Verdict::Failed(disposition, why) => {
                harvest.failed.push((partition, disposition, why));
                self.turns.remove(key);
            }
        }
    }

    fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }
}

/// How many of the first partitions a response is to hold that the broker does not limit.
fn fitting(ready: &[&mut Turn], max_bytes: i32, settings: &FetchSettings) -> usize {
    let mut room = max_bytes;
    let fits = |turn: &&&mut Turn| {
        room = room.saturating_sub(turn.max_bytes(settings));
        room >= 0
    };
    ready.iter().take_while(fits).count().max(1)
}

/// What to ask for in place of `asked` bytes, which did not hold a batch of `size`. None: more is not allowed, or would
/// not do.
fn grown(asked: i32, size: Option<usize>, settings: &FetchSettings) -> Option<i32> {
    let limit = settings.partition_max_bytes_limit;
    let wanted =
        size.map_or(asked.saturating_mul(2).min(limit), |size| i32::try_from(size).unwrap_or(i32::MAX));
    (asked < wanted && wanted <= limit).then_some(wanted)
}

fn too_large(offset: i64, size: Option<usize>, settings: &FetchSettings) -> String {
    let size = size.map_or("of unknown size".to_owned(), |size| format!("of {size} bytes"));
    format!(
        "the batch at offset {offset}, {size}, exceeds fetch.message.max.bytes ({}): raise it, or \
         troupe.fetch.message.max.bytes.limit ({})",
        settings.partition_max_bytes, settings.partition_max_bytes_limit
    )
}

/// Reading committed, what comes after the last stable offset is not to be had yet.
fn note_end(partition: &OwnedPartition, fetched: &FetchedPartition, settings: &FetchSettings) {
    partition.set_fetched_well();
    let stable = fetched.last_stable_offset.filter(|_| settings.read_committed());
    let end = stable.unwrap_or(fetched.high_watermark);
    if end >= 0 {
        partition.set_high_watermark(end);
    }
}

/// The streams' credits, each once.
fn distinct<'a>(credits: impl Iterator<Item = &'a Arc<Credit>>) -> Vec<Arc<Credit>> {
    let by_address: BTreeMap<_, _> = credits.map(|credit| (Arc::as_ptr(credit), credit)).collect();
    by_address.into_values().map(Arc::clone).collect()
}

/// What the answer for one partition means.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// No news.
    Nothing,
    /// Whole batches, and where to go on.
    Records { next_offset: i64, bytes: usize, leader_epoch: i32 },
    /// Not one whole batch (below Fetch 3); bytes of it, if its head is there.
    Oversize { size: Option<usize> },
    /// Another replica is nearer (KIP-392).
    ReadFrom(i32),
    /// Give it back.
    Failed(Disposition, String),
}

fn judge(asked: i64, follows: bool, fetched: &FetchedPartition) -> Verdict {
    if let Err(error) = fetched.error.ok() {
        return refused(asked, follows, error);
    }
    if fetched.records.is_empty() {
        return fetched.preferred_read_replica.map_or(Verdict::Nothing, Verdict::ReadFrom);
    }
    let extent = records::extent(&fetched.records);
    let retry = |why: String| Verdict::Failed(Disposition::Retry, format!("fetch at offset {asked}: {why}"));
    match (extent.next_offset, extent.error) {
        (Some(next_offset), _) if next_offset > asked => {
            let (bytes, leader_epoch) = (extent.complete_bytes, extent.leader_epoch);
            Verdict::Records { next_offset, bytes, leader_epoch }
        }
        (_, Some(error)) => retry(error.to_string()),
        (Some(next_offset), None) => retry(format!("the records end before offset {next_offset}")),
        (None, None) => Verdict::Oversize { size: extent.partial.and_then(|partial| partial.size) },
    }
}

fn refused(asked: i64, follows: bool, error: ErrorCode) -> Verdict {
    match error.disposition() {
        // it may only lag behind, or ahead
        Disposition::ResetOffset if follows => Verdict::Failed(
            Disposition::FindLeader,
            format!("fetch at offset {asked} from a follower: {error}; the leader is asked"),
        ),
        disposition => Verdict::Failed(disposition, format!("fetch at offset {asked}: {error}")),
    }
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
