//! Makes positions: asks a leader for an end of the log, and has the committer store it before anything is fetched.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler};
use futures_util::future::{BoxFuture, join_all};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::OffsetReset;
use kafka_troupe_proto::kafka::error_code::Disposition;
use kafka_troupe_proto::kafka::list_offsets::{
    EARLIEST, LATEST, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, ListedOffset,
};

use super::placements::Positionless;
use super::{BrokerAddress, FetchSettings};
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};
use crate::offset_committer::{CommitError, CommitReset};
use crate::registry::OwnedPartition;
use crate::supervise::Slot;

/// Where [`CommitReset`] goes: to the committer, whichever life it is in.
#[derive(Clone)]
pub struct ResetStore(Arc<dyn Fn(CommitReset) -> BoxFuture<'static, Result<(), CommitError>> + Send + Sync>);

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

/// A position that is stored.
pub(super) struct NewPosition {
    pub(super) offset: i64,
    pub(super) rule: ResetRule,
}

/// A claim, what is asked for it, and why.
struct Wanted {
    partition: Arc<OwnedPartition>,
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
    match list_offsets(&broker, &settings.connect, &wanted).await {
        Ok(response) => {
            let listed = by_partition(response);
            let stored = wanted.into_iter().map(|wanted| {
                let key = &wanted.partition.topic_partition;
                let offset = judge(listed.get(key));
                keep(&store, wanted, offset)
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
        let rule = reset_rule(settings, partition.appeared, out_of_range);
        match end_of_log(rule.reset) {
            Some(time) => wanted.push(Wanted { partition, time, rule }),
            None => {
                let why = format!("{rule} forbids to make a position in place of {}", partition.fetched());
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

async fn list_offsets(
    broker: &BrokerAddress,
    options: &ConnectOptions,
    wanted: &[Wanted],
) -> Result<ListOffsetsResponse, ConnectionError> {
    let mut topics: BTreeMap<&Arc<str>, Vec<(i32, i64)>> = BTreeMap::new();
    for Wanted { partition, time, .. } in wanted {
        let key = &partition.topic_partition;
        topics.entry(&key.topic).or_default().push((key.partition, *time));
    }
    let topics = topics
        .into_iter()
        .map(|(topic, partitions)| ListOffsetsTopic { topic: Arc::clone(topic), partitions });
    let request = ListOffsetsRequest { read_committed: false, topics: topics.collect() };
    let mut connection = BrokerConnection::connect(&broker.host, broker.port, options.clone()).await?;
    connection.call(&request).await
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
async fn keep(store: &ResetStore, wanted: Wanted, offset: Result<i64, (Disposition, String)>) -> Resolution {
    let Wanted { partition, rule, .. } = wanted;
    let outcome = match offset {
        Ok(_) if partition.is_closed() => Err((Disposition::Retry, "given up meanwhile".to_owned())),
        Ok(offset) => {
            let stored = (store.0)(CommitReset { partition: Arc::clone(&partition), offset }).await;
            let failed =
                |error: CommitError| (Disposition::Retry, format!("store position {offset}: {error}"));
            stored.map(|()| NewPosition { offset, rule }).map_err(failed)
        }
        Err(why) => Err(why),
    };
    Resolution { partition, outcome }
}

impl fmt::Display for ResetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.why, self.reset)
    }
}

#[cfg(test)]
#[path = "positions_tests.rs"]
mod tests;
