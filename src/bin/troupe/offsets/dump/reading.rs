//! All records of `__consumer_offsets`, or those of the partition that a group is in.

use std::num::NonZeroU32;

use kafka_troupe::admin::{
    KafkaAdmin, PartitionReadError, PartitionReadOptions, PartitionReader, ReadUntil, StartAt,
};
use kafka_troupe::proto::kafka::offsets_topic::{OFFSETS_TOPIC, partition_for_group};
use kafka_troupe::{Record, TopicPartition};

use crate::exit::Failure;
use crate::output::progress::Progress;

/// Records that come, and what could not be read of them.
pub struct Reading {
    reader: PartitionReader,
    progress: Progress,
    /// Which partition is read, where it is just one.
    only: Option<i32>,
    /// It does not follow what is written.
    ends: bool,
    unread: u64,
}

impl Reading {
    /// Begins at the beginning; nothing where the topic does not exist.
    pub async fn open(
        admin: &KafkaAdmin,
        group: Option<&str>,
        follow: bool,
    ) -> Result<Option<Self>, Failure> {
        let topics = admin.topics().await?;
        let partitions = topics.get(OFFSETS_TOPIC).map_or(&[][..], |topic| &topic.partitions);
        let count = u32::try_from(partitions.len()).ok().and_then(NonZeroU32::new);
        let Some(count) = count else { return Ok(None) };
        let only = group.map(|group| partition_for_group(group, count));
        let wanted = partitions.iter().filter(|it| only.is_none_or(|only| only == **it));
        let wanted = wanted.map(|it| (TopicPartition::new(OFFSETS_TOPIC, *it), StartAt::Earliest));
        let mut options = PartitionReadOptions::default();
        options.until = if follow { ReadUntil::Forever } else { ReadUntil::LogEnd };
        let reader = admin.read_partitions(wanted.collect::<Vec<_>>(), options).await;
        let total = reader.progress().map(|(_, it)| it.log_end.abs_diff(it.start)).sum();
        let progress = Progress::beside_results("records read", (!follow).then_some(total));
        Ok(Some(Self { reader, progress, only, ends: !follow, unread: 0 }))
    }

    /// The next record; what cannot be read is told and stepped over.
    pub async fn next(&mut self) -> Option<Record> {
        loop {
            let error = match self.reader.next().await? {
                Ok(record) => {
                    self.progress.add(1);
                    return Some(record);
                }
                Err(error) => error,
            };
            self.step_over(&error);
            // it would be tried for ever, and the others are worth something
            if self.ends && matches!(error, PartitionReadError::Unavailable { .. }) {
                self.reader.leave(&error.partition());
            }
        }
    }

    fn step_over(&mut self, error: &PartitionReadError) {
        let resume_at = error.resume_at();
        let more = resume_at.map_or(String::new(), |offset| format!("; going on at {offset}"));
        self.progress.beside(|| say!("{error}{more}"));
        self.unread += 1;
        if let Some(offset) = resume_at {
            let TopicPartition { topic, partition, .. } = error.partition();
            self.reader.seek(&topic, partition, offset);
        }
    }

    /// Why it is not all.
    pub fn unread(&self) -> Option<Failure> {
        (self.unread > 0)
            .then(|| Failure::work(format!("not all could be read: {} times, see above", self.unread)))
    }

    /// What is read, for messages.
    pub fn place(&self) -> String {
        self.only.map_or(OFFSETS_TOPIC.to_owned(), |partition| format!("{OFFSETS_TOPIC}-{partition}"))
    }
}
