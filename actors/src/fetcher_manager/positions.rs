//! Makes positions: asks a leader for an end of the log, and has the committer store it before anything is fetched.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler};
use futures_util::future::{BoxFuture, join_all};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::OffsetReset;
use kafka_troupe_proto::kafka::error_code::Disposition;
use kafka_troupe_proto::kafka::list_offsets::{
    EARLIEST, LATEST, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, ListedOffset,
};
use tokio::time::timeout;

use super::placements::Positionless;
use super::{BrokerAddress, FetchSettings};
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};
use crate::offset_committer::{CommitError, CommitReset};
use crate::registry::OwnedPartition;
use crate::supervise::Slot;

/// How long a number is waited for that is only told.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where [`CommitReset`] goes: to the committer, whichever life it is in.
#[derive(Clone)]
pub struct ResetStore(Arc<dyn Fn(CommitReset) -> BoxFuture<'static, Result<i64, CommitError>> + Send + Sync>);

impl ResetStore {
    /// The actor in a slot.
    pub fn slot<A>(slot: Slot<A>) -> Self
    where
        A: Handler<CommitReset>,
        A::Context: ToEnvelope<A, CommitReset>,
    {
        Self(Arc::new(move |reset| {
            let answer = slot.send(reset);
            Box::pin(async move { answer.await.unwrap_or(Err(CommitError::NotRunning)) })
        }))
    }
}

impl<A> From<actix::Addr<A>> for ResetStore
where
    A: Actor + Handler<CommitReset>,
    A::Context: ToEnvelope<A, CommitReset>,
{
    fn from(addr: actix::Addr<A>) -> Self {
        let slot = Slot::default();
        slot.set(addr);
        Self::slot(slot)
    }
}

/// Which property decides, and so which end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResetRule {
    pub(super) reset: OffsetReset,
    pub(super) why: &'static str,
}

/// A partition that has an offset that is not in the log, or none, goes by `auto.offset.reset`; one without that
/// appeared while the group was running goes by `troupe.new.partitions.reset`, so that nothing is passed over.
pub(super) fn reset_rule(settings: &FetchSettings, appeared: bool, out_of_range: bool) -> ResetRule {
    match (out_of_range, appeared) {
        (true, _) => {
            ResetRule { reset: settings.offset_reset, why: "offset out of range: auto.offset.reset" }
        }
        (false, true) => ResetRule {
            reset: settings.new_partitions_reset,
            why: "no offset of a new partition: troupe.new.partitions.reset",
        },
        (false, false) => ResetRule { reset: settings.offset_reset, why: "no offset: auto.offset.reset" },
    }
}

/// A claim and how making its position came out.
pub(super) struct Resolution {
    pub(super) partition: Arc<OwnedPartition>,
    pub(super) outcome: Result<NewPosition, (Disposition, String)>,
}

/// A position that is stored, and the partition's.
pub(super) struct NewPosition {
    pub(super) old: i64,
    pub(super) offset: i64,
    pub(super) rule: ResetRule,
    /// Offsets of the log that are passed over for good, if that is known: at the end only, and not where the old
    /// position had passed them.
    pub(super) skipped: Option<i64>,
}

/// A claim, what is asked for it, and why.
struct Wanted {
    partition: Arc<OwnedPartition>,
    /// Its position, which is none or not in the log.
    old: i64,
    time: i64,
    rule: ResetRule,
}

/// Makes the positions of partitions that one broker leads.
pub(super) async fn resolve(
    broker: BrokerAddress,
    settings: Arc<FetchSettings>,
    store: ResetStore,
    positionless: Vec<Positionless>,
) -> Vec<Resolution> {
    let (wanted, mut done) = sort_out(&settings, positionless);
    if wanted.is_empty() {
        return done;
    }
    match list_ends(&broker, &settings.connect, &wanted).await {
        Ok(Ends { asked, begins }) => {
            let stored = wanted.into_iter().map(|wanted| {
                let key = &wanted.partition.topic_partition;
                let offset = judge(asked.get(key));
                let begin = begins.get(key).and_then(|listed| listed.offset);
                keep(&store, wanted, offset, begin)
            });
            done.extend(join_all(stored).await);
        }
        Err(error) => done.extend(wanted.into_iter().map(|wanted| Resolution {
            outcome: Err((Disposition::FindLeader, error.to_string())),
            partition: wanted.partition,
        })),
    }
    done
}

/// Those to ask for, and those that may not be reset, now or ever.
fn sort_out(settings: &FetchSettings, positionless: Vec<Positionless>) -> (Vec<Wanted>, Vec<Resolution>) {
    let (mut wanted, mut refused) = (Vec::new(), Vec::new());
    for Positionless { partition, out_of_range } in positionless {
        // a new position is stored: before what was fetched is handled, a crash would pass that over
        if partition.has_unhandled() {
            let why = format!("no new position before what was fetched is handled: at {}", partition.acked());
            refused.push(Resolution { partition, outcome: Err((Disposition::Retry, why)) });
            continue;
        }
        let old = partition.fetched();
        let rule = reset_rule(settings, partition.appeared, out_of_range);
        match end_of_log(rule.reset) {
            Some(time) => wanted.push(Wanted { partition, old, time, rule }),
            None => {
                let why = format!("{rule} forbids to make a position in place of {old}");
                refused.push(Resolution { partition, outcome: Err((Disposition::Fatal, why)) });
            }
        }
    }
    (wanted, refused)
}

fn end_of_log(reset: OffsetReset) -> Option<i64> {
    match reset {
        OffsetReset::Smallest => Some(EARLIEST),
        OffsetReset::Largest => Some(LATEST),
        _ => None,
    }
}

/// What a broker says of the ends of its logs.
struct Ends {
    /// The end that was asked for.
    asked: BTreeMap<TopicPartition, ListedOffset>,
    /// The beginning, where the other end was asked for: to tell how much is passed over.
    begins: BTreeMap<TopicPartition, ListedOffset>,
}

async fn list_ends(
    broker: &BrokerAddress,
    options: &ConnectOptions,
    wanted: &[Wanted],
) -> Result<Ends, ConnectionError> {
    let mut connection = BrokerConnection::connect(&broker.host, broker.port, options.clone()).await?;
    let key = |wanted: &Wanted| wanted.partition.topic_partition.clone();
    let asked = wanted.iter().map(|wanted| (key(wanted), wanted.time));
    let asked = list_offsets(&mut connection, asked).await?;
    let at_end = wanted.iter().filter(|wanted| wanted.time == LATEST);
    let begins: Vec<_> = at_end.map(|wanted| (key(wanted), EARLIEST)).collect();
    // only told, so a position does not depend on it
    let begins = match begins.is_empty() {
        true => BTreeMap::new(),
        false => match timeout(PATIENCE, list_offsets(&mut connection, begins)).await {
            Ok(Ok(begins)) => begins,
            _ => BTreeMap::new(),
        },
    };
    Ok(Ends { asked, begins })
}

async fn list_offsets(
    connection: &mut BrokerConnection,
    wanted: impl IntoIterator<Item = (TopicPartition, i64)>,
) -> Result<BTreeMap<TopicPartition, ListedOffset>, ConnectionError> {
    let mut topics: BTreeMap<Arc<str>, Vec<(i32, i64)>> = BTreeMap::new();
    for (key, time) in wanted {
        topics.entry(key.topic).or_default().push((key.partition, time));
    }
    let topics = topics.into_iter().map(|(topic, partitions)| ListOffsetsTopic { topic, partitions });
    let request = ListOffsetsRequest { read_committed: false, topics: topics.collect() };
    Ok(by_partition(connection.call(&request).await?))
}

fn by_partition(response: ListOffsetsResponse) -> BTreeMap<TopicPartition, ListedOffset> {
    let topics = response.topics.into_iter();
    let listed = topics.flat_map(|topic| {
        let name = topic.topic;
        topic
            .partitions
            .into_iter()
            .map(move |listed| (TopicPartition::new(Arc::clone(&name), listed.partition), listed))
    });
    listed.collect()
}

fn judge(listed: Option<&ListedOffset>) -> Result<i64, (Disposition, String)> {
    let listed = listed.ok_or((Disposition::Retry, "ListOffsets: the broker left it out".to_owned()))?;
    listed.error.ok().map_err(|error| (error.disposition(), format!("ListOffsets: {error}")))?;
    listed.offset.ok_or((Disposition::Retry, "ListOffsets: the broker named no offset".to_owned()))
}

/// Has a position stored.
async fn keep(
    store: &ResetStore,
    wanted: Wanted,
    offset: Result<i64, (Disposition, String)>,
    begin: Option<i64>,
) -> Resolution {
    let Wanted { partition, old, rule, .. } = wanted;
    let outcome = match offset {
        Ok(_) if partition.is_closed() => Err((Disposition::Retry, "given up meanwhile".to_owned())),
        Ok(offset) => {
            let reset = CommitReset { partition: Arc::clone(&partition), instead_of: old, offset };
            let stored = (store.0)(reset).await;
            let failed =
                |error: CommitError| (Disposition::Retry, format!("store position {offset}: {error}"));
            let skipped = |offset| begin.map(|begin| passed_over(old, begin, offset));
            stored.map(|offset| NewPosition { old, offset, rule, skipped: skipped(offset) }).map_err(failed)
        }
        Err(why) => Err(why),
    };
    Resolution { partition, outcome }
}

/// How many offsets nobody will be given: from where the log begins, or an old position stood, to the new one.
fn passed_over(old: i64, begin: i64, new: i64) -> i64 {
    (new - begin.max(old)).max(0)
}

impl fmt::Display for ResetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.why, self.reset)
    }
}

#[cfg(test)]
#[path = "positions_tests.rs"]
mod tests;
