//! Whether a log was truncated before what we have read of it (KIP-320): a leader that was not in sync was elected
//! (`unclean.leader.election.enable`), and knows less.
//!
//! It may have written other records at those offsets since, and then nothing but the epochs tells. Brokers before 2.3
//! cannot be asked; a position past the end of the log is out of range there, and one that the log has passed again
//! goes unnoticed. So does one that was passed before we had read anything: offsets are stored without an epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;
use kafka_troupe_proto::kafka::offset_for_leader_epoch::{
    EpochEnd, EpochPartition, EpochTopic, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use super::log_ends::{LeaderConnection, by_partition};
use super::placements::{Doubt, InDoubt};
use crate::broker_connection::ConnectionError;
use crate::registry::{NO_EPOCH, OwnedPartition};

pub(super) type EpochEnds = BTreeMap<TopicPartition, EpochEnd>;

/// What an epoch's end says of a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing speaks against it.
    Good,
    /// The log that we have read goes on elsewhere from `end`; `epoch` is that of the last record before.
    Truncated { end: i64, epoch: i32 },
    /// Ask again.
    Failed(Disposition, String),
}

/// Asks where the epochs ended in which we have read last; a broker that cannot say says nothing.
pub(super) async fn epoch_ends(
    leader: &mut LeaderConnection,
    in_doubt: impl Iterator<Item = &InDoubt>,
) -> Result<EpochEnds, ConnectionError> {
    let mut topics: BTreeMap<Arc<str>, Vec<EpochPartition>> = BTreeMap::new();
    let asked: Vec<_> = in_doubt.filter(|it| may_be_truncated(it)).collect();
    for InDoubt { partition, epoch, .. } in &asked {
        let TopicPartition { topic, partition: number } = &partition.topic_partition;
        topics.entry(Arc::clone(topic)).or_default().push(EpochPartition {
            partition: *number,
            current_leader_epoch: epoch.unwrap_or(NO_EPOCH),
            leader_epoch: partition.last_epoch(),
        });
    }
    if topics.is_empty() || leader.connection.version_of::<OffsetForLeaderEpochRequest>().is_err() {
        return Ok(EpochEnds::new());
    }
    let topics = topics.into_iter().map(|(topic, partitions)| EpochTopic { topic, partitions });
    let request = OffsetForLeaderEpochRequest { topics: topics.collect() };
    let ends = ends_of(leader.connection.call(&request).await?);
    for it in asked {
        note_if_remade(it, ends.get(&it.partition.topic_partition));
    }
    Ok(ends)
}

/// A leader of an earlier epoch than our last record's, which knows of no epoch as late as that, leads another topic: a
/// topic begins anew at 0. (Where topics have ids, these tell first.)
fn note_if_remade(it: &InDoubt, end: Option<&EpochEnd>) {
    let is_earlier = it.epoch.is_some_and(|epoch| epoch < it.partition.last_epoch());
    let is_unknown = end.is_some_and(|end| end.error.is_ok() && end.end_offset.is_none());
    if is_earlier && is_unknown {
        let (partition, epoch) = (&it.partition.topic_partition, it.partition.last_epoch());
        tracing::warn!(%partition, epoch, "the leader knows nothing of the epoch that was read last; its topic was deleted and made again");
        it.partition.topic_remade();
    }
}

/// Also one out of range: then it says where to go on, better than any policy. But under the leader whose log was
/// looked at already, nothing was truncated: records were deleted, or it is another topic of that name, whose epochs
/// begin anew.
pub(super) fn may_be_truncated(it: &InDoubt) -> bool {
    matches!(it.doubt, Doubt::NewLeader | Doubt::OutOfRange) && is_new_leader(&it.partition, it.epoch)
}

/// Something was read, and a leader was elected since.
pub(super) fn is_new_leader(partition: &OwnedPartition, epoch: Option<i32>) -> bool {
    partition.last_epoch() != NO_EPOCH && epoch.is_some_and(|epoch| epoch > partition.leader_epoch())
}

fn ends_of(response: OffsetForLeaderEpochResponse) -> EpochEnds {
    by_partition(response.topics.into_iter().map(|it| (it.topic, it.partitions)), |end| end.partition)
}

/// Looks at a partition's position.
pub(super) fn judge(partition: &OwnedPartition, end: Option<&EpochEnd>) -> Verdict {
    let Some(end) = end else { return Verdict::Good };
    if partition.is_of_earlier_topic() {
        return Verdict::Failed(Disposition::Retry, "its topic was deleted and made again".to_owned());
    }
    if let Err(error) = end.error.ok() {
        return Verdict::Failed(error.disposition(), format!("OffsetForLeaderEpoch: {error}"));
    }
    match (end.end_offset, end.leader_epoch) {
        (Some(offset), epoch) if offset < partition.fetched() => {
            Verdict::Truncated { end: offset, epoch: epoch.unwrap_or(NO_EPOCH) }
        }
        _ => Verdict::Good,
    }
}

#[cfg(test)]
mod tests {
    use kafka_troupe_proto::kafka::error_code::ErrorCode;
    use kafka_troupe_proto::kafka::frame::Response as _;

    use super::*;
    use crate::broker_fetcher::test_claims::claim;
    use crate::stream_queue::Credit;

    fn answered(error: ErrorCode, end: Option<i64>) -> EpochEnd {
        let mut body = [0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1].to_vec();
        body.extend(error.code().to_be_bytes());
        body.extend([0; 4]);
        body.extend(NO_EPOCH.to_be_bytes());
        body.extend(end.unwrap_or(-1).to_be_bytes());
        let response = OffsetForLeaderEpochResponse::decode(3, body.into()).expect("an answer");
        ends_of(response).into_values().next().expect("one partition")
    }

    /// Read in epoch 5; the leader of `epoch` answers with an end, or knows of none.
    #[test]
    fn a_leader_of_an_earlier_epoch_that_knows_nothing_of_ours_leads_another_topic() {
        for (epoch, end, error, is_remade) in [
            (0, None, ErrorCode::None, true),
            // as after a truncation of the whole log: by the policy, if it is out of range
            (6, None, ErrorCode::None, false),
            (0, Some(20), ErrorCode::None, false),
            (0, None, ErrorCode::FencedLeaderEpoch, false),
        ] {
            let partition = claim(0, Some(10), &Arc::new(Credit::new(2, 1_000)));
            partition.set_last_epoch(5);
            let it = InDoubt { partition, doubt: Doubt::NewLeader, epoch: Some(epoch) };
            let end = answered(error, end);
            note_if_remade(&it, Some(&end));
            assert_eq!(it.partition.is_of_earlier_topic(), is_remade, "{epoch} {end:?}");
            assert_eq!(
                matches!(judge(&it.partition, Some(&end)), Verdict::Good),
                !is_remade && error.is_ok()
            );
        }
    }
}
