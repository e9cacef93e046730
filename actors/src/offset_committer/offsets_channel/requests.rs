//! One request for many jobs, and what its answer says of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::offset_commit::{
    CommitPartition, CommitTopic, OffsetCommitRequest, OffsetCommitResponse,
};
use kafka_troupe_proto::kafka::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};

use super::jobs::{Again, CommitJob, Failure, Job, ReadJob};

/// What an answer says, partition by partition.
pub(super) struct Outcomes<T> {
    by_partition: BTreeMap<TopicPartition, Result<T, ErrorCode>>,
    /// Of the request as a whole.
    error: ErrorCode,
}

impl<T> Outcomes<T> {
    /// It, or what it is to us, has moved: it must be looked up.
    pub(super) fn coordinator_is_lost(&self) -> bool {
        let errors = self.by_partition.values().filter_map(|outcome| outcome.as_ref().err());
        errors.chain([&self.error]).any(|error| error.disposition() == Disposition::Reconnect)
    }

    /// All of it, for reasons that do not pass by themselves: whoever asks again at once gets the same answer.
    pub(super) fn is_refused(&self) -> bool {
        let mut outcomes = self.by_partition.values().peekable();
        let is_refused = |outcome: &Result<T, ErrorCode>| outcome.as_ref().is_err_and(|it| is_final(*it));
        is_final(self.error) || outcomes.peek().is_some() && outcomes.all(is_refused)
    }

    /// How it came out for one partition. What is left out has not come out.
    pub(super) fn take(&mut self, partition: &TopicPartition) -> Result<T, Failure> {
        match self.error.ok().and_then(|()| self.by_partition.remove(partition).transpose()) {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err(Failure::later("the answer leaves it out".to_owned())),
            Err(error) => Err(Failure {
                why: format!("{error}{}", hint(error)),
                again: if is_final(error) { Again::Never } else { Again::Later },
            }),
        }
    }
}

/// Trying again does not help.
fn is_final(error: ErrorCode) -> bool {
    matches!(error.disposition(), Disposition::Fatal | Disposition::Rebalance)
}

/// What to do about an error that does not pass by itself.
pub(crate) fn hint(error: ErrorCode) -> &'static str {
    match error {
        // without generation and member a commit is taken while the group has no members in Kafka
        ErrorCode::IllegalGeneration | ErrorCode::UnknownMemberId | ErrorCode::RebalanceInProgress => {
            "; consumers of Kafka's own group protocol (Java's, say) are active under this group.id: stop them, or use another group.id"
        }
        ErrorCode::GroupAuthorizationFailed => "; allow this client READ and DESCRIBE on the group",
        ErrorCode::TopicAuthorizationFailed => "; allow this client READ on the topic",
        _ => "",
    }
}

pub(super) fn commit(group: Arc<str>, jobs: &[CommitJob]) -> OffsetCommitRequest {
    let mut topics: BTreeMap<Arc<str>, Vec<CommitPartition>> = BTreeMap::new();
    for Job { partition: TopicPartition { topic, partition }, detail, .. } in jobs {
        let metadata = Arc::from("");
        let at = CommitPartition { partition: *partition, offset: detail.offset, metadata };
        topics.entry(Arc::clone(topic)).or_default().push(at);
    }
    let topics = topics.into_iter().map(|(topic, partitions)| CommitTopic { topic, partitions });
    OffsetCommitRequest { group, generation: -1, member: "".into(), topics: topics.collect() }
}

pub(super) fn committed(response: OffsetCommitResponse) -> Outcomes<()> {
    let outcomes = response.topics.into_iter().flat_map(|topic| {
        let name = topic.topic;
        let of = move |(partition, error): (i32, ErrorCode)| {
            (TopicPartition::new(Arc::clone(&name), partition), error.ok())
        };
        topic.partitions.into_iter().map(of)
    });
    Outcomes { by_partition: outcomes.collect(), error: ErrorCode::None }
}

pub(super) fn fetch(group: Arc<str>, jobs: &[ReadJob]) -> OffsetFetchRequest {
    let mut topics: BTreeMap<Arc<str>, Vec<i32>> = BTreeMap::new();
    for Job { partition: TopicPartition { topic, partition }, .. } in jobs {
        topics.entry(Arc::clone(topic)).or_default().push(*partition);
    }
    OffsetFetchRequest { group, topics: Some(topics.into_iter().collect()) }
}

pub(super) fn fetched(response: OffsetFetchResponse) -> Outcomes<Option<i64>> {
    let outcomes = response.topics.into_iter().flat_map(|topic| {
        let name = topic.topic;
        topic.partitions.into_iter().map(move |fetched| {
            let key = TopicPartition::new(Arc::clone(&name), fetched.partition);
            (key, fetched.error.ok().map(|()| fetched.offset))
        })
    });
    Outcomes { by_partition: outcomes.collect(), error: response.error }
}
