//! The three views of a group, as rows.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use super::super::Coordination;
use crate::output::{Row, or_dash};

/// Where an offset is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    ZooKeeper,
    Kafka,
    /// The same in both.
    Both,
}

/// `--offsets`: a partition, or a member that has none.
#[derive(Clone, Debug, Serialize)]
pub struct PartitionRow {
    pub group: String,
    pub coordination: Coordination,
    /// None in the row of a member without partitions.
    pub topic: Option<String>,
    pub partition: Option<i32>,
    /// What is committed: of a group that commits to both, the larger, which the group goes on from.
    pub committed: Option<i64>,
    pub offset_store: Option<Store>,
    pub committed_zookeeper: Option<i64>,
    pub committed_kafka: Option<i64>,
    /// The offset of the next record to come.
    pub log_end: Option<i64>,
    /// Never below 0.
    pub lag: Option<i64>,
    /// Who has the partition: in ZooKeeper the id of a thread, in Kafka that of a member.
    pub owner: Option<String>,
    pub member: Option<String>,
    pub client_host: Option<String>,
    /// Since when the owner has it.
    pub since: Option<String>,
    /// What is not as it should be.
    pub note: Option<String>,
}

impl PartitionRow {
    /// One of which nothing is known yet.
    pub fn new(group: &str, coordination: Coordination) -> Self {
        Self {
            group: group.to_owned(),
            coordination,
            topic: None,
            partition: None,
            committed: None,
            offset_store: None,
            committed_zookeeper: None,
            committed_kafka: None,
            log_end: None,
            lag: None,
            owner: None,
            member: None,
            client_host: None,
            since: None,
            note: None,
        }
    }

    /// With what is committed and where the log ends: the lag, and a note of an offset beyond the end.
    pub fn at(mut self, zookeeper: Option<i64>, kafka: Option<i64>, log_end: Option<i64>) -> Self {
        (self.committed_zookeeper, self.committed_kafka, self.log_end) = (zookeeper, kafka, log_end);
        self.committed = zookeeper.max(kafka);
        self.offset_store = self.committed.map(|_| match zookeeper.cmp(&kafka) {
            Ordering::Less => Store::Kafka,
            Ordering::Equal => Store::Both,
            Ordering::Greater => Store::ZooKeeper,
        });
        if let Some((offset, end)) = self.committed.zip(self.log_end) {
            self.lag = Some((end - offset).max(0));
            if offset > end {
                self.note("the offset is beyond the end of the log");
            }
        }
        self
    }

    /// One more thing to say of it.
    pub fn note(&mut self, what: &str) {
        self.note = Some(self.note.take().map_or_else(|| what.to_owned(), |said| format!("{said}; {what}")));
    }
}

impl Row for PartitionRow {
    const HEAD: &'static [&'static str] = &[
        "GROUP",
        "COORDINATION",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "STORE",
        "LOG-END-OFFSET",
        "LAG",
        "OWNER",
        "HOST",
        "SINCE",
        "NOTE",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            self.coordination.to_string(),
            or_dash(self.topic.as_ref()),
            or_dash(self.partition),
            or_dash(self.committed),
            or_dash(self.offset_store.map(|store| match store {
                Store::ZooKeeper => "zookeeper",
                Store::Kafka => "kafka",
                Store::Both => "both",
            })),
            or_dash(self.log_end),
            or_dash(self.lag),
            or_dash(self.owner.as_ref().or(self.member.as_ref())),
            or_dash(self.client_host.as_ref()),
            or_dash(self.since.as_ref()),
            or_dash(self.note.as_ref()),
        ]
    }
}

/// The partitions of a topic that a member has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owned {
    pub topic: String,
    pub partitions: Vec<i32>,
}

/// `--members`: a member.
#[derive(Clone, Debug, Serialize)]
pub struct MemberRow {
    pub group: String,
    pub coordination: Coordination,
    pub member: String,
    pub client_id: Option<String>,
    pub client_host: Option<String>,
    pub instance: Option<String>,
    /// In ZooKeeper: topics with their streams, or a filter.
    pub subscription: Option<String>,
    pub streams: Option<u32>,
    pub owned: usize,
    pub partitions: Vec<Owned>,
    pub since: Option<String>,
    pub note: Option<String>,
}

impl MemberRow {
    /// One of which nothing but its id is known yet.
    pub fn new(group: &str, coordination: Coordination, member: &str) -> Self {
        Self {
            group: group.to_owned(),
            coordination,
            member: member.to_owned(),
            client_id: None,
            client_host: None,
            instance: None,
            subscription: None,
            streams: None,
            owned: 0,
            partitions: Vec::new(),
            since: None,
            note: None,
        }
    }

    /// Its row among those of partitions, where it has none.
    pub fn spare(&self) -> PartitionRow {
        PartitionRow {
            member: Some(self.member.clone()),
            client_host: self.client_host.clone(),
            note: Some("a member without partitions".to_owned()),
            ..PartitionRow::new(&self.group, self.coordination)
        }
    }
}

impl Row for MemberRow {
    const HEAD: &'static [&'static str] = &[
        "GROUP",
        "COORDINATION",
        "MEMBER",
        "CLIENT-ID",
        "HOST",
        "INSTANCE",
        "SUBSCRIPTION",
        "STREAMS",
        "#PARTITIONS",
        "PARTITIONS",
        "SINCE",
        "NOTE",
    ];

    fn cells(&self) -> Vec<String> {
        let partitions: Vec<_> = self.partitions.iter().map(Owned::to_string).collect();
        vec![
            self.group.clone(),
            self.coordination.to_string(),
            self.member.clone(),
            or_dash(self.client_id.as_ref()),
            or_dash(self.client_host.as_ref()),
            or_dash(self.instance.as_ref()),
            or_dash(self.subscription.as_ref()),
            or_dash(self.streams),
            self.owned.to_string(),
            or_dash((!partitions.is_empty()).then(|| partitions.join(" "))),
            or_dash(self.since.as_ref()),
            or_dash(self.note.as_ref()),
        ]
    }
}

impl From<(&str, Vec<i32>)> for Owned {
    fn from((topic, partitions): (&str, Vec<i32>)) -> Self {
        Self { topic: topic.to_owned(), partitions }
    }
}

impl fmt::Display for Owned {
    /// As Kafka's tools write it: `orders(0,1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.partitions.iter().map(ToString::to_string).collect();
        write!(f, "{}({})", self.topic, numbers.join(","))
    }
}

/// `--state`: a group.
#[derive(Clone, Debug, Serialize)]
pub struct StateRow {
    pub group: String,
    pub coordination: Coordination,
    pub r#type: Option<String>,
    pub state: Option<String>,
    pub assignor: Option<String>,
    pub members: Option<usize>,
    pub partitions: Option<usize>,
    /// Of the partitions whose lag is known.
    pub lag: Option<i64>,
    pub note: Option<String>,
}

impl StateRow {
    /// One of which nothing is known yet.
    pub fn new(group: &str, coordination: Coordination) -> Self {
        Self {
            group: group.to_owned(),
            coordination,
            r#type: None,
            state: None,
            assignor: None,
            members: None,
            partitions: None,
            lag: None,
            note: None,
        }
    }
}

impl Row for StateRow {
    const HEAD: &'static [&'static str] =
        &["GROUP", "COORDINATION", "TYPE", "STATE", "ASSIGNOR", "#MEMBERS", "#PARTITIONS", "LAG", "NOTE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            self.coordination.to_string(),
            or_dash(self.r#type.as_ref()),
            or_dash(self.state.as_ref()),
            or_dash(self.assignor.as_ref()),
            or_dash(self.members),
            or_dash(self.partitions),
            or_dash(self.lag),
            or_dash(self.note.as_ref()),
        ]
    }
}
