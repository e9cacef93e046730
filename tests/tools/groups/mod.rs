//! `troupe groups list|describe|delete` beside `kafka.admin.ConsumerGroupCommand` and
//! `kafka.tools.ConsumerOffsetChecker`.

mod delete;
mod describe;
mod list;
mod odd_groups;
mod odd_names;
mod other_types;

use serde_json::Value;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::old_tools::{Ended, old_tool, troupe};

/// `kafka-consumer-groups` of a release.
fn old_groups(cluster: &Cluster, version: KafkaVersion, arguments: &[&str]) -> Ended {
    let class = match version {
        KafkaVersion::V3_9_1 | KafkaVersion::V4_1_1 | KafkaVersion::V4_4_0 => {
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        }
        _ => "kafka.admin.ConsumerGroupCommand",
    };
    // it gives brokers 5 s, which is little on a busy machine
    let asks_brokers = arguments.contains(&"--bootstrap-server") && arguments.contains(&"--describe");
    let patience: &[&str] = if asks_brokers { &["--timeout", "60000"] } else { &[] };
    old_tool(cluster, version, class, &[arguments, patience].concat())
}

/// Which servers a tool is told of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    ZooKeeper,
    Kafka,
    Both,
}

impl Of {
    fn arguments(self, cluster: &Cluster) -> Vec<String> {
        let zookeeper = ["--zookeeper".to_owned(), cluster.zookeeper_connect()];
        let kafka = ["--bootstrap-server".to_owned(), cluster.bootstrap()];
        match self {
            Self::ZooKeeper => zookeeper.into(),
            Self::Kafka => kafka.into(),
            Self::Both => zookeeper.into_iter().chain(kafka).collect(),
        }
    }
}

/// `troupe groups …` about these servers, in JSON.
fn ours(cluster: &Cluster, of: Of, command: &str, more: &[&str]) -> Ended {
    ours_as(cluster, of, command, more, "json")
}

/// `troupe groups …` about these servers, as a table.
fn our_table(cluster: &Cluster, of: Of, command: &str, more: &[&str]) -> Ended {
    ours_as(cluster, of, command, more, "table")
}

fn ours_as(cluster: &Cluster, of: Of, command: &str, more: &[&str], output: &str) -> Ended {
    let servers = of.arguments(cluster);
    let servers: Vec<_> = servers.iter().map(String::as_str).collect();
    troupe(&[&["--output", output, "groups", command], &servers[..], more].concat())
}

/// A cell of an old tool: `-` and its like are nothing.
fn cell(text: &str) -> Option<String> {
    (!matches!(text, "-" | "none" | "unknown" | "")).then(|| text.to_owned())
}

/// What of a row is text or a number.
fn field(row: &Value, key: &str) -> Option<String> {
    match row.get(key).unwrap_or_else(|| panic!("no {key} in {row}")) {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Fields of each row, sorted.
fn fields<const N: usize>(rows: &[Value], keys: [&str; N]) -> Vec<[Option<String>; N]> {
    let mut rows: Vec<_> = rows.iter().map(|row| keys.map(|key| field(row, key))).collect();
    rows.sort_unstable();
    rows
}

/// Cells of each row of a table after the line of heads that begins with `first`, sorted.
fn cells<const N: usize>(ended: &Ended, first: &str, columns: [usize; N]) -> Vec<[Option<String>; N]> {
    let words = ended.words();
    let rows = words.iter().skip_while(|words| words[0] != first).skip(1);
    let mut rows: Vec<_> =
        rows.map(|words| columns.map(|column| words.get(column).and_then(|text| cell(text)))).collect();
    rows.sort_unstable();
    rows
}
