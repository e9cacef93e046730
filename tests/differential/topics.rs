//! The topics: what their brokers make of what is written to them.

use std::ops::RangeInclusive;

use troupe_cluster::{Cluster, KafkaVersion};

/// Partitions of each.
pub const PARTITIONS: i32 = 3;

/// A topic and the format that its log has now.
#[derive(Debug, Clone)]
pub struct Topic {
    pub name: &'static str,
    /// The magic that its broker converts to.
    pub format: i8,
    /// `message.timestamp.type=LogAppendTime`.
    pub append_time: bool,
    /// The formats that it goes through, of which `format` is one.
    pub formats: &'static [i8],
}

/// All that a release can have: brokers from 0.10 to 2.8 convert to older formats than their own.
pub fn of(version: KafkaVersion) -> Vec<Topic> {
    let topic =
        |name, append_time, formats: &'static [i8]| Topic { name, format: formats[0], append_time, formats };
    let magic_0 = topic("magic-0", false, &[0]);
    let magic_1 = [topic("magic-1", false, &[1]), topic("magic-1-append-time", true, &[1])];
    let mixed = topic("mixed", false, &[0, 1, 2]);
    let magic_2 = [topic("magic-2", false, &[2]), topic("magic-2-append-time", true, &[2])];
    match version {
        KafkaVersion::V0_8_2_2 => vec![magic_0],
        KafkaVersion::V0_10_2_2 => [magic_0].into_iter().chain(magic_1).collect(),
        KafkaVersion::V1_1_1 => [magic_0, mixed].into_iter().chain(magic_1).chain(magic_2).collect(),
        _ => magic_2.into(),
    }
}

/// The formats that a release takes.
pub fn taken_by(version: KafkaVersion) -> RangeInclusive<i8> {
    match version {
        KafkaVersion::V0_8_2_2 => 0..=0,
        KafkaVersion::V0_10_2_2 => 0..=1,
        kraft if kraft.is_kraft() => 2..=2,
        _ => 0..=2,
    }
}

impl Topic {
    /// Its configuration for a format, in terms of 0.10 up; records of any time stay, in segments of a few batches.
    pub fn configs(&self, format: i8) -> Vec<(&'static str, &'static str)> {
        let time = if self.append_time { "LogAppendTime" } else { "CreateTime" };
        let mut configs =
            vec![("message.timestamp.type", time), ("retention.ms", "-1"), ("segment.bytes", "2000000")];
        match (self.formats, format) {
            ([2], _) => {}
            (_, 0) => configs.push(("message.format.version", "0.9.0")),
            (_, 1) => configs.push(("message.format.version", "0.10.2")),
            _ => configs.push(("message.format.version", "0.11.0")),
        }
        configs
    }

    pub fn create(&self, cluster: &Cluster) {
        let mut configs = self.configs(self.format);
        if cluster.broker(0).version() < KafkaVersion::V0_10_2_2 {
            configs.clear();
        }
        cluster.create_topic_with(self.name, PARTITIONS, 1, &configs).unwrap();
    }
}
