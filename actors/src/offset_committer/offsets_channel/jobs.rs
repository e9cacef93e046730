//! What waits for the next request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::offset_committer::CommitError;
use crate::offset_committer::stores::Purpose;
use crate::registry::OwnedPartition;

/// Below this a commit is not sent: its answer would hardly come before the lease ends.
const LEAST_LEASE: Duration = Duration::from_millis(100);

/// An offset that is to be stored.
pub(in crate::offset_committer) struct Commit {
    /// The current one.
    pub(super) claim: Arc<OwnedPartition>,
    pub(super) offset: i64,
    purpose: Purpose,
    /// In which topic of its name.
    topic: u64,
}

impl Commit {
    pub(in crate::offset_committer) fn new(
        claim: &Arc<OwnedPartition>,
        topic: u64,
        offset: i64,
        purpose: Purpose,
    ) -> Self {
        Self { claim: Arc::clone(claim), offset, purpose, topic }
    }

    /// Only what a commit may have stored is not taken back.
    pub(super) fn sending(&self) {
        if self.purpose == Purpose::Commit {
            self.claim.sending_to_kafka(self.offset);
        }
    }

    /// Why it may not be sent, or not again, if it may not.
    pub(super) fn refused(&self) -> Option<CommitError> {
        let claim = &self.claim;
        if claim.lease_left() < LEAST_LEASE {
            return Some(CommitError::Fenced(claim.topic_partition.clone()));
        }
        let may_be_stored = match self.purpose {
            Purpose::Commit => claim.may_commit(),
            Purpose::Reset { .. } => !claim.is_closed(),
            Purpose::Seek => !claim.is_superseded(),
        };
        (claim.topic_number() != self.topic || !may_be_stored).then(|| CommitError::Store {
            partition: claim.topic_partition.clone(),
            why: "it was given up, lost, set to another position, or its topic made again meanwhile"
                .to_owned(),
        })
    }
}

/// A partition that is asked about.
pub(super) struct Job<D, T> {
    pub(super) partition: TopicPartition,
    pub(super) detail: D,
    answer: oneshot::Sender<Result<T, CommitError>>,
    failed: u32,
    due: Instant,
    /// Why it failed last.
    why: String,
}

/// Why a try failed.
#[derive(Clone)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) again: Again,
}

/// When it may be tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It cannot help.
    Never,
    /// After a pause, and so many times.
    Later,
    /// A connection that had served was found closed, as brokers do with idle ones: it does not count.
    AtOnce,
}

impl Failure {
    pub(super) fn later(why: String) -> Self {
        Self { why, again: Again::Later }
    }

    /// The same, which names where it was.
    pub(super) fn at(self, place: &str) -> Self {
        Self { why: format!("{place}: {}", self.why), ..self }
    }
}

/// When to try again.
pub(super) struct Pause {
    pub(super) most: u32,
    pub(super) backoff: Duration,
    pub(super) until: Option<Instant>,
}

/// What is stored is asked for; none is stored, or a negative one.
pub(super) type ReadJob = Job<(), Option<i64>>;

/// An offset is to be stored.
pub(super) type CommitJob = Job<Commit, ()>;

impl<D, T> Job<D, T> {
    pub(super) fn new(
        partition: TopicPartition,
        detail: D,
        answer: oneshot::Sender<Result<T, CommitError>>,
    ) -> Self {
        Self { partition, detail, answer, failed: 0, due: Instant::now(), why: String::new() }
    }

    pub(super) fn answer(self, outcome: Result<T, CommitError>) {
        // who asked may have gone
        let _ = self.answer.send(outcome);
    }

    fn fail(self, why: String) {
        let why = match self.failed {
            0 | 1 => why,
            times => format!("{why} (tried {times} times)"),
        };
        let partition = self.partition.clone();
        self.answer(Err(CommitError::Store { partition, why }));
    }
}

/// Jobs of one kind, in the order in which they came.
pub(super) struct Queue<D, T>(Vec<Job<D, T>>);

impl<D, T> Default for Queue<D, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D, T> Queue<D, T> {
    pub(super) fn push(&mut self, job: Job<D, T>) {
        self.0.push(job);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.iter().map(|job| job.due).min()
    }

    /// Those for the next request: of one partition one at a time. What nobody waits for any more is dropped.
    pub(super) fn take_due(&mut self) -> Vec<Job<D, T>> {
        let now = Instant::now();
        self.0.retain(|job| !job.answer.is_closed());
        let mut taken = BTreeSet::new();
        self.0.extract_if(.., |job| job.due <= now && taken.insert(job.partition.clone())).collect()
    }

    /// What has failed and would be tried again later than that has failed for good.
    pub(super) fn give_up_after(&mut self, until: Instant) {
        for mut job in self.0.extract_if(.., |job| job.failed > 0 && job.due > until) {
            let why = std::mem::take(&mut job.why);
            job.fail(why);
        }
    }

    /// Answers what has come out, and keeps what is to be tried again.
    pub(super) fn settle(
        &mut self,
        jobs: Vec<Job<D, T>>,
        pause: Pause,
        mut outcome: impl FnMut(&TopicPartition) -> Result<T, Failure>,
    ) {
        let now = Instant::now();
        for mut job in jobs {
            match outcome(&job.partition) {
                Ok(answer) => job.answer(Ok(answer)),
                Err(Failure { why, again: Again::Never }) => job.fail(why),
                Err(Failure { again: Again::AtOnce, .. }) => {
                    job.due = now;
                    self.0.push(job);
                }
                Err(Failure { why, again: Again::Later }) => {
                    job.failed += 1;
                    job.due = now + pause.backoff;
                    if job.failed > pause.most || pause.until.is_some_and(|until| job.due > until) {
                        job.fail(why);
                    } else {
                        job.why = why;
                        self.0.push(job);
                    }
                }
            }
        }
    }
}
