//! Makes positions: asks a leader for an end of the log or a time in it, and has the committer store it before anything
//! is fetched.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler};
use futures_util::future::{BoxFuture, join_all};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::OffsetReset;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::list_offsets::ListedOffset;

use super::log_ends::{Ends, LeaderConnection};
use super::placements::{Doubt, InDoubt};
use super::reset_rule::{ResetRule, reset_rule};
use super::truncation::{self, EpochEnds, Verdict, epoch_ends, may_be_truncated};
use super::{BrokerAddress, FetchSettings};
use crate::broker_connection::ConnectionError;
use crate::clock;
use crate::offset_committer::{CommitError, CommitReset};
use crate::registry::{NO_EPOCH, NO_OFFSET, OwnedPartition};
use crate::supervise::Slot;

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

/// Why a position could not be made, and what is to be done.
type Failure = (Disposition, String);

/// A claim and how making its position, or looking at it, came out.
pub(super) struct Resolution {
    pub(super) partition: Arc<OwnedPartition>,
    pub(super) outcome: Result<Outcome, Failure>,
}

/// How it came out.
pub(super) enum Outcome {
    /// The position that it has is good.
    Good,
    /// It got this one.
    Made(NewPosition),
}

/// A position that is to be stored, or is, and then is the partition's.
pub(super) struct NewPosition {
    pub(super) old: i64,
    pub(super) offset: i64,
    pub(super) why: String,
    /// Offsets of the log that are passed over for good, if that is known: at the end only, and not where the old
    /// position had passed them.
    pub(super) skipped: Option<i64>,
    /// The log was truncated: so many records that we had read are not in it any more.
    pub(super) lost: Option<i64>,
    /// Of the last record before it, if that is known.
    epoch: i32,
}

/// A claim that is to be asked about.
struct Open {
    it: InDoubt,
    rule: ResetRule,
    /// In which topic of the name.
    topic: u64,
    /// What of its log was passed over already.
    seen: i64,
    /// What is asked for; none where a good position may stay, or no new one may be made.
    time: Option<i64>,
}

/// What the leader said.
struct Answers {
    epochs: EpochEnds,
    ends: Ends,
}

/// Makes the positions of partitions that one broker leads, or finds that they are good.
pub(super) async fn resolve(
    broker: BrokerAddress,
    settings: Arc<FetchSettings>,
    store: ResetStore,
    in_doubt: Vec<InDoubt>,
) -> Vec<Resolution> {
    let (open, mut done) = sort_out(&settings, in_doubt);
    if open.is_empty() {
        return done;
    }
    match ask(&broker, &settings, &open).await {
        Ok(answers) => {
            done.extend(join_all(open.into_iter().map(|open| settle(&store, open, &answers))).await);
        }
        Err(error) => done.extend(open.into_iter().map(|open| Resolution {
            outcome: Err((Disposition::FindLeader, error.to_string())),
            partition: open.it.partition,
        })),
    }
    done
}

/// Those to ask for, and those that may not be reset, now or ever.
fn sort_out(settings: &FetchSettings, in_doubt: Vec<InDoubt>) -> (Vec<Open>, Vec<Resolution>) {
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    for it in in_doubt {
        // before anything is asked
        let topic = it.partition.topic_number();
        let (partition, keeps) = (Arc::clone(&it.partition), it.doubt == Doubt::NewLeader);
        let seen = if it.doubt == Doubt::TopicRemade { NO_OFFSET } else { partition.fetched() };
        let rule = reset_rule(settings, partition.has_appeared(), it.doubt);
        let time = rule.time(clock::since_1970()).filter(|_| !keeps);
        let outcome = match unhandled(&partition) {
            // a position that may stay is looked at once it is known
            Some(why) if !keeps || partition.is_on_the_way() => Err((Disposition::Retry, why)),
            _ if time.is_none() && !may_be_truncated(&it) => Err(forbidden(rule, partition.fetched())),
            _ => {
                open.push(Open { it, rule, topic, seen, time });
                continue;
            }
        };
        refused.push(Resolution { partition, outcome });
    }
    (open, refused)
}

/// Why there is no new position now: it is stored, and before what was fetched is handled, a crash would pass that
/// over.
fn unhandled(partition: &OwnedPartition) -> Option<String> {
    // the same each time: what is not is logged
    let why = "no new position before what was fetched is handled";
    partition.has_unhandled().then(|| why.to_owned())
}

fn forbidden(rule: ResetRule, old: i64) -> Failure {
    (
        Disposition::Fatal,
        format!("{rule} forbids to make a position in place of {old}; seek, or set smallest or largest"),
    )
}

async fn ask(
    broker: &BrokerAddress,
    settings: &FetchSettings,
    open: &[Open],
) -> Result<Answers, ConnectionError> {
    let mut leader =
        LeaderConnection::connect(broker, settings.connect.clone(), settings.read_committed()).await?;
    let epochs = epoch_ends(&mut leader, open.iter().map(|open| &open.it)).await?;
    let wanted = open.iter().filter_map(|open| Some((open.it.partition.topic_partition.clone(), open.time?)));
    let ends = leader.list_ends(&wanted.collect::<Vec<_>>()).await?;
    Ok(Answers { epochs, ends })
}

/// Draws the conclusion, and has a new position stored.
async fn settle(store: &ResetStore, open: Open, answers: &Answers) -> Resolution {
    let partition = Arc::clone(&open.it.partition);
    let outcome = match conclude(&open, answers) {
        Ok(Outcome::Made(_)) if partition.is_closed() => {
            Err((Disposition::Retry, "given up meanwhile".to_owned()))
        }
        Ok(Outcome::Made(position)) => keep(store, &partition, open.topic, position).await.map(Outcome::Made),
        other => other,
    };
    Resolution { partition, outcome }
}

fn conclude(Open { it, rule, seen, time, .. }: &Open, answers: &Answers) -> Result<Outcome, Failure> {
    let (partition, key) = (&it.partition, &it.partition.topic_partition);
    let old = partition.fetched();
    match truncation::judge(partition, answers.epochs.get(key)) {
        Verdict::Failed(disposition, why) => return Err((disposition, why)),
        Verdict::Truncated { end, epoch } => return truncated(partition, *rule, end, epoch),
        Verdict::Good if it.doubt == Doubt::NewLeader => return Ok(Outcome::Good),
        Verdict::Good => {}
    }
    if time.is_none() {
        return Err(forbidden(*rule, old));
    }
    let offset = judge(answers.ends.asked.get(key), key, *rule)?;
    let begin = answers.ends.begins.get(key).and_then(|listed| listed.offset);
    let skipped = begin.map(|begin| passed_over(*seen, begin, offset));
    let position = NewPosition { old, offset, why: rule.to_string(), skipped, lost: None, epoch: NO_EPOCH };
    Ok(Outcome::Made(position))
}

/// What is left of a log that was truncated is gone on with where it goes on: nothing new is passed over.
fn truncated(partition: &OwnedPartition, rule: ResetRule, end: i64, epoch: i32) -> Result<Outcome, Failure> {
    let old = partition.fetched();
    let why =
        format!("the log was truncated at {end} by an unclean leader election, before our position {old}");
    if let Some(not_now) = unhandled(partition) {
        return Err((Disposition::Retry, format!("{why}: {not_now}")));
    }
    if rule.reset == OffsetReset::None {
        return Err((
            Disposition::Fatal,
            format!("{why}: auto.offset.reset=none forbids to go back; seek to {end} to go on there"),
        ));
    }
    Ok(Outcome::Made(NewPosition { old, offset: end, why, skipped: None, lost: Some(old - end), epoch }))
}

fn judge(listed: Option<&ListedOffset>, key: &TopicPartition, rule: ResetRule) -> Result<i64, Failure> {
    let listed = listed.ok_or((Disposition::Retry, "ListOffsets: the broker left it out".to_owned()))?;
    let failed = |error: ErrorCode| match error {
        ErrorCode::UnsupportedForMessageFormat => (error.disposition(), no_times(&key.topic, rule)),
        error => (error.disposition(), format!("ListOffsets: {error}")),
    };
    listed.error.ok().map_err(failed)?;
    listed.offset.ok_or((Disposition::Retry, "ListOffsets: the broker named no offset".to_owned()))
}

fn no_times(topic: &str, rule: ResetRule) -> String {
    format!(
        "topic {topic} has a message format before 0.10, without times, in which {rule} cannot be found: set \
         the property to smallest or largest, or the topic's message.format.version to 0.10.0 or later"
    )
}

/// Has a position stored.
async fn keep(
    store: &ResetStore,
    partition: &Arc<OwnedPartition>,
    topic: u64,
    position: NewPosition,
) -> Result<NewPosition, Failure> {
    let NewPosition { old, offset, .. } = position;
    let reset = CommitReset { partition: Arc::clone(partition), instead_of: old, topic, offset };
    let failed = |error: CommitError| (Disposition::Retry, format!("store position: {error}"));
    let stored = (store.0)(reset).await.map_err(failed)?;
    if position.lost.is_some() && stored > offset {
        // a chunk was on its way, or somebody else wrote: what was found is to be found again
        return Err((Disposition::Retry, format!("{}: at {stored} meanwhile", position.why)));
    }
    if stored == offset && position.epoch != NO_EPOCH {
        partition.set_last_epoch(position.epoch);
    }
    Ok(NewPosition { offset: stored, ..position })
}

/// How many offsets nobody will be given: from where the log begins, or an old position stood, to the new one.
fn passed_over(old: i64, begin: i64, new: i64) -> i64 {
    (new - begin.max(old)).max(0)
}

#[cfg(test)]
#[path = "positions_tests.rs"]
mod tests;
