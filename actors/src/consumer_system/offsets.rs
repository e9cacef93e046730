//! Commits that are asked for: from handlers, other actors and the application, of all members of the system.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::{BoxFuture, join_all};
use kafka_troupe_proto::TopicPartition;
use tokio::time::{Instant, sleep};

use super::{Commit, ConsumerHandle, ConsumerSystem};
use crate::offset_committer::{
    CommitError, CommitNow, CommitOutcome, CommittedOffset, OffsetCommitter, ToCommit,
};
use crate::record::Record;
use crate::registry::{OwnedPartition, TopicRegistry};
use crate::stream_queue::CommitDue;
use crate::supervise::Slot;

/// How long a commit waits for a committer that is being restarted, from when it was found to have ended: longer than
/// the longest pause before a restart.
const RESTARTED: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);

/// Commits offsets, from wherever it is cloned into: made by [`Builder::offsets`](super::Builder::offsets) before there
/// is a member, so that the factory of a handler can give it to each handler.
///
/// Nothing happens before a future is polled, and none borrows anything: a handler with a future awaits it, one
/// without spawns it in its context (`ctx.wait` so that no record comes before it is done). A commit may be awaited
/// while its partition is released, the system shuts down, or another position is sought: all of these wait for what a
/// handler awaits (`troupe.drain.timeout.ms`), not for what it has spawned. One that comes too late is refused:
/// [`CommitError::NotOwned`].
#[derive(Clone, Debug, Default)]
pub struct Offsets {
    system: Slot<ConsumerSystem>,
}

impl Offsets {
    /// The system is there, or about to be.
    pub(super) fn set(&self, system: Addr<ConsumerSystem>) {
        self.system.set(system);
    }

    pub(super) fn system(&self) -> Slot<ConsumerSystem> {
        self.system.clone()
    }

    /// Commits what is acknowledged of every partition that is owned now or about to be released. Asked by a handler,
    /// that is without the record that it has in hand.
    ///
    /// # Errors
    /// [`CommitError::NotRunning`]: before the start, after the end, or the committer does not come back after a panic
    /// (10 s); if that is one of several members, of its partitions. What failed for single partitions is in the
    /// outcome. With `offsets.storage=kafka` that takes as long as its tries do: 1 + `offsets.commit.max.retries`, each
    /// of what is left of the lease, or of `offsets.channel.socket.timeout.ms`, and `offsets.channel.backoff.ms`.
    pub fn commit(&self) -> BoxFuture<'static, Result<CommitOutcome, CommitError>> {
        self.commit_these(ToCommit::Acknowledged)
    }

    /// Commits these offsets: of each partition the *next* one to consume, from what is stored up to what was handed
    /// over. Records go on to be delivered from where they were, and no later commit takes them back.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). In the outcome: [`CommitError::NotOwned`], or an offset that may not be stored.
    pub fn commit_offsets(
        &self,
        offsets: impl IntoIterator<Item = (TopicPartition, i64)>,
    ) -> BoxFuture<'static, Result<CommitOutcome, CommitError>> {
        self.commit_these(ToCommit::Offsets(offsets.into_iter().collect()))
    }

    /// Commits that this record is handled, and all before it in its partition: its offset + 1. One that is covered by
    /// what is stored already is well. The record in a handler's hand may be committed before the handler is done; if
    /// it fails then, the record comes again all the same, but not after a crash.
    ///
    /// # Errors
    /// [`CommitError`]: not stored, so it may be handled again, here or by the next owner.
    pub fn commit_record(&self, record: &Record) -> BoxFuture<'static, Result<CommittedOffset, CommitError>> {
        let partition = TopicPartition::new(record.topic(), record.partition());
        let committing = self.commit_offsets([(partition.clone(), record.offset() + 1)]);
        Box::pin(async move {
            match committing.await?.of(&partition.topic, partition.partition) {
                Some(Err(CommitError::Backwards { stored, .. })) => {
                    Ok(CommittedOffset { offset: *stored, written: false })
                }
                Some(outcome) => outcome.clone(),
                None => Err(CommitError::NotOwned(partition)),
            }
        })
    }

    fn commit_these(&self, what: ToCommit) -> BoxFuture<'static, Result<CommitOutcome, CommitError>> {
        let asked = self.system.send(Commit(what));
        Box::pin(async move { asked.await.unwrap_or(Err(CommitError::NotRunning)) })
    }
}

impl Handler<Commit> for ConsumerSystem {
    type Result = ResponseFuture<Result<CommitOutcome, CommitError>>;

    fn handle(&mut self, Commit(what): Commit, _: &mut Self::Context) -> Self::Result {
        self.forget_ended();
        let (committer, registry) = (self.parts.committer.clone(), Arc::clone(&self.parts.registry));
        let added = self.added.clone();
        Box::pin(async move {
            let own = commit_by(&committer, &what, "asked for");
            let (own, answers) =
                tokio::join!(own, join_all(added.iter().map(|member| commit_by_added(member, &what))));
            let registries = std::iter::once(&registry).chain(added.iter().map(|member| &member.registry));
            let answers = registries.zip(std::iter::once(own).chain(answers));
            let answers: Vec<_> = answers.filter_map(|(its, answer)| Some((its, answer?))).collect();
            if answers.iter().all(|(_, answer)| answer.is_err()) {
                return Err(CommitError::NotRunning);
            }
            let outcomes =
                answers.into_iter().map(|(its, answer)| answer.unwrap_or_else(|_| failed(its, &what)));
            Ok(outcomes.reduce(|all, outcome| merged(&all, &outcome)).unwrap_or_default())
        })
    }
}

impl Handler<CommitDue> for ConsumerSystem {
    type Result = ();

    fn handle(&mut self, _: CommitDue, ctx: &mut Self::Context) {
        let Some(after) = self.parts.commit_after.clone() else { return };
        let committer = self.parts.committer.clone();
        let committing = async move {
            loop {
                after.begin();
                // a failure is logged by the committer; what it leaves is covered by the next
                let _ = commit_by(&committer, &ToCommit::Acknowledged, "commit_after").await;
                if !after.is_due_again() {
                    return;
                }
            }
        };
        ctx.spawn(committing.into_actor(self));
    }
}

/// How one member's commit came out; none when it has ended, and so owns nothing.
type Answer = Option<Result<CommitOutcome, CommitError>>;

/// By a member's committer, by its next life if it panics. What is under way is waited for: its stores bound that, and
/// to ask again beside it would pile commits up.
async fn commit_by(committer: &Slot<OffsetCommitter>, what: &ToCommit, why: &'static str) -> Answer {
    let (mut left, mut patience) = (what.clone(), Patience::default());
    let mut done: Option<CommitOutcome> = None;
    while let Some(committer) = committer.get() {
        if let Ok(outcome) = committer.send(CommitNow { what: left.clone(), why }).await {
            let is_whole = !outcome.iter().any(|(_, outcome)| is_cut_off(outcome));
            if let ToCommit::Offsets(offsets) = &mut left {
                // the others are done: to ask for them again could be to go back
                offsets.retain(|it, _| outcome.of(&it.topic, it.partition).is_some_and(is_cut_off));
            }
            done.get_or_insert_default().extend(outcome);
            if is_whole {
                return done.map(Ok);
            }
        }
        if !patience.lasts().await {
            return Some(done.ok_or(CommitError::NotRunning));
        }
    }
    done.map(Ok)
}

/// The channel to Kafka ended with its committer while the commit was under way.
fn is_cut_off(outcome: &Result<CommittedOffset, CommitError>) -> bool {
    matches!(outcome, Err(CommitError::NotRunning))
}

/// By an added member, which may be shut down alone at any time.
async fn commit_by_added(member: &ConsumerHandle, what: &ToCommit) -> Answer {
    let mut patience = Patience::default();
    loop {
        match member.offsets().commit_these(what.clone()).await {
            Err(CommitError::NotRunning) if !member.address().connected() => return None,
            // its committer has ended, and it is about to
            Err(CommitError::NotRunning) if patience.lasts().await => {}
            outcome => return Some(outcome),
        }
    }
}

/// With an actor that has ended and may come back.
#[derive(Default)]
struct Patience {
    since: Option<Instant>,
}

impl Patience {
    /// Pauses before it is asked again; whether it is to be.
    async fn lasts(&mut self) -> bool {
        let lasts = self.since.get_or_insert_with(Instant::now).elapsed() < RESTARTED;
        if lasts {
            sleep(RETRY).await;
        }
        lasts
    }
}

/// Of one whose committer does not come back, beside others: what it would have committed.
fn failed(registry: &TopicRegistry, what: &ToCommit) -> CommitOutcome {
    let is_asked_for = |it: &OwnedPartition| match what {
        ToCommit::Acknowledged => it.acked() >= 0,
        ToCommit::Offsets(offsets) => offsets.contains_key(&it.topic_partition),
    };
    let its = registry.committable().into_iter().filter(|it| is_asked_for(it));
    its.map(|it| (it.topic_partition.clone(), Err(CommitError::NotRunning))).collect()
}

/// Of all members. A partition is one's: what that one says counts, and not that others do not own it. While it moves
/// from one to the other, both may speak for it; the larger offset is the later.
fn merged(one: &CommitOutcome, other: &CommitOutcome) -> CommitOutcome {
    let mut all: BTreeMap<&TopicPartition, &Result<CommittedOffset, CommitError>> = one.iter().collect();
    for (partition, outcome) in other.iter() {
        let known = all.entry(partition).or_insert(outcome);
        if weight(outcome) > weight(known) {
            *known = outcome;
        }
    }
    all.into_iter().map(|(partition, outcome)| (partition.clone(), outcome.clone())).collect()
}

fn weight(outcome: &Result<CommittedOffset, CommitError>) -> (u8, i64) {
    match outcome {
        Ok(committed) => (2, committed.offset),
        Err(CommitError::NotOwned(_)) => (0, 0),
        Err(_) => (1, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(of: impl IntoIterator<Item = (i32, Result<CommittedOffset, CommitError>)>) -> CommitOutcome {
        of.into_iter().map(|(number, outcome)| (TopicPartition::new("t", number), outcome)).collect()
    }

    #[test]
    fn the_owner_speaks_for_a_partition_whoever_answers_last() {
        let partition = |number| TopicPartition::new("t", number);
        let stored = |offset| Ok(CommittedOffset { offset, written: true });
        let not_owned = |number| Err(CommitError::NotOwned(partition(number)));
        let fenced = |number| Err(CommitError::Fenced(partition(number)));
        let one =
            outcome([(0, stored(7)), (1, not_owned(1)), (2, not_owned(2)), (3, fenced(3)), (5, stored(4))]);
        let other = outcome([
            (0, not_owned(0)),
            (1, stored(3)),
            (2, not_owned(2)),
            (3, not_owned(3)),
            (5, stored(5)),
        ]);
        let all =
            outcome([(0, stored(7)), (1, stored(3)), (2, not_owned(2)), (3, fenced(3)), (5, stored(5))]);
        assert_eq!(merged(&one, &other), all);
        assert_eq!(merged(&other, &one), all);
    }
}
