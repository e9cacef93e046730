//! Leader epochs (KIP-320).

use kafka_protocol::messages as wire;
use kafka_troupe_proto::TopicPartition;

use super::{MemoryBrokers, Partition, State};

const FENCED_LEADER_EPOCH: i16 = 74;
const UNKNOWN_LEADER_EPOCH: i16 = 75;

impl MemoryBrokers {
    /// Has a partition's leader be of this epoch, and write its records in it; without, no epoch is told or looked at.
    pub fn set_leader_epoch(&self, partition: &TopicPartition, epoch: i32) {
        self.with(partition, |it| it.epoch = Some(epoch));
        self.0.changed.notify_waiters();
    }
}

impl Partition {
    /// Refuses a request of another epoch.
    pub(super) fn check_epoch(&self, asked: i32) -> Result<(), i16> {
        match self.epoch {
            Some(epoch) if asked > epoch => Err(UNKNOWN_LEADER_EPOCH),
            Some(epoch) if (0..epoch).contains(&asked) => Err(FENCED_LEADER_EPOCH),
            _ => Ok(()),
        }
    }
}

impl State {
    /// As if all of a log were of its leader's epoch.
    pub(super) fn epoch_ends(
        &self,
        broker: i32,
        request: wire::OffsetForLeaderEpochRequest,
    ) -> wire::OffsetForLeaderEpochResponse {
        use wire::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let answer = EpochEndOffset::default().with_partition(asked.partition);
                let led = self.led(broker, &topic.topic, asked.partition);
                match led.and_then(|led| led.check_epoch(asked.current_leader_epoch).map(|()| led)) {
                    Err(code) => answer.with_error_code(code),
                    Ok(led) if led.epoch.is_some_and(|epoch| epoch >= asked.leader_epoch) => {
                        answer.with_leader_epoch(asked.leader_epoch).with_end_offset(led.log.end())
                    }
                    Ok(_) => answer,
                }
            });
            let partitions = partitions.collect();
            OffsetForLeaderTopicResult::default().with_partitions(partitions).with_topic(topic.topic.clone())
        });
        wire::OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}
