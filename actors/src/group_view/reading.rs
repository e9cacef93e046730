//! One read of the group's nodes: members, owners, topics, offsets, in this order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::Member;
use kafka_troupe_proto::zk::offset::parse_offset;
use kafka_troupe_proto::zk::registration::Registration;
use kafka_troupe_proto::zk::{ConsumerThreadId, paths, topic};

use super::assembled::{Found, FoundMember, FoundOwner};
use super::nodes::{Nodes, each};
use crate::supervise::Slot;
use crate::topic_metadata::{ReadTopics, TopicMetadata};
use crate::zk_session::ZkError;

/// What a read needs; the same for all of one life of who reads.
pub(crate) struct Reading {
    pub(crate) nodes: Nodes,
    /// Topics that filters do not take in, whatever they say.
    pub(crate) kept_out: &'static [&'static str],
    pub(crate) topics_from: TopicsFrom,
    /// Whether partitions are shown of which nothing but an offset is there.
    pub(crate) shows_left_offsets: bool,
}

/// Who tells which topics there are.
pub(crate) enum TopicsFrom {
    ZooKeeper,
    /// With `bootstrap.servers`.
    Metadata(Slot<TopicMetadata>),
    /// Brokers have told already.
    Told(Topics),
}

/// Partition numbers by topic.
pub(crate) type Topics = BTreeMap<Arc<str>, Vec<i32>>;

/// What is known of topics.
#[derive(Default)]
pub(crate) struct Known {
    /// No numbers: it does not exist.
    topics: Topics,
    /// These are all that exist; else one that is missing could not be read.
    are_all: bool,
    /// Those that somebody subscribes to.
    wanted: BTreeSet<Arc<str>>,
}

impl Known {
    /// None where it could not be read.
    pub(crate) fn exists(&self, key: &TopicPartition) -> Option<bool> {
        let numbers = self.topics.get(&key.topic);
        let listed = numbers.map(|numbers| numbers.binary_search(&key.partition).is_ok());
        listed.or(self.are_all.then_some(false))
    }

    /// Those that are known to exist: old brokers make a topic that they are asked for.
    pub(crate) fn existing(&self, keys: &[TopicPartition]) -> Vec<TopicPartition> {
        keys.iter().filter(|key| self.exists(key) == Some(true)).cloned().collect()
    }

    /// Whether somebody subscribes to its topic.
    pub(crate) fn is_wanted(&self, key: &TopicPartition) -> bool {
        self.wanted.contains(&key.topic)
    }

    fn subscribed(&self) -> impl Iterator<Item = TopicPartition> {
        let topics = self.topics.iter().filter(|(topic, _)| self.wanted.contains(*topic));
        topics.flat_map(|(topic, numbers)| {
            numbers.iter().map(|number| TopicPartition::new(Arc::clone(topic), *number))
        })
    }
}

impl Reading {
    /// What the nodes say, and of which topics. `in_kafka`: offsets that are known to be stored there, which are shown.
    ///
    /// # Errors
    /// Only where nothing can be shown.
    pub(crate) async fn read(
        &self,
        in_kafka: BTreeMap<TopicPartition, i64>,
    ) -> Result<(Found, Known), String> {
        let mut found =
            Found { members: self.members().await?, committed_kafka: in_kafka, ..Found::default() };
        self.owners(&mut found).await;
        self.latecomers(&mut found).await;
        let mut keys: BTreeSet<_> =
            found.owners.keys().chain(found.committed_kafka.keys()).cloned().collect();
        if self.shows_left_offsets {
            keys.extend(self.partitions_below(&self.nodes.paths.offsets(), &mut found.errors).await);
        }
        let known = self.topics(&keys, &mut found).await;
        keys.extend(known.subscribed());
        found.partitions = keys.into_iter().collect();
        self.offsets(&mut found).await;
        Ok((found, known))
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

    /// The topics that somebody subscribes to, and those of `keys`.
    async fn topics(&self, keys: &BTreeSet<TopicPartition>, found: &mut Found) -> Known {
        let is_filtered = found.members.iter().any(FoundMember::is_filtered);
        let source = match &self.topics_from {
            TopicsFrom::ZooKeeper => self.names(is_filtered).await.map(|names| (names, None)),
            TopicsFrom::Metadata(metadata) => told_by(metadata).await.map(with_names),
            TopicsFrom::Told(topics) => Ok(with_names(topics.clone())),
        };
        let (names, told) = source.unwrap_or_else(|why| {
            found.errors.push(why);
            (Vec::new(), None)
        });
        let wanted = self.wanted(&names, found);
        match told {
            Some(topics) => Known { topics, are_all: true, wanted },
            None if matches!(self.topics_from, TopicsFrom::Metadata(_)) => Known::default(),
            None => {
                let left = keys.iter().map(|key| Arc::clone(&key.topic));
                let topics = self.numbers(wanted.iter().cloned().chain(left).collect(), found).await;
                Known { topics, are_all: false, wanted }
            }
        }
    }

    fn wanted(&self, names: &[String], found: &mut Found) -> BTreeSet<Arc<str>> {
        let mut wanted = BTreeSet::new();
        for member in &mut found.members {
            let Ok(registration) = &member.registration else { continue };
            match Member::expand(&member.id, &registration.subscription, names, self.kept_out) {
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

    /// The partitions that have a node below owners or offsets.
    async fn partitions_below(&self, path: &str, errors: &mut Vec<String>) -> Vec<TopicPartition> {
        let (keys, failed) = partitions_below(&self.nodes, path).await;
        errors.extend(failed.iter().map(ToString::to_string));
        keys
    }

    async fn owners(&self, found: &mut Found) {
        let keys = self.partitions_below(&self.nodes.paths.owners(), &mut found.errors).await;
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
}

/// The partitions that have a node below `owners` or `offsets`, and what could not be read.
pub(crate) async fn partitions_below(nodes: &Nodes, path: &str) -> (Vec<TopicPartition>, Vec<ZkError>) {
    let topics = match nodes.children(path).await {
        Ok(topics) => topics,
        Err(error) => return (Vec::new(), vec![error]),
    };
    let listed = each(topics, async |topic: String| {
        let listed = nodes.children(&format!("{path}/{topic}")).await;
        (Arc::<str>::from(topic), listed)
    });
    let (mut keys, mut errors) = (Vec::new(), Vec::new());
    for (topic, listed) in listed.await {
        match listed {
            Ok(names) => {
                let numbers = names.iter().filter_map(|name| name.parse().ok());
                keys.extend(numbers.map(|number| TopicPartition::new(Arc::clone(&topic), number)));
            }
            Err(error) => errors.push(error),
        }
    }
    (keys, errors)
}

async fn told_by(metadata: &Slot<TopicMetadata>) -> Result<Topics, String> {
    let picture = metadata.send(ReadTopics).await;
    let picture = picture.map_err(|_| "the actor that asks for topics is not running".to_owned())??;
    Ok(picture.topics.iter().map(|(name, it)| (Arc::clone(name), it.partitions.clone())).collect())
}

fn with_names(topics: Topics) -> (Vec<String>, Option<Topics>) {
    (topics.keys().map(ToString::to_string).collect(), Some(topics))
}
