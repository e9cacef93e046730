//! Brokers and topics as ZooKeeper shows them.

use std::fmt::Write as _;

use kafka_troupe_proto::zk::paths;

use super::{MemoryBrokers, PORT, host_of};

impl MemoryBrokers {
    /// Brings the nodes up to date.
    pub(super) fn show(&self) {
        let state = self.state();
        let Some(zookeeper) = state.zookeeper.clone() else { return };
        let brokers = state.brokers.clone();
        let topics: Vec<_> = state.topics.iter().map(|(name, it)| (name.clone(), it.len())).collect();
        drop(state);
        for (id, up) in brokers {
            let (path, host) = (paths::broker(id), host_of(id));
            match (up, zookeeper.node(&path)) {
                (true, None) => {
                    let node = format!(
                        r#"{{"jmx_port":-1,"timestamp":"0","host":"{host}","version":1,"port":{PORT}}}"#
                    );
                    zookeeper.put(&path, node.as_bytes());
                }
                (false, Some(_)) => zookeeper.remove(&path),
                _ => {}
            }
        }
        for (topic, partitions) in topics {
            let (path, node) = (paths::topic(&topic), topic_node(partitions));
            if zookeeper.node(&path).is_none_or(|known| known.data != node.as_bytes()) {
                zookeeper.put(&path, node.as_bytes());
            }
        }
    }
}

fn topic_node(partitions: usize) -> String {
    let mut node = String::from(r#"{"version":1,"partitions":{"#);
    for partition in 0..partitions {
        // writing to a string cannot fail
        let _ = write!(node, r#"{}"{partition}":[0]"#, if partition > 0 { "," } else { "" });
    }
    node + "}}"
}
