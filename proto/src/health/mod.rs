//! How a member does, decided from its [`StatusSnapshot`]: for routes of liveness and readiness, and for people.
//!
//! # What makes it what
//! The first of these that holds counts; `why` has all that is wrong.
//!
//! | health | when | what `why` names |
//! |---|---|---|
//! | leaving | it is shutting down, whatever else is wrong | |
//! | failing | whole ownership is missing, or a partition cannot start, for longer than `rebalance.max.retries` x `rebalance.backoff.ms` | what the coordinator waits for: partition and holder, or path |
//! | | a partition cannot be fetched for [`GRACE`]: its broker is not reachable, it has no leader, it failed for good | topic, partition, since when, the broker's or the network's error |
//! | | a record cannot be read, and so nothing past it | topic, partition, offset, where to seek |
//! | | a failure policy has stopped a partition, or a stream | topic, partition, offset, the handler's error |
//! | | a handler ends as soon as it is made, or cannot be made, for [`GRACE`] | stream, how often, the panic |
//! | | a handler has a record in hand for `troupe.handler.stuck.ms` | topic, partition, offset, thread |
//! | | a record has failed and been tried again for `troupe.handler.stuck.ms` | topic, partition, offset, how often, the handler's error |
//! | | a dead letter is not written for [`GRACE`], or at once where somebody must do something about it: its partition waits | topic, partition, offset, the dead-letter topic, the last error |
//! | | commits of a partition fail for [`GRACE`], twice at least | topic, partition, store or path |
//! | | the rebalance listener has not answered in time, and still does not; or it panicked | what it was asked |
//! | | with `bootstrap.servers`: brokers have told nothing of topics for [`GRACE`] | the last error |
//! | | an actor does not answer within a second: its mailbox is full, it hangs, or it is being restarted | the actor |
//! | suspended | there is no ZooKeeper session, its connection is lost, or its lease has ended | |
//! | rebalancing | the phase is another than `stable`: partitions come or go; those that stay flow on | |
//! | healthy | else | |
//!
//! The members that were [added](StatusSnapshot::added) count as well: the worst of all is the health of all, and
//! `why` names whose it is. What *other* members do not do ([`StatusSnapshot::peers`]) is not in it: they are to be
//! restarted, not this one. Nor is what the application has paused.
//!
//! # What to do with it
//! | | live | ready |
//! |---|---|---|
//! | healthy, rebalancing | yes | yes |
//! | suspended | yes | no: it may be cut off, and its partitions may soon be another's |
//! | failing | yes: the same would be wrong after a restart | no: a roll-out of something that cannot work stops here |
//! | leaving | yes | no |
//! | ended | no: nothing runs any more, and only a restart brings it back | no |

use std::time::Duration;

use crate::schemas::status::v1::{
    Commits, HaltedPartition, HandlerEnding, HealthState, HealthStatus, OwnedPartition, RetriedRecord,
    Session, SessionState, StatusSnapshot, StuckHandler, UnwrittenLetter,
};

/// How long something that passes by itself as a rule, such as the election of a leader, may last before it is a
/// failure.
pub const GRACE: Duration = Duration::from_secs(15);

/// Actors without which a member can do nothing.
const NEEDED: [&str; 6] = [
    "zk-session",
    "topic-metadata",
    "rebalance-coordinator",
    "fetcher-manager",
    "offset-committer",
    "dead-letter-writer",
];

/// How a member does. See the [module](self) for what makes it what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Everything that falls to it is owned and flows.
    Healthy,
    /// Partitions come or go; those that stay flow on.
    Rebalancing,
    /// The ZooKeeper session is not sure to live: delivery ends with the lease.
    Suspended,
    /// Something is wrong that does not pass by itself, or has not for too long.
    Failing {
        /// What: each names the partition and offset, or the path, or the actor. Never empty.
        why: Vec<String>,
    },
    /// It is shutting down: handlers finish, offsets are stored, partitions are released.
    Leaving,
    /// It has shut down, or its actors are gone for good.
    Ended,
}

impl Health {
    /// `false` when only a restart of the process helps: for a liveness probe.
    pub fn is_live(&self) -> bool {
        *self != Self::Ended
    }

    /// Whether it does its part in the group, or will in a moment: for a readiness probe.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Healthy | Self::Rebalancing)
    }

    /// In one word, as in the metrics: `healthy`, `rebalancing`, `suspended`, `failing`, `leaving` or `ended`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Rebalancing => "rebalancing",
            Self::Suspended => "suspended",
            Self::Failing { .. } => "failing",
            Self::Leaving => "leaving",
            Self::Ended => "ended",
        }
    }

    /// Decides it from a picture and those of the added members in it.
    pub fn of(snapshot: &StatusSnapshot) -> Self {
        if is_leaving(snapshot) {
            return Self::Leaving;
        }
        let mut why = faults(snapshot);
        // one that was added may leave alone
        let added = || snapshot.added.iter().filter(|added| !is_leaving(added));
        for added in added() {
            why.extend(faults(added).into_iter().map(|why| format!("{}: {why}", added.consumer_id)));
        }
        let mut members = std::iter::once(snapshot).chain(added());
        if !why.is_empty() {
            Self::Failing { why }
        } else if members.clone().any(is_suspended) {
            Self::Suspended
        } else if members.any(|member| member.phase != "stable") {
            Self::Rebalancing
        } else {
            Self::Healthy
        }
    }
}

/// As a message; one that has ended has no picture, and one that is leaving has it in its phase.
impl From<Health> for HealthStatus {
    fn from(health: Health) -> Self {
        let (state, why) = match health {
            Health::Healthy => (HealthState::Healthy, Vec::new()),
            Health::Rebalancing => (HealthState::Rebalancing, Vec::new()),
            Health::Suspended => (HealthState::Suspended, Vec::new()),
            Health::Failing { why } => (HealthState::Failing, why),
            Health::Leaving | Health::Ended => (HealthState::Unspecified, Vec::new()),
        };
        Self { state: state.into(), why }
    }
}

fn is_leaving(member: &StatusSnapshot) -> bool {
    member.phase == "leaving"
}

fn is_suspended(member: &StatusSnapshot) -> bool {
    let is_well =
        |session: &Session| session.state() == SessionState::Connected && session.lease_remaining_ms > 0;
    !member.session.as_ref().is_some_and(is_well)
}

/// What is wrong with one member, in the order of the module's table.
fn faults(member: &StatusSnapshot) -> Vec<String> {
    let mut why = Vec::new();
    why.extend(Some(&member.failing).filter(|failing| !failing.is_empty()).cloned());
    why.extend(member.partitions.iter().filter_map(|partition| unfetched(partition, member.taken_ms)));
    why.extend(member.halted.iter().filter_map(halted));
    why.extend(ending_handlers(member));
    why.extend(member.stuck.iter().map(|it| stuck(it, member.taken_ms)));
    why.extend(member.retried.iter().filter(|it| it.is_stuck).map(|it| retried(it, member.taken_ms)));
    let letters = member.dead_letters.iter().flat_map(|letters| &letters.unwritten);
    why.extend(letters.filter_map(|letter| unwritten(letter, member.taken_ms)));
    why.extend(member.commits.iter().flat_map(|commits| uncommitted(commits, member.taken_ms)));
    why.extend(unanswered_listener(member));
    why.extend(untold_topics(member));
    why.extend(silent_actors(member));
    why
}

/// Seconds since then, once they are more than is granted.
fn overdue(since_ms: i64, now_ms: i64) -> Option<i64> {
    let lasted = now_ms.saturating_sub(since_ms);
    (since_ms > 0 && u128::try_from(lasted).is_ok_and(|ms| ms >= GRACE.as_millis())).then_some(lasted / 1000)
}

fn unfetched(partition: &OwnedPartition, now_ms: i64) -> Option<String> {
    let OwnedPartition { topic, partition: number, unfetched, unfetched_since_ms, fetched, .. } = partition;
    // what is halted is not asked for
    let is_asked_for = partition.halted.is_empty() && !unfetched.is_empty();
    let lasted = overdue(*unfetched_since_ms, now_ms).filter(|_| is_asked_for)?;
    Some(format!(
        "{topic}-{number} has not been fetched from offset {fetched} on for {lasted} s: {unfetched}"
    ))
}

/// Not by what streams say: one whose handler keeps its thread busy says nothing.
fn halted(halted: &HaltedPartition) -> Option<String> {
    let HaltedPartition { topic, partition, offset, why, attempts, .. } = halted;
    match (&*halted.reason, attempts) {
        // it says where, and where to seek
        ("unreadable", _) => Some(why.clone()),
        ("failed", 0) => Some(format!("{topic}-{partition} is stopped at offset {offset}: {why}")),
        ("failed", _) => Some(format!(
            "{topic}-{partition} is stopped at offset {offset}, which failed {attempts} times: {why}"
        )),
        _ => None,
    }
}

fn ending_handlers(member: &StatusSnapshot) -> impl Iterator<Item = String> {
    member.streams.iter().filter_map(|stream| {
        let HandlerEnding { since_ms, times, why } = stream.handler_ending.as_ref()?;
        let lasted = overdue(*since_ms, member.taken_ms)?;
        let name = &stream.name;
        Some(format!(
            "the handler of stream {name} ends as soon as it is made, {times} times in {lasted} s: {why}"
        ))
    })
}

fn stuck(stuck: &StuckHandler, now_ms: i64) -> String {
    let StuckHandler { topic, partition, offset, since_ms, thread, .. } = stuck;
    let lasted = now_ms.saturating_sub(*since_ms) / 1000;
    format!(
        "the handler of {topic}-{partition} is stuck: {thread} has offset {offset} in hand for {lasted} s"
    )
}

fn retried(retried: &RetriedRecord, now_ms: i64) -> String {
    let RetriedRecord { topic, partition, offset, attempts, since_ms, why, .. } = retried;
    let lasted = now_ms.saturating_sub(*since_ms) / 1000;
    format!(
        "{topic}-{partition} does not get past offset {offset}, which failed {attempts} times in {lasted} s: {why}"
    )
}

fn unwritten(letter: &UnwrittenLetter, now_ms: i64) -> Option<String> {
    let UnwrittenLetter { topic, partition, offset, dead_letter_topic, since_ms, why, lasting } = letter;
    if !lasting {
        overdue(*since_ms, now_ms)?;
    }
    let (lasted, why) =
        (now_ms.saturating_sub(*since_ms) / 1000, if why.is_empty() { "no answer yet" } else { why });
    Some(format!(
        "{topic}-{partition} waits at offset {offset} for its dead letter, not written to {dead_letter_topic} for {lasted} s: {why}"
    ))
}

fn uncommitted(commits: &Commits, now_ms: i64) -> impl Iterator<Item = String> {
    commits.failing.iter().filter(|it| it.attempts > 1).filter_map(move |it| {
        let lasted = overdue(it.since_ms, now_ms)?;
        let (topic, partition, attempts) = (&it.topic, it.partition, it.attempts);
        Some(format!(
            "{topic}-{partition} could not be committed for {lasted} s, in {attempts} tries: {}",
            it.why
        ))
    })
}

fn unanswered_listener(member: &StatusSnapshot) -> Option<String> {
    let listener = member.listener.as_ref().filter(|listener| !listener.failing.is_empty())?;
    Some(format!("rebalance listener {}: {}", listener.name, listener.failing))
}

fn untold_topics(member: &StatusSnapshot) -> Option<String> {
    let topics = member.topic_metadata.as_ref().filter(|topics| !topics.last_error.is_empty())?;
    let is_old = topics.age_ms.is_none_or(|age| u128::from(age) >= GRACE.as_millis());
    is_old.then(|| format!("no broker of bootstrap.servers tells of topics: {}", topics.last_error))
}

fn silent_actors(member: &StatusSnapshot) -> impl Iterator<Item = String> {
    let is_silent = |name: &str| NEEDED.contains(&name);
    let silent =
        member.actors.iter().filter(move |actor| is_silent(&actor.name) && actor.answered_in_ms.is_none());
    silent.map(|actor| {
        format!("actor {} does not answer, it was restarted {} times", actor.name, actor.restarts)
    })
}

#[cfg(test)]
mod tests;
