//! Metadata 0 to 12: brokers, topics, partitions and their leaders.
//!
//! | version | brings |
//! |---|---|
//! | 1, 2, 3 | racks, controller, internal topics; cluster id; throttle time |
//! | 4, 5, 7 | no automatic creation; offline replicas; leader epochs |
//! | 9, 10 | the flexible form; topic ids, which tell a topic that was deleted and made again |
//!
//! Below version 4 a broker with `auto.create.topics.enable` creates (or re-creates) what it is asked for by name:
//! there ask for all topics (`None`), which makes none.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks for some or all topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataRequest {
    /// The topics; `None` for all. Version 0 cannot ask for none: an empty list means all there.
    pub topics: Option<Vec<Arc<str>>>,
}

/// The cluster as the answering broker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataResponse {
    /// How long to wait before the next request, in ms; 0 below version 3.
    pub throttle_ms: i32,
    /// Brokers that are alive.
    pub brokers: Vec<Broker>,
    /// From version 2, where the cluster has one.
    pub cluster_id: Option<Arc<str>>,
    /// From version 1; -1 for unknown.
    pub controller_id: i32,
    /// One entry per topic asked for.
    pub topics: Vec<Topic>,
}

/// One broker's address, for the listener that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broker {
    /// Broker id.
    pub id: i32,
    /// Host name or address.
    pub host: Arc<str>,
    /// Port.
    pub port: i32,
    /// From version 1, where configured.
    pub rack: Option<Arc<str>>,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topic {
    /// Of the topic as a whole.
    pub error: ErrorCode,
    /// Name; empty where version 12 has null, which answers a question by id that we do not ask.
    pub name: Arc<str>,
    /// From version 1: `__consumer_offsets` and the like.
    pub is_internal: bool,
    /// From version 10: tells a topic that was deleted and made again from the one before. `None` also where the
    /// topic has none (brokers in ZooKeeper mode below `inter.broker.protocol.version` 2.8).
    pub id: Option<TopicId>,
    /// In the broker's order, which is not by number.
    pub partitions: Vec<Partition>,
}

/// A topic's id: no two topics have the same, also of one name (KIP-516).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

/// What the wire says for "no id".
const NO_TOPIC_ID: [u8; 16] = [0; 16];

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Of this partition. Code 9 says only that some replica is down: the leader is still good.
    pub error: ErrorCode,
    /// Number, from 0.
    pub partition: i32,
    /// The leader's broker id, `None` while there is none.
    pub leader: Option<i32>,
    /// From version 7: how often it has had a leader elected, for Fetch 9 and later (KIP-320).
    pub leader_epoch: Option<i32>,
    /// Replicas, preferred leader first.
    pub replicas: Vec<i32>,
    /// Replicas in sync.
    pub isr: Vec<i32>,
    /// From version 5: replicas that are down.
    pub offline_replicas: Vec<i32>,
}

impl Request for MetadataRequest {
    const API: ApiKey = ApiKey::Metadata;
    const NAME: &'static str = "MetadataRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 12);
    const FLEXIBLE_FROM: i16 = 9;
    type Response = MetadataResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        let all = if version == 0 { Some(&[][..]) } else { None };
        out.nullable_array("MetadataRequest.topics", self.topics.as_deref().or(all), |out, topic| {
            if version >= 10 {
                out.uuid([0; 16]); // topic_id: we ask by name
            }
            out.string("MetadataRequest.topics.name", topic);
            out.no_tagged_fields();
        });
        if version >= 4 {
            out.bool(false); // allow_auto_topic_creation
        }
        if (8..=10).contains(&version) {
            out.bool(false); // include_cluster_authorized_operations
        }
        if version >= 8 {
            out.bool(false); // include_topic_authorized_operations
        }
        out.no_tagged_fields();
    }
}

impl Response for MetadataResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        MetadataRequest::VERSIONS.check("MetadataResponse", version)?;
        let mut r = Reader::new(body).flexible(version >= MetadataRequest::FLEXIBLE_FROM);
        r.tagged_fields("MetadataResponse.header")?;
        let response = Self {
            throttle_ms: if version >= 3 { r.i32("MetadataResponse.throttle_time_ms")? } else { 0 },
            brokers: r.array("MetadataResponse.brokers", 10, |r| broker(version, r))?,
            cluster_id: if version >= 2 { r.nullable_string("MetadataResponse.cluster_id")? } else { None },
            controller_id: if version >= 1 { r.i32("MetadataResponse.controller_id")? } else { -1 },
            topics: r.array("MetadataResponse.topics", 8, |r| topic(version, r))?,
        };
        if (8..=10).contains(&version) {
            r.i32("MetadataResponse.cluster_authorized_operations")?;
        }
        r.tagged_fields("MetadataResponse")?;
        r.finish("MetadataResponse")?;
        Ok(response)
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn broker(version: i16, r: &mut Reader) -> Result<Broker, WireError> {
    let broker = Broker {
        id: r.i32("MetadataResponse.brokers.node_id")?,
        host: r.string("MetadataResponse.brokers.host")?,
        port: r.i32("MetadataResponse.brokers.port")?,
        rack: if version >= 1 { r.nullable_string("MetadataResponse.brokers.rack")? } else { None },
    };
    r.tagged_fields("MetadataResponse.brokers")?;
    Ok(broker)
}

fn topic(version: i16, r: &mut Reader) -> Result<Topic, WireError> {
    let error = r.i16("MetadataResponse.topics.error_code")?.into();
    let name = match version {
        12.. => r.nullable_string("MetadataResponse.topics.name")?.unwrap_or_default(),
        _ => r.string("MetadataResponse.topics.name")?,
    };
    let id = if version >= 10 { r.uuid("MetadataResponse.topics.topic_id")? } else { NO_TOPIC_ID };
    let topic = Topic {
        error,
        name,
        id: Some(TopicId(id)).filter(|_| id != NO_TOPIC_ID),
        is_internal: version >= 1 && r.bool("MetadataResponse.topics.is_internal")?,
        partitions: r.array("MetadataResponse.topics.partitions", 18, |r| partition(version, r))?,
    };
    if version >= 8 {
        r.i32("MetadataResponse.topics.topic_authorized_operations")?;
    }
    r.tagged_fields("MetadataResponse.topics")?;
    Ok(topic)
}

fn partition(version: i16, r: &mut Reader) -> Result<Partition, WireError> {
    let known = |number: &i32| *number >= 0;
    let partition = Partition {
        error: r.i16("MetadataResponse.topics.partitions.error_code")?.into(),
        partition: r.i32("MetadataResponse.topics.partitions.partition_index")?,
        leader: Some(r.i32("MetadataResponse.topics.partitions.leader_id")?).filter(known),
        leader_epoch: match version {
            7.. => Some(r.i32("MetadataResponse.topics.partitions.leader_epoch")?).filter(known),
            _ => None,
        },
        replicas: ids(r, "MetadataResponse.topics.partitions.replica_nodes")?,
        isr: ids(r, "MetadataResponse.topics.partitions.isr_nodes")?,
        offline_replicas: match version {
            5.. => ids(r, "MetadataResponse.topics.partitions.offline_replicas")?,
            _ => Vec::new(),
        },
    };
    r.tagged_fields("MetadataResponse.topics.partitions")?;
    Ok(partition)
}

fn ids(r: &mut Reader, what: &'static str) -> Result<Vec<i32>, WireError> {
    r.array(what, 4, |r| r.i32(what))
}
