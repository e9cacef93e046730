//! Reads the group: members, topics and brokers, each read and watched in one operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use kafka_troupe_proto::config::{AssignmentStrategy, ConsumerConfig};
use kafka_troupe_proto::group::{GroupSnapshot, Member};
use kafka_troupe_proto::zk::broker::{BrokerRegistration, SecurityProtocol};
use kafka_troupe_proto::zk::registration::{Registration, Subscription};
use kafka_troupe_proto::zk::topic_filter::TopicFilterError;
use kafka_troupe_proto::zk::{paths, topic};

use super::Znodes;
use crate::fetcher_manager::BrokerAddress;
use crate::zk_session::ZkError;

/// One read of the group. An error means: try again later; it names the node.
pub(super) async fn read(
    znodes: Znodes,
    config: Arc<ConsumerConfig>,
    own: Subscription,
) -> Result<(GroupSnapshot, Vec<BrokerAddress>), String> {
    let brokers = brokers(&znodes).await?;
    let registrations = registrations(&znodes, true).await?;
    let filtered = registrations.iter().any(|(_, subscription)| subscription.topic_filter().is_some());
    let topics = match filtered {
        true => znodes.children(paths::BROKER_TOPICS, true).await.map_err(|error| error.to_string())?,
        false => Vec::new(),
    };
    let expand = |id: String, subscription: &Subscription| {
        let path = znodes.paths.id(&id);
        let member = Member::expand(id, subscription, &topics, config.kept_out_topics());
        member.map_err(|error| unusable(&path, &error))
    };
    let members = registrations.into_iter().map(|(id, subscription)| expand(id, &subscription));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let own = expand("our own".to_owned(), &own)?;
    let wanted = wanted_topics(&members, own, &config);
    let partitions = partitions(&znodes, wanted).await?;
    Ok((GroupSnapshot { members, partitions, brokers: brokers.len() }, brokers))
}

/// Whether this group's plan can be computed here. Asked before joining it: the others would leave a share to a member
/// that then does not know which, and so reads none of it.
pub(super) async fn check_peers(znodes: &Znodes) -> Result<(), String> {
    let registrations = registrations(znodes, false).await?;
    registrations.iter().try_for_each(|(id, subscription)| match subscription.topic_filter() {
        Some(Err(error)) => Err(unusable(&znodes.paths.id(id), &error)),
        Some(Ok(_)) | None => Ok(()),
    })
}

/// Members that vanish between listing and reading are not members any more; the watch tells.
async fn registrations(znodes: &Znodes, watch: bool) -> Result<Vec<(String, Subscription)>, String> {
    let ids = znodes.children(&znodes.paths.ids(), watch).await.map_err(|error| error.to_string())?;
    let reads = ids.into_iter().map(async |id| match znodes.data(&znodes.paths.id(&id), false).await {
        Ok((data, _)) => Ok(Some((id, data))),
        Err(ZkError::NoNode(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    });
    let read = try_join_all(reads).await?;
    Ok(read.into_iter().flatten().filter_map(|(id, data)| parse(znodes, id, &data)).collect())
}

/// An unreadable record stops every Scala member; we plan without it and say so (rule 11).
fn parse(znodes: &Znodes, id: String, data: &[u8]) -> Option<(String, Subscription)> {
    match Registration::parse(&id, data) {
        Ok(registration) => Some((id, registration.subscription)),
        Err(error) => {
            let path = znodes.paths.id(&id);
            tracing::warn!(path, %error, "registration cannot be read; planning without this member");
            None
        }
    }
}

/// A filter that Java's engine runs and ours does not is an error, unlike a record that nobody can read: the member
/// takes part, and its peers leave a share to it, so a plan without it would take its partitions from it. No plan is
/// made then: what we own flows on, and nothing is claimed.
fn unusable(path: &str, error: &TopicFilterError) -> String {
    format!("no plan can be made while {path} is in the group, for its topics cannot be told: {error}")
}

/// Range needs the partitions of our own topics only; round-robin those of all members.
fn wanted_topics(members: &[Member], own: Member, config: &ConsumerConfig) -> BTreeSet<Arc<str>> {
    if config.partition_assignment_strategy == AssignmentStrategy::Range {
        return own.topics.into_keys().collect();
    }
    members.iter().flat_map(|member| member.topics.keys().cloned()).collect()
}

async fn partitions(
    znodes: &Znodes,
    topics: BTreeSet<Arc<str>>,
) -> Result<BTreeMap<Arc<str>, Vec<i32>>, String> {
    let reads = topics.into_iter().map(async |name| match znodes.data(&paths::topic(&name), true).await {
        Ok((data, _)) => {
            let ids = topic::partition_ids(&name, &data).map_err(|error| error.to_string())?;
            Ok((name, ids))
        }
        Err(ZkError::NoNode(_)) => {
            tracing::warn!(topic = %name, path = paths::topic(&name), "topic does not exist; waiting for it to be created");
            Ok((name, Vec::new()))
        }
        Err(error) => Err(error.to_string()),
    });
    Ok(try_join_all(reads).await?.into_iter().collect())
}

/// The brokers that can be dialled; one that cannot is named and passed over.
async fn brokers(znodes: &Znodes) -> Result<Vec<BrokerAddress>, String> {
    let ids = znodes.children(paths::BROKER_IDS, true).await.map_err(|error| error.to_string())?;
    let ids = ids.iter().filter_map(|id| id.parse::<i32>().ok());
    let reads = ids.map(async |id| (id, znodes.data(&paths::broker(id), false).await));
    let mut found = Vec::new();
    for (id, read) in join_all(reads).await {
        match read {
            Ok((data, _)) => found.extend(address(id, &data)),
            Err(ZkError::NoNode(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(found)
}

fn address(id: i32, data: &[u8]) -> Option<BrokerAddress> {
    let broker = BrokerRegistration::parse(id, data);
    let address = broker.and_then(|broker| {
        let (host, port) = broker.address(SecurityProtocol::Plaintext)?;
        Ok(BrokerAddress { id, host: host.to_owned(), port })
    });
    address.inspect_err(|error| tracing::warn!(%error, "broker cannot be used")).ok()
}
