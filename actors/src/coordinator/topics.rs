//! Where topics and brokers are read from: the nodes below `/brokers`, or Metadata of the brokers themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::{join_all, try_join_all};
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::group::{Input, Phase, Reason};
use kafka_troupe_proto::kafka::metadata::TopicId;
use kafka_troupe_proto::zk::broker::{BrokerRegistration, SecurityProtocol};
use kafka_troupe_proto::zk::topic_filter::INTERNAL_TOPICS;
use kafka_troupe_proto::zk::{paths, topic};

use super::remade::NotNoted;
use super::{RebalanceCoordinator, Znodes};
use crate::fetcher_manager::BrokerAddress;
use crate::lease::SessionEpoch;
use crate::offset_committer::TopicNodes;
use crate::supervise::Slot;
use crate::topic_metadata::{Changes, Outdated, Picture, ReadTopics, TopicMetadata};
use crate::zk_session::ZkError;

/// Which topic stands under a name, by the transaction since which it is known to ZooKeeper to do so. One that is
/// deleted and made again has a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Incarnation(pub(super) i64);

/// A topic as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Topic {
    pub(super) exists: bool,
    /// Ascending; none while it does not exist.
    pub(super) partitions: Vec<i32>,
    /// Not known of topics that do not exist, and where brokers before 2.8 are asked for metadata.
    pub(super) incarnation: Option<Incarnation>,
    /// Others have noted a later one: the rest is as it was read before that.
    pub(super) is_outdated: bool,
}

/// By how much other members may learn later of what changed: ZooKeeper tells all at once.
pub(super) fn learnt_late(config: &ConsumerConfig) -> Duration {
    if config.bootstrap_servers.is_empty() { Duration::ZERO } else { config.metadata_max_age }
}

/// Where to read.
#[derive(Clone)]
pub(super) enum Source {
    ZooKeeper(Znodes),
    /// `bootstrap.servers` is set.
    Metadata(Znodes, Slot<TopicMetadata>),
}

/// One read of it. What is read from ZooKeeper is watched.
pub(super) enum Reading {
    ZooKeeper(Znodes),
    Metadata(Znodes, SessionEpoch, Arc<Picture>, Slot<TopicMetadata>),
}

impl Source {
    pub(super) fn new(config: &ConsumerConfig, znodes: &Znodes, metadata: &Slot<TopicMetadata>) -> Self {
        match config.bootstrap_servers.is_empty() {
            true => Self::ZooKeeper(znodes.clone()),
            false => Self::Metadata(znodes.clone(), metadata.clone()),
        }
    }

    /// Which nodes tell whether an offset is of an earlier topic.
    pub(super) fn topic_nodes(&self) -> TopicNodes {
        match self {
            Self::ZooKeeper(_) => TopicNodes::Kafka,
            Self::Metadata(..) => TopicNodes::Group,
        }
    }

    /// What is written is written in this session only.
    pub(super) async fn open(&self, session: SessionEpoch) -> Result<Reading, String> {
        match self {
            Self::ZooKeeper(znodes) => Ok(Reading::ZooKeeper(znodes.clone())),
            Self::Metadata(znodes, metadata) => {
                let picture = metadata.send(ReadTopics).await;
                let picture =
                    picture.map_err(|_| "the actor that asks for topics is not running".to_owned())?;
                Ok(Reading::Metadata(znodes.clone(), session, picture?, metadata.clone()))
            }
        }
    }
}

impl Reading {
    /// The brokers that can be dialled; one that cannot is named and passed over.
    pub(super) async fn brokers(&self) -> Result<Vec<BrokerAddress>, String> {
        match self {
            Self::ZooKeeper(znodes) => brokers(znodes).await,
            Self::Metadata(_, _, picture, _) => Ok(picture.brokers.clone()),
        }
    }

    /// All topics that a filter may take. Those that brokers call internal and no member of the old consumer knows as
    /// such are left out here, unless `exclude.internal.topics` is false.
    pub(super) async fn names(&self, config: &ConsumerConfig) -> Result<Vec<String>, String> {
        match self {
            Self::ZooKeeper(znodes) => {
                znodes.children(paths::BROKER_TOPICS, true).await.map_err(|error| error.to_string())
            }
            Self::Metadata(_, _, picture, _) => {
                let is_left_out = |name: &str, is_internal| {
                    is_internal && config.exclude_internal_topics && !INTERNAL_TOPICS.contains(&name)
                };
                let topics = picture.topics.iter();
                let topics = topics.filter(|(name, topic)| !is_left_out(name, topic.is_internal));
                Ok(topics.map(|(name, _)| name.to_string()).collect())
            }
        }
    }

    /// What they are now; `before` is what was read last.
    pub(super) async fn topics(
        &self,
        wanted: BTreeSet<Arc<str>>,
        before: &BTreeMap<Arc<str>, Topic>,
    ) -> Result<BTreeMap<Arc<str>, Topic>, String> {
        match self {
            Self::ZooKeeper(znodes) => {
                let reads = wanted.into_iter().map(async |name| {
                    let topic = read_topic(znodes, &name).await?;
                    Ok::<_, String>((name, topic))
                });
                Ok(try_join_all(reads).await?.into_iter().collect())
            }
            Self::Metadata(znodes, session, picture, metadata) => {
                let reads = wanted.into_iter().map(async |name| {
                    let topic = match known_topic(znodes, *session, picture, &name).await {
                        Ok(topic) => topic,
                        Err((_, NotNoted::Failed(why))) => return Err(why),
                        Err((id, NotNoted::Outdated(why))) => {
                            metadata.do_send(Outdated { topic: Arc::clone(&name), id });
                            outdated(&name, &why, before)
                        }
                    };
                    Ok((name, topic))
                });
                Ok(try_join_all(reads).await?.into_iter().collect())
            }
        }
    }
}

/// A node that cannot be read is that of a topic without partitions: others are not concerned.
async fn read_topic(znodes: &Znodes, name: &Arc<str>) -> Result<Topic, String> {
    match znodes.data(&paths::topic(name), true).await {
        Ok((data, stat)) => {
            let partitions = topic::partition_ids(name, &data);
            let unreadable = |error: &topic::TopicError| tracing::warn!(topic = %name, %error, "topic has no partitions that can be told; waiting for its node to change");
            let partitions = partitions.inspect_err(unreadable).unwrap_or_default();
            Ok(Topic {
                exists: true,
                partitions,
                incarnation: Some(Incarnation(stat.czxid)),
                ..Topic::default()
            })
        }
        Err(ZkError::NoNode(_)) => {
            tracing::warn!(topic = %name, path = paths::topic(name), "topic does not exist; waiting for it to be created");
            Ok(Topic::default())
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn known_topic(
    znodes: &Znodes,
    session: SessionEpoch,
    picture: &Picture,
    name: &Arc<str>,
) -> Result<Topic, (TopicId, NotNoted)> {
    let Some(topic) = picture.topics.get(name) else {
        tracing::warn!(topic = %name, "topic does not exist, or we may not describe it (the brokers leave out what an acl does not allow); waiting for it to be created");
        return Ok(Topic::default());
    };
    let incarnation = match topic.id {
        Some(id) => {
            let since = znodes.note_topic(session, name, id).await;
            Some(Incarnation(since.map_err(|why| (id, why))?))
        }
        None => None,
    };
    Ok(Topic { exists: true, partitions: topic.partitions.clone(), incarnation, ..Topic::default() })
}

/// Others are not concerned: it stays as it was, and nothing of it is begun if it was not there. Its node is watched,
/// and brokers that know better are told of.
fn outdated(name: &Arc<str>, why: &str, before: &BTreeMap<Arc<str>, Topic>) -> Topic {
    tracing::warn!(topic = %name, why, "topic cannot be told from an earlier one; what is new of it waits");
    let waiting = || Topic { exists: true, ..Topic::default() };
    let topic = before.get(name).cloned().unwrap_or_else(waiting);
    Topic { is_outdated: true, ..topic }
}

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

/// As the watches of ZooKeeper would tell. Topics that are no concern of ours are none here either, but for what may
/// have been missed by a read that is under way.
impl Handler<Changes> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, changes: Changes, ctx: &mut Self::Context) {
        self.messages += 1;
        let reads = self.machine.phase() == Phase::Reading;
        let concerned = reads || changes.partitions.iter().any(|topic| self.topics.contains_key(topic));
        let reasons = [
            (changes.brokers, Reason::BrokersChanged),
            (changes.topics && (reads || self.filtered), Reason::TopicsChanged),
            (concerned && !changes.partitions.is_empty(), Reason::PartitionsChanged),
        ];
        for (_, reason) in reasons.into_iter().filter(|(is_it, _)| *is_it) {
            self.take(Input::Trigger(reason), ctx);
        }
    }
}
