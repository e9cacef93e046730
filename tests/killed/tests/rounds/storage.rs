//! Where a round's offsets are stored, and what stands there. Every group has a topic of the same name.

use std::collections::BTreeMap;
use std::fmt;

use troupe_cluster::{Change, Cluster};

/// `offsets.storage` and `dual.commit.enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    ZooKeeper,
    Kafka,
    Both,
}

impl Storage {
    pub fn properties(self) -> &'static [&'static str] {
        match self {
            Self::ZooKeeper => &["offsets.storage=zookeeper"],
            Self::Kafka => &["offsets.storage=kafka", "dual.commit.enabled=false"],
            Self::Both => &["offsets.storage=kafka", "dual.commit.enabled=true"],
        }
    }

    pub fn stores(self) -> &'static [Store] {
        match self {
            Self::ZooKeeper => &[Store::ZooKeeper],
            Self::Kafka => &[Store::Kafka],
            Self::Both => &[Store::ZooKeeper, Store::Kafka],
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ZooKeeper => "zookeeper",
            Self::Kafka => "kafka",
            Self::Both => "both",
        })
    }
}

/// One place where offsets are stored, which remembers every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    ZooKeeper,
    Kafka,
}

/// By group and partition, every value that was ever stored, in order.
pub type Values = BTreeMap<(String, i32), Vec<i64>>;

impl Store {
    pub fn values(self, cluster: &Cluster) -> Values {
        let mut values = Values::new();
        let all: Vec<(String, i32, i64)> = match self {
            Self::ZooKeeper => {
                let all = cluster.zookeeper().transaction_log().more().expect("it has a log").into_iter();
                all.filter_map(|transaction| in_zookeeper(&transaction.change)).collect()
            }
            Self::Kafka => {
                let all = cluster.stored_offsets().expect("they can be read").into_iter();
                all.filter_map(|it| Some((it.group, it.partition, it.offset?))).collect()
            }
        };
        for (group, partition, offset) in all {
            values.entry((group, partition)).or_default().push(offset);
        }
        values
    }
}

/// `/consumers/GROUP/offsets/TOPIC/PARTITION`.
fn in_zookeeper(change: &Change) -> Option<(String, i32, i64)> {
    let (Change::Create { path, data, .. } | Change::SetData { path, data }) = change else { return None };
    let (group, rest) = path.strip_prefix("/consumers/")?.split_once("/offsets/")?;
    let (_, partition) = rest.split_once('/')?;
    let text = String::from_utf8(data.clone()?).expect("an offset is text");
    let partition = partition.parse().expect("a partition is a number");
    Some((group.to_owned(), partition, text.parse().expect("an offset is a number")))
}
