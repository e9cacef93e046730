//! Reads the group: members from ZooKeeper, each read and watched in one operation; topics and brokers from their
//! [source](super::topics).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use kafka_troupe_proto::config::{AssignmentStrategy, ConsumerConfig};
use kafka_troupe_proto::group::{GroupSnapshot, Member};
use kafka_troupe_proto::zk::registration::{Registration, Subscription};
use kafka_troupe_proto::zk::topic_filter::TopicFilterError;

use super::Znodes;
use super::topics::{Source, Topic};
use crate::fetcher_manager::BrokerAddress;
use crate::lease::SessionEpoch;
use crate::zk_session::ZkError;

/// What one read of the group gave, for the machine and for the others.
pub(super) struct Read {
    pub(super) snapshot: GroupSnapshot,
    pub(super) brokers: Vec<BrokerAddress>,
    /// Those that concern us.
    pub(super) topics: BTreeMap<Arc<str>, Topic>,
    /// Somebody subscribes by a filter, so that the list of topics matters.
    pub(super) filtered: bool,
}

/// One read of the group; `before` is what was read of topics the last time. An error means: try again later; it names
/// the node, or the brokers.
pub(super) async fn read(
    znodes: Znodes,
    source: Source,
    session: SessionEpoch,
    config: Arc<ConsumerConfig>,
    own: Subscription,
    before: BTreeMap<Arc<str>, Topic>,
) -> Result<Read, String> {
    let reading = source.open(session).await?;
    let brokers = reading.brokers().await?;
    let registrations = registrations(&znodes, true).await?;
    let filtered = registrations.iter().any(|(_, subscription)| subscription.topic_filter().is_some());
    let topics = if filtered { reading.names(&config).await? } else { Vec::new() };
    let expand = |id: String, subscription: &Subscription| {
        let path = znodes.paths.id(&id);
        let member = Member::expand(id, subscription, &topics, config.kept_out_topics());
        member.map_err(|error| unusable(&path, &error))
    };
    let members = registrations.into_iter().map(|(id, subscription)| expand(id, &subscription));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let own = expand("our own".to_owned(), &own)?;
    let topics = reading.topics(wanted_topics(&members, own, &config), &before).await?;
    let partitions =
        topics.iter().map(|(name, topic)| (Arc::clone(name), topic.partitions.clone())).collect();
    let snapshot = GroupSnapshot { members, partitions, brokers: brokers.len() };
    Ok(Read { snapshot, brokers, topics, filtered })
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
