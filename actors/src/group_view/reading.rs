//! One read of the group: members, owners, topics, offsets, in this order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::{ConsumerConfig, OffsetsStorage};
use kafka_troupe_proto::group::Member;
use kafka_troupe_proto::schemas::group::v1::GroupView;
use kafka_troupe_proto::zk::offset::parse_offset;
use kafka_troupe_proto::zk::registration::Registration;
use kafka_troupe_proto::zk::{ConsumerThreadId, paths, topic};
use tokio::time::Instant;

use super::assembled::{Found, FoundMember, FoundOwner, assemble};
use super::brokers::Brokers;
use super::nodes::{Nodes, each};
use super::{GroupViewError, PATIENCE, ReaderParts};
use crate::clock;
use crate::supervise::{ExitGuard, Slot};
use crate::topic_metadata::{ReadTopics, TopicMetadata};

/// What a read needs; the same for all of one life of the reader.
pub(super) struct Reading {
    config: Arc<ConsumerConfig>,
    consumer_id: String,
    nodes: Nodes,
    metadata: Slot<TopicMetadata>,
    brokers: Brokers,
}

/// Partition numbers by topic.
type Topics = BTreeMap<Arc<str>, Vec<i32>>;

/// What is known of topics.
#[derive(Default)]
struct Known {
    /// No numbers: it does not exist.
    topics: Topics,
    /// These are all that exist; else one that is missing could not be read.
    are_all: bool,
    /// Those that somebody subscribes to.
    wanted: BTreeSet<Arc<str>>,
}

impl Known {
    /// None where it could not be read.
    fn exists(&self, key: &TopicPartition) -> Option<bool> {
        let numbers = self.topics.get(&key.topic);
        let listed = numbers.map(|numbers| numbers.binary_search(&key.partition).is_ok());
        listed.or(self.are_all.then_some(false))
    }

    fn subscribed(&self) -> impl Iterator<Item = TopicPartition> {
        let topics = self.topics.iter().filter(|(topic, _)| self.wanted.contains(*topic));
        topics.flat_map(|(topic, numbers)| {
            numbers.iter().map(|number| TopicPartition::new(Arc::clone(topic), *number))
        })
    }
}

impl Reading {
    pub(super) fn new(parts: ReaderParts) -> (Self, ExitGuard) {
        let ReaderParts { config, consumer_id, session, metadata, brokers, connect, guard } = parts;
        let nodes = Nodes::new(&config.group_id, session);
        let brokers = Brokers::new(&config, connect, brokers);
        (Self { config, consumer_id, nodes, metadata, brokers }, guard)
    }

    /// An error only where nothing can be shown.
    pub(super) async fn read(&self) -> Result<GroupView, GroupViewError> {
        let (began, now) = (Instant::now(), clock::now());
        let group = &self.config.group_id;
        let members = self.members().await.map_err(|why| GroupViewError::new(group, why))?;
        let mut found = Found { members, ..Found::default() };
        self.owners(&mut found).await;
        self.latecomers(&mut found).await;
        let known = self.topics(&mut found).await;
        let keys: BTreeSet<_> = found.owners.keys().cloned().chain(known.subscribed()).collect();
        found.partitions = keys.into_iter().collect();
        self.offsets(&mut found).await;
        self.ask_brokers(&known, &mut found).await;
        let view = assemble(found, |key| known.exists(key));
        Ok(GroupView {
            group: group.clone(),
            consumer_id: self.consumer_id.clone(),
            taken_ms: clock::millis(now),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..view
        })
    }

    pub(super) fn took_too_long(&self) -> GroupViewError {
        let why = format!("its nodes were not read within {PATIENCE:?}; ask again");
        GroupViewError::new(&self.config.group_id, why)
    }

    async fn members(&self) -> Result<Vec<FoundMember>, String> {
        let ids = self.nodes.children(&self.nodes.paths.ids()).await.map_err(|error| error.to_string())?;
        Ok(each(ids, async |id| self.member(id).await).await.into_iter().flatten().collect())
    }

    /// None: it is not registered.
    async fn member(&self, id: String) -> Option<FoundMember> {
        let read = self.nodes.data(&self.nodes.paths.id(&id)).await;
        let (stat, registration) = match read.map_err(|error| error.to_string()).transpose()? {
            Ok((data, stat)) => {
                (Some(stat), Registration::parse(&id, &data).map_err(|error| error.to_string()))
            }
            Err(why) => (None, Err(why)),
        };
        Some(FoundMember { id, stat, registration })
    }

    /// Owners that have registered, or registered again, since members were read.
    async fn latecomers(&self, found: &mut Found) {
        let ids = found.owners.values().flatten().filter_map(|owner| {
            let id = ConsumerThreadId::parse(&owner.thread).ok()?.consumer().to_owned();
            let known = found.members.iter().find(|member| member.id == id).and_then(|member| member.stat);
            (known.map(|stat| stat.ephemeral_owner) != Some(owner.stat.ephemeral_owner)).then_some(id)
        });
        for member in
            each(ids.collect::<BTreeSet<_>>(), async |id| self.member(id).await).await.into_iter().flatten()
        {
            found.members.retain(|it| it.id != member.id);
            found.members.push(member);
        }
    }

    /// The topics that somebody subscribes to, or that have owner nodes.
    async fn topics(&self, found: &mut Found) -> Known {
        let is_filtered = found.members.iter().any(FoundMember::is_filtered);
        let by_brokers = !self.config.bootstrap_servers.is_empty();
        let source = match by_brokers {
            false => self.names(is_filtered).await.map(|names| (names, None)),
            true => self.told().await.map(|(names, topics)| (names, Some(topics))),
        };
        let (names, told) = source.unwrap_or_else(|why| {
            found.errors.push(why);
            (Vec::new(), None)
        });
        let wanted = self.wanted(&names, found);
        match told {
            Some(topics) => Known { topics, are_all: true, wanted },
            None if by_brokers => Known::default(),
            None => {
                let owned = found.owners.keys().map(|key| Arc::clone(&key.topic));
                let topics = self.numbers(wanted.iter().cloned().chain(owned).collect(), found).await;
                Known { topics, are_all: false, wanted }
            }
        }
    }

    fn wanted(&self, names: &[String], found: &mut Found) -> BTreeSet<Arc<str>> {
        let mut wanted = BTreeSet::new();
        for member in &mut found.members {
            let Ok(registration) = &member.registration else { continue };
            let kept_out = self.config.kept_out_topics();
            match Member::expand(&member.id, &registration.subscription, names, kept_out) {
                Ok(expanded) => wanted.extend(expanded.topics.into_keys()),
                Err(error) => member.registration = Err(error.to_string()),
            }
        }
        wanted
    }

    /// The list of topics matters for filters only.
    async fn names(&self, is_filtered: bool) -> Result<Vec<String>, String> {
        match is_filtered {
            true => self.nodes.children(paths::BROKER_TOPICS).await.map_err(|error| error.to_string()),
            false => Ok(Vec::new()),
        }
    }

    async fn told(&self) -> Result<(Vec<String>, Topics), String> {
        let picture = self.metadata.send(ReadTopics).await;
        let picture = picture.map_err(|_| "the actor that asks for topics is not running".to_owned())??;
        let topics = picture.topics.iter();
        let topics: Topics = topics.map(|(name, it)| (Arc::clone(name), it.partitions.clone())).collect();
        Ok((topics.keys().map(ToString::to_string).collect(), topics))
    }

    async fn numbers(&self, wanted: BTreeSet<Arc<str>>, found: &mut Found) -> Topics {
        let read = each(wanted, async |name: Arc<str>| {
            let numbers = match self.nodes.data(&paths::topic(&name)).await {
                Ok(Some((data, _))) => topic::partition_ids(&name, &data).map_err(|error| error.to_string()),
                Ok(None) => Ok(Vec::new()),
                Err(error) => Err(error.to_string()),
            };
            (name, numbers)
        });
        let mut topics = Topics::new();
        for (name, numbers) in read.await {
            match numbers {
                Ok(numbers) => drop(topics.insert(name, numbers)),
                Err(why) => found.errors.push(why),
            }
        }
        topics
    }

    async fn owners(&self, found: &mut Found) {
        let topics = self.nodes.children(&self.nodes.paths.owners()).await.unwrap_or_else(|error| {
            found.errors.push(error.to_string());
            Vec::new()
        });
        let listed = each(topics, async |topic: String| {
            let nodes = self.nodes.children(&self.nodes.paths.owner_topic(&topic)).await;
            (Arc::<str>::from(topic), nodes)
        });
        let mut keys = Vec::new();
        for (topic, nodes) in listed.await {
            match nodes {
                Ok(nodes) => {
                    let numbers = nodes.iter().filter_map(|node| node.parse().ok());
                    keys.extend(numbers.map(|number| TopicPartition::new(Arc::clone(&topic), number)));
                }
                Err(error) => found.errors.push(error.to_string()),
            }
        }
        let read = each(keys, async |key: TopicPartition| {
            let read = self.nodes.data(&self.nodes.paths.owner(&key)).await;
            let owner = match read {
                Ok(None) => return None,
                Ok(Some((data, stat))) => {
                    Ok(FoundOwner { thread: String::from_utf8_lossy(&data).into_owned(), stat })
                }
                Err(error) => Err(error.to_string()),
            };
            Some((key, owner))
        });
        found.owners = read.await.into_iter().flatten().collect();
    }

    async fn offsets(&self, found: &mut Found) {
        let read = each(&found.partitions, async |key: &TopicPartition| {
            let path = self.nodes.paths.offset(key);
            match self.nodes.data(&path).await {
                Ok(None) => None,
                Ok(Some((data, _))) => {
                    let offset = parse_offset(&path, &data).map_err(|error| error.to_string()).transpose()?;
                    Some((key.clone(), offset))
                }
                Err(error) => Some((key.clone(), Err(error.to_string()))),
            }
        });
        found.committed = read.await.into_iter().flatten().collect();
    }

    /// What brokers tell: what they do not is absent, with one reason for all of it.
    async fn ask_brokers(&self, known: &Known, found: &mut Found) {
        // old brokers make a topic that they are asked for
        let exists = |key: &&TopicPartition| known.exists(key) == Some(true);
        let keys: Vec<_> = found.partitions.iter().filter(exists).cloned().collect();
        if keys.is_empty() {
            return;
        }
        let in_kafka = async {
            match self.config.offsets_storage {
                OffsetsStorage::Kafka => self.brokers.committed(&keys).await,
                _ => Ok(BTreeMap::new()),
            }
        };
        let (ends, in_kafka) = tokio::join!(self.brokers.log_ends(&keys), in_kafka);
        let (ends, errors) = ends;
        found.log_ends = ends;
        found.errors.extend(errors);
        match in_kafka {
            Ok(committed) => found.committed_kafka = committed,
            Err(why) => found.errors.push(why),
        }
    }
}
