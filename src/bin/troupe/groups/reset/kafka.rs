//! A group that Kafka coordinates. Its coordinator takes offsets from outside only while it has no members.

use kafka_troupe::admin::{AdminError, KafkaAdmin, KafkaGroup};
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::group::reset::StoredOffsets;

use super::plan::{Found, Plan, Written};
use crate::exit::Failure;

/// Types of groups whose offsets are committed ones.
const TYPES: [&str; 2] = ["classic", "consumer"];

/// Looks at it.
pub async fn find(kafka: &KafkaAdmin, group: &str) -> Result<Found, Failure> {
    let (exists, busy) = users(kafka, group).await?;
    let mut found = Found { exists, busy, ..Found::default() };
    for (key, committed) in kafka.committed(group, None).await? {
        found.exists = true;
        found.stored.insert(key, StoredOffsets { zookeeper: None, kafka: Some(committed.offset) });
    }
    Ok(found)
}

/// Whether brokers coordinate such a group, and why it takes no offsets.
pub async fn users(kafka: &KafkaAdmin, group: &str) -> Result<(bool, Vec<String>), Failure> {
    let KafkaGroup { group_type, state, members, .. } = match kafka.describe(group).await {
        Ok(described) => described,
        // one that does not exist may be given offsets to begin at; 0.8 coordinates none
        Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. }) => {
            return Ok((false, Vec::new()));
        }
        Err(error) => return Err(error.into()),
    };
    let why = match state.as_str() {
        _ if !TYPES.contains(&group_type.as_str()) => {
            format!("it is a {group_type} group, which keeps no such offsets")
        }
        "Empty" | "Dead" => return Ok((true, Vec::new())),
        _ => {
            let members: Vec<&str> = members.iter().map(|it| it.id.as_str()).collect();
            format!(
                "brokers coordinate it, and it is {state}, not Empty: stop its members {} first",
                members.join(", ")
            )
        }
    };
    Ok((true, vec![why]))
}

/// Sets the offsets.
pub async fn write(kafka: &KafkaAdmin, plan: &Plan) -> Written {
    let mut written = Written::default();
    commit(kafka, &plan.group, &plan.offsets(), &mut written).await;
    written
}

/// Sets offsets in Kafka.
pub async fn commit(
    kafka: &KafkaAdmin,
    group: &str,
    offsets: &[(TopicPartition, i64)],
    written: &mut Written,
) {
    match kafka.commit(group, offsets).await {
        Ok(answers) => {
            let refused: Vec<_> =
                answers.into_iter().filter_map(|(key, answer)| Some((key, answer.err()?))).collect();
            if !refused.is_empty() {
                written.failures.push("Kafka did not take all offsets".to_owned());
            }
            written
                .errors
                .extend(refused.into_iter().map(|(key, why)| (key, format!("not set in Kafka: {why}"))));
        }
        Err(error) => written.failures.push(format!("it is not known what was set in Kafka: {error}")),
    }
}
