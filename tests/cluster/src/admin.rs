//! Changes of topics: by request, or by ZooKeeper where brokers have no such requests.

use crate::{
    Client, ClusterError,
    client::{UNKNOWN_TOPIC, not_yet, refusal},
    connection::Api,
    metadata::Metadata,
    poll::{Look, until},
    wire::{Reader, Writer},
    znodes::Znodes,
};
use std::io;

const TIMED_OUT: i16 = 7;
const TOPIC_EXISTS: i16 = 36;
const INVALID_PARTITIONS: i16 = 37;
const INVALID_REPLICATION: i16 = 38;
/// Of the broker. Less than a connection waits for an answer, or what is done in the end would look refused.
const TIMEOUT_MS: i32 = 5_000;

pub(crate) fn create_topic(
    client: &Client,
    name: &str,
    (partitions, replication): (i32, i16),
    configs: &[(&str, &str)],
) -> Result<(), ClusterError> {
    if client.generation.changes_topics_by_request() {
        let mut body = Writer::default();
        body.len(1);
        body.string(name);
        body.i32(partitions);
        body.i16(replication);
        body.len(0); // assignments: the broker's choice
        body.len(configs.len());
        for (key, value) in configs {
            body.string(key);
            body.string(value);
        }
        body.i32(TIMEOUT_MS);
        body.i8(0); // not only a validation
        return by_request(client, Api::CREATE_TOPICS, name, &body.0);
    }
    create_in_zookeeper(client, name, (partitions, replication), configs)
}

fn create_in_zookeeper(
    client: &Client,
    name: &str,
    (partitions, replication): (i32, i16),
    configs: &[(&str, &str)],
) -> Result<(), ClusterError> {
    let api = Api::CREATE_TOPICS;
    let mut znodes = znodes(client)?;
    let failed = || ClusterError::io(format!("create topic {name} in ZooKeeper"));
    let brokers = znodes.brokers().map_err(failed())?;
    let replication = usize::try_from(replication).unwrap_or(0);
    if replication == 0 || replication > brokers.len() {
        let message = format!("there are {} brokers", brokers.len());
        return Err(refusal(api, name, INVALID_REPLICATION, message));
    }
    let topic = format!("/brokers/topics/{name}");
    if znodes.exists(&topic).map_err(failed())? {
        return Err(refusal(api, name, TOPIC_EXISTS, "it stands in ZooKeeper"));
    }
    let configs: Vec<String> = configs.iter().map(|(key, value)| format!("{key:?}:{value:?}")).collect();
    let configs = format!(r#"{{"version":1,"config":{{{}}}}}"#, configs.join(","));
    // in this order, as Kafka's own tool does: the controller acts on the second
    znodes.put(&format!("/config/topics/{name}"), &configs).map_err(failed())?;
    let assignment: Vec<Vec<i32>> =
        (0..partitions).map(|partition| replicas(&brokers, partition, replication)).collect();
    match znodes.create(&topic, &json(&assignment)).map_err(failed())? {
        true => Ok(()),
        false => Err(refusal(api, name, TOPIC_EXISTS, "it was created meanwhile")),
    }
}

pub(crate) fn add_partitions(client: &Client, name: &str, total: i32) -> Result<(), ClusterError> {
    let api = Api::CREATE_PARTITIONS;
    if client.generation.changes_topics_by_request() {
        let mut body = Writer::default();
        body.len(1);
        body.string(name);
        body.i32(total);
        body.i32(-1); // assignments: the broker's choice
        body.i32(TIMEOUT_MS);
        body.i8(0); // not only a validation
        return by_request(client, api, name, &body.0);
    }
    let now = client.partitions(name)?;
    let mut assignment: Vec<Vec<i32>> = now.into_iter().map(|seen| seen.replicas).collect();
    let count = i32::try_from(assignment.len()).unwrap_or(i32::MAX);
    match assignment.first().map(Vec::len) {
        None => Err(refusal(api, name, UNKNOWN_TOPIC, "")),
        Some(_) if count >= total => Err(refusal(api, name, INVALID_PARTITIONS, format!("it has {count}"))),
        Some(replication) => {
            let failed = || ClusterError::io(format!("grow topic {name} in ZooKeeper"));
            let mut znodes = znodes(client)?;
            let brokers = znodes.brokers().map_err(failed())?;
            assignment.extend((count..total).map(|partition| replicas(&brokers, partition, replication)));
            znodes.put(&format!("/brokers/topics/{name}"), &json(&assignment)).map_err(failed())
        }
    }
}

/// Also waits until the topic is gone from ZooKeeper, if it stood there, so that it can be created anew: brokers forget
/// it before.
pub(crate) fn delete_topic(client: &Client, name: &str) -> Result<(), ClusterError> {
    let failed = || ClusterError::io(format!("delete topic {name} in ZooKeeper"));
    let (topic, order) = (format!("/brokers/topics/{name}"), format!("/admin/delete_topics/{name}"));
    if client.generation.changes_topics_by_request() {
        let mut body = Writer::default();
        body.len(1);
        body.string(name);
        body.i32(TIMEOUT_MS);
        by_request(client, Api::DELETE_TOPICS, name, &body.0)?;
        if client.zookeeper.is_none() {
            return Ok(());
        }
    } else {
        let mut znodes = znodes(client)?;
        if !znodes.exists(&topic).map_err(failed())? {
            return Err(refusal(Api::DELETE_TOPICS, name, UNKNOWN_TOPIC, ""));
        }
        znodes.create(&order, "").map_err(failed())?;
    }
    let mut session = None;
    until(&format!("end of {topic} in ZooKeeper"), || {
        let left = still_there(client, &mut session, &[&topic, &order]);
        if left.is_err() {
            // one of several servers may have gone
            session = None;
        }
        Ok(match left {
            Ok(false) => Look::Done(()),
            Ok(true) => Look::NotYet("it exists".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
}

fn still_there(client: &Client, session: &mut Option<Znodes>, nodes: &[&str]) -> Result<bool, ClusterError> {
    let znodes = match session {
        Some(znodes) => znodes,
        None => session.insert(znodes(client)?),
    };
    let left = nodes.iter().try_fold(false, |left, node| Ok(left || znodes.exists(node)?));
    left.map_err(ClusterError::io("look for a node in ZooKeeper"))
}

fn znodes(client: &Client) -> Result<Znodes, ClusterError> {
    let Some(connect) = &client.zookeeper else {
        let what = "topics of brokers before 1.0 are changed in ZooKeeper, of which this client knows none";
        return Err(ClusterError::Invalid(what.to_owned()));
    };
    Znodes::open(connect).map_err(ClusterError::io(format!("connect to ZooKeeper at {connect}")))
}

/// The brokers of a partition, going round.
fn replicas(brokers: &[i32], partition: i32, replication: usize) -> Vec<i32> {
    let first = usize::try_from(partition).unwrap_or(0) % brokers.len();
    brokers.iter().cycle().skip(first).take(replication).copied().collect()
}

/// What `/brokers/topics/[topic]` says.
fn json(assignment: &[Vec<i32>]) -> String {
    let numbered = assignment.iter().enumerate();
    let partitions: Vec<String> =
        numbered.map(|(partition, ids)| format!(r#""{partition}":{ids:?}"#)).collect();
    format!(r#"{{"version":1,"partitions":{{{}}}}}"#, partitions.join(","))
}

/// Sends a change of one topic to the controller until it is taken or refused. Once an answer was lost, "it is so
/// already" means that the lost one said yes.
fn by_request(client: &Client, api: Api, topic: &str, body: &[u8]) -> Result<(), ClusterError> {
    let mut was_lost = false;
    until(&format!("{} of {topic}", api.name), || {
        let answer = client
            .controller()
            .and_then(|mut controller| controller.call(api, body))
            .and_then(|response| change(api, &mut Reader(&response)));
        match answer {
            Ok((code, message)) => answered(api, topic, code, message, was_lost),
            Err(error) => {
                was_lost = true;
                Ok(Look::NotYet(error.to_string()))
            }
        }
    })
}

fn answered(
    api: Api,
    topic: &str,
    code: i16,
    message: String,
    was_lost: bool,
) -> Result<Look<()>, ClusterError> {
    match code {
        // accepted, and what it leads to is waited for anyway
        0 | TIMED_OUT => Ok(Look::Done(())),
        _ if was_lost && Some(code) == is_so_already(api) => Ok(Look::Done(())),
        UNKNOWN_TOPIC => Err(refusal(api, topic, code, message)),
        _ => not_yet(api, topic, code, message),
    }
}

/// What a change that was made before is refused with.
fn is_so_already(api: Api) -> Option<i16> {
    match api.name {
        name if name == Api::CREATE_TOPICS.name => Some(TOPIC_EXISTS),
        name if name == Api::CREATE_PARTITIONS.name => Some(INVALID_PARTITIONS),
        name if name == Api::DELETE_TOPICS.name => Some(UNKNOWN_TOPIC),
        _ => None,
    }
}

/// Error code and message of a change of one topic.
fn change(api: Api, response: &mut Reader<'_>) -> io::Result<(i16, String)> {
    response.i32()?; // throttle time
    let has_message = api.name != Api::DELETE_TOPICS.name;
    let results = response.vec(|result| {
        result.string()?; // topic
        let code = result.i16()?;
        Ok((code, if has_message { result.string()? } else { String::new() }))
    })?;
    results.into_iter().next().ok_or_else(|| io::Error::other("no result"))
}

/// Whether a topic is not in a broker's view.
pub(crate) fn gone(metadata: &Metadata, topic: &str) -> Result<(), String> {
    let gone = metadata.topics.iter().all(|(code, name, _)| name != topic || *code == UNKNOWN_TOPIC);
    if gone { Ok(()) } else { Err("a broker knows it".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_whose_answer_was_lost_may_be_made_already() {
        let changes = [
            (Api::CREATE_TOPICS, TOPIC_EXISTS),
            (Api::CREATE_PARTITIONS, INVALID_PARTITIONS),
            (Api::DELETE_TOPICS, UNKNOWN_TOPIC),
        ];
        for (api, code) in changes {
            let after = |was_lost| answered(api, "t", code, String::new(), was_lost);
            assert!(matches!(after(true), Ok(Look::Done(()))), "{}", api.name);
            assert!(
                matches!(after(false), Err(ClusterError::Kafka { code: refused, .. }) if refused == code),
                "{}",
                api.name
            );
        }
    }
}
