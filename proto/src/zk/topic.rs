//! Topics: `/brokers/topics/<topic>`, of which a consumer uses the partition numbers only.

use serde_json::Value;
use thiserror::Error;

/// A topic node that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("/brokers/topics/{topic} cannot be read: {reason}")]
#[non_exhaustive]
pub struct TopicError {
    /// The topic's name.
    pub topic: String,
    /// What is wrong with the node.
    pub reason: String,
}

/// Partition numbers of a topic, in numeric order, from its JSON of version 1 (Kafka ≤2.3), 2 or 3 (≥2.8).
///
/// A node without data or without `partitions` has none. The version is not looked at, as the old consumer
/// does not.
pub fn partition_ids(topic: &str, data: &[u8]) -> Result<Vec<i32>, TopicError> {
    let error = |reason: String| TopicError { topic: topic.to_owned(), reason };
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let node: Value = serde_json::from_slice(data).map_err(|why| error(format!("not JSON: {why}")))?;
    let partitions = match node.get("partitions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(partitions) => {
            partitions.as_object().ok_or_else(|| error("`partitions` is not an object".into()))?
        }
    };
    let parse = |key: &String| key.parse().map_err(|_| error(format!("partition {key:?} is not a number")));
    let mut ids = partitions.keys().map(parse).collect::<Result<Vec<i32>, _>>()?;
    ids.sort_unstable();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_one_to_three_give_sorted_ids() {
        let v1 = br#"{"version":1,"partitions":{"4":[1],"10":[1],"0":[1],"2":[1]}}"#;
        assert_eq!(partition_ids("t", v1), Ok(vec![0, 2, 4, 10]));
        let v2 =
            br#"{"version":2,"partitions":{"1":[1],"0":[1]},"adding_replicas":{},"removing_replicas":{}}"#;
        assert_eq!(partition_ids("t", v2), Ok(vec![0, 1]));
        let v3 = br#"{"partitions":{"0":[1]},"topic_id":"a3oj59xUSQGcG96orHDW4Q","adding_replicas":{},"removing_replicas":{},"version":3}"#;
        assert_eq!(partition_ids("t", v3), Ok(vec![0]));
    }

    #[test]
    fn nothing_there_is_no_partition() {
        for data in [&b""[..], b"{}", br#"{"version":1}"#, br#"{"partitions":null}"#, br#"{"partitions":{}}"#]
        {
            assert_eq!(partition_ids("t", data), Ok(Vec::new()));
        }
    }

    #[test]
    fn garbage_names_the_topic() {
        for data in [&b"x"[..], br#"{"partitions":[0]}"#, br#"{"partitions":{"a":[1]}}"#] {
            let error = partition_ids("orders", data).unwrap_err().to_string();
            assert!(error.starts_with("/brokers/topics/orders cannot be read: "), "{error}");
        }
    }
}
