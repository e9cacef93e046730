//! What is asked of a commit, and how it came out, partition by partition.

use std::collections::BTreeMap;

use kafka_troupe_proto::TopicPartition;

use super::CommitError;

/// Which offsets to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToCommit {
    /// What is acknowledged of every partition that is owned now or about to be released.
    Acknowledged,
    /// These next offsets to consume, of partitions that this member owns. One that it does not own is refused by
    /// [`CommitError::NotOwned`], and nothing is changed about where records are delivered from.
    Offsets(BTreeMap<TopicPartition, i64>),
}

/// How the commit of one partition's offset came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedOffset {
    /// The next offset to consume, as it is stored now.
    pub offset: i64,
    /// Whether it was written; an unchanged one is not written again to ZooKeeper.
    pub written: bool,
}

/// How a commit came out, partition by partition. Those without a position yet are not in it.
#[must_use = "a commit may have failed for some partitions"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitOutcome(BTreeMap<TopicPartition, Result<CommittedOffset, CommitError>>);

impl CommitOutcome {
    /// How many offsets were written.
    ///
    /// # Errors
    /// The first partition's that failed; the others are stored all the same.
    pub fn all(&self) -> Result<usize, CommitError> {
        let mut written = 0;
        for outcome in self.0.values() {
            written += usize::from(outcome.clone()?.written);
        }
        Ok(written)
    }

    /// How it came out for one partition; none when it was not asked for, or has no position yet.
    pub fn of(&self, topic: &str, partition: i32) -> Option<&Result<CommittedOffset, CommitError>> {
        self.0.get(&TopicPartition::new(topic, partition))
    }

    /// All partitions, in order.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (&TopicPartition, &Result<CommittedOffset, CommitError>)> + '_ {
        self.0.iter()
    }

    /// Adds those of another member of the same application.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl FromIterator<(TopicPartition, Result<CommittedOffset, CommitError>)> for CommitOutcome {
    fn from_iter<I>(outcomes: I) -> Self
    where
        I: IntoIterator<Item = (TopicPartition, Result<CommittedOffset, CommitError>)>,
    {
        Self(outcomes.into_iter().collect())
    }
}
