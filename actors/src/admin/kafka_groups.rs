//! Groups that brokers know.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::consumer_group_describe::ConsumerGroupDescribeRequest;
use kafka_troupe_proto::kafka::delete_groups::DeleteGroupsRequest;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::list_groups::{ListGroupsRequest, ListedGroup};
use kafka_troupe_proto::kafka::offsets_topic::OFFSETS_TOPIC;

use super::kafka::Trouble;
use super::kafka_describe::describe_at;
use super::{AdminError, KafkaAdmin};
use crate::broker_connection::BrokerConnection;
use crate::fetcher_manager::{BrokerAddress, find_leaders};

/// The type of the groups that there were first.
pub(super) const CLASSIC: &str = "classic";

/// Those whose offsets are committed ones.
const TYPES: [&str; 2] = [CLASSIC, "consumer"];

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KafkaGroupListing {
    /// Its name.
    pub name: String,
    /// `classic`, `consumer` (KIP-848), `share`, `streams`; none where a broker (3.7 only) does not tell.
    pub group_type: Option<String>,
    /// `Stable`, `Empty`, and so on; none before 2.6.
    pub state: Option<String>,
    /// What its members speak among themselves: `consumer`, or `connect` and so on; empty where it only stores offsets.
    pub protocol_type: String,
}

/// A group as its coordinator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KafkaGroup {
    /// Its name.
    pub name: String,
    /// `classic`, `consumer` (KIP-848), `share` or `streams`.
    pub group_type: String,
    /// `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance` (`AwaitingSync` below 1.1), `Assigning`,
    /// `Reconciling`.
    pub state: String,
    /// The assignor; empty without members.
    pub assignor: String,
    /// In the order of their ids. Those of a share or streams group are not asked for: always none.
    pub members: Vec<KafkaMember>,
}

/// A member of such a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KafkaMember {
    /// The coordinator's name for it.
    pub id: String,
    /// Kafka property `client.id`.
    pub client_id: String,
    /// Its address as the coordinator sees it: `127.0.0.1`.
    pub host: String,
    /// Kafka property `group.instance.id`; none where it is not set, and before 2.4.
    pub instance: Option<String>,
    /// What it has, in order. None while a classic group rebalances, and where it is no consumer.
    pub partitions: Vec<TopicPartition>,
}

impl KafkaAdmin {
    /// The groups that brokers coordinate, in order of their names; and why some brokers did not tell theirs.
    ///
    /// # Errors
    /// [`AdminError::Unsupported`] with brokers of 0.8 alone, [`AdminError::Unreachable`] if none told.
    pub async fn groups(&self) -> Result<(Vec<KafkaGroupListing>, Vec<String>), AdminError> {
        let brokers = self.persist("brokers", async || self.picture().await.map(|it| it.brokers)).await?;
        let asked = join_all(brokers.iter().map(async |broker| {
            let what = format!("groups of broker {}", broker.id);
            self.persist(what, async || self.groups_at(broker).await).await
        }));
        let (mut groups, mut errors) = (BTreeMap::new(), Vec::new());
        for told in asked.await {
            match told {
                Ok(told) => groups.extend(told.into_iter().map(|it| (it.name.clone(), it))),
                Err(error) => errors.push(error),
            }
        }
        let mut reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
        match errors.pop() {
            Some(error @ AdminError::Unsupported { .. }) if reasons.len() == brokers.len() => Err(error),
            Some(_) if reasons.len() == brokers.len() => {
                Err(AdminError::Unreachable { why: reasons.join("; ") })
            }
            _ => {
                reasons.extend(self.persist("leaders", async || self.leaderless().await).await?);
                Ok((groups.into_values().collect(), reasons))
            }
        }
    }

    /// A broker that is not up any more tells nothing, and is missed by nobody but its partitions of offsets.
    async fn leaderless(&self) -> Result<Option<String>, Trouble> {
        if !self.picture().await?.topics.contains_key(OFFSETS_TOPIC) {
            return Ok(None);
        }
        let topics = BTreeSet::from([Arc::from(OFFSETS_TOPIC)]);
        let found = find_leaders(self.brokers(), self.options.clone(), topics).await;
        let (_, leaders) = found.map_err(Trouble::Passing)?;
        let count = leaders.partitions_of(OFFSETS_TOPIC);
        let keys = (0..i32::try_from(count).unwrap_or(0)).map(|it| TopicPartition::new(OFFSETS_TOPIC, it));
        let without = keys.filter(|key| leaders.of(key).is_err()).count();
        let why = || format!("{without} of {count} partitions of {OFFSETS_TOPIC} have no leader");
        Ok((without > 0).then(why))
    }

    pub(super) async fn groups_at(&self, broker: &BrokerAddress) -> Result<Vec<KafkaGroupListing>, Trouble> {
        let mut connection = self.dial(broker).await?;
        list(&mut connection).await
    }

    /// A group as its coordinator describes it.
    ///
    /// # Errors
    /// [`AdminError::NoSuchGroup`]; [`AdminError::Unsupported`] below 0.9, of a group that has no offsets there.
    pub async fn describe(&self, group: &str) -> Result<KafkaGroup, AdminError> {
        let what = format!("description of group {group:?}");
        let described = async || match self.coordinator_if_any(group).await? {
            Some(mut connection) => describe_at(&mut connection, group).await,
            None => Err(Trouble::NoSuchGroup),
        };
        match self.persist_for_group(what, group, described).await {
            // brokers before 0.10.1 describe no group that only has offsets, those before 0.9 none
            Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. })
                if !self.committed(group, None).await?.is_empty() =>
            {
                Ok(KafkaGroup::of_offsets(group))
            }
            described => described,
        }
    }

    /// Deletes a group without members, with its offsets.
    ///
    /// # Errors
    /// [`AdminError::NoSuchGroup`], [`AdminError::Active`], [`AdminError::OfAnotherType`]; [`AdminError::Unsupported`]
    /// below 1.1 of a group that is there.
    pub async fn delete_group(&self, group: &str) -> Result<(), AdminError> {
        self.check_type(group).await?;
        let request = DeleteGroupsRequest { groups: vec![group.into()] };
        let was_sent = Cell::new(false);
        let deleted = async || {
            let coordinator = self.coordinator_if_any(group).await?;
            let was_sent = was_sent.replace(true);
            let answer = coordinator.ok_or(Trouble::NoSuchGroup)?.call(&request).await?;
            let error = answer.results.first().map_or(ErrorCode::UnknownServerError, |(_, error)| *error);
            match error.ok().map_err(Trouble::from) {
                // by the request whose answer was lost
                Err(Trouble::NoSuchGroup) if was_sent => Ok(()),
                deleted => deleted,
            }
        };
        match self.persist_for_group(format!("deletion of group {group:?}"), group, deleted).await {
            Err(AdminError::Active { group, .. }) => Err(self.active(group).await),
            Err(why @ AdminError::Unsupported { .. }) => match self.describe(group).await {
                Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. }) => {
                    Err(AdminError::NoSuchGroup { group: group.to_owned() })
                }
                _ => Err(why),
            },
            deleted => deleted,
        }
    }

    /// Brokers delete groups of all types; what cannot be described is left to them.
    pub(super) async fn check_type(&self, group: &str) -> Result<(), AdminError> {
        match self.describe(group).await {
            Ok(KafkaGroup { name: group, group_type, .. }) if !TYPES.contains(&group_type.as_str()) => {
                Err(AdminError::OfAnotherType { group, group_type })
            }
            Err(missing @ AdminError::NoSuchGroup { .. }) => Err(missing),
            _ => Ok(()),
        }
    }

    /// That a group has members, and who they are.
    pub(super) async fn active(&self, group: String) -> AdminError {
        let members = self.describe(&group).await.map(|it| it.members).unwrap_or_default();
        AdminError::Active { group, members: members.into_iter().map(|it| it.id).collect() }
    }
}

impl KafkaGroup {
    /// It has offsets and nothing else.
    fn of_offsets(group: &str) -> Self {
        Self {
            name: group.to_owned(),
            group_type: CLASSIC.to_owned(),
            state: "Empty".to_owned(),
            assignor: String::new(),
            members: Vec::new(),
        }
    }
}

/// The groups of one broker.
pub(super) async fn list(connection: &mut BrokerConnection) -> Result<Vec<KafkaGroupListing>, Trouble> {
    let answer = connection.call(&ListGroupsRequest).await?;
    answer.error.ok()?;
    // who knows of none but classic groups
    let all_classic = connection.version_of::<ConsumerGroupDescribeRequest>().is_err();
    Ok(answer.groups.into_iter().map(|group| listing(group, all_classic)).collect())
}

fn listing(group: ListedGroup, is_classic: bool) -> KafkaGroupListing {
    let told = group.group_type.map(|it| it.to_lowercase()).filter(|it| !it.is_empty());
    KafkaGroupListing {
        name: group.group.to_string(),
        group_type: told.or(is_classic.then(|| CLASSIC.to_owned())),
        state: group.state.map(|state| state.to_string()),
        protocol_type: group.protocol_type.to_string(),
    }
}
