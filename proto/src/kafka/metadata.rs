//! Metadata 0 to 5: brokers, topics, partitions and their leaders.
//!
//! Below version 4 a broker with `auto.create.topics.enable` creates (or re-creates) what it is asked for:
//! ask only for topics that stand in ZooKeeper.

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
    pub topics: Vec<TopicMetadata>,
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
pub struct TopicMetadata {
    /// Of the topic as a whole.
    pub error: ErrorCode,
    /// Name.
    pub name: Arc<str>,
    /// From version 1: `__consumer_offsets` and the like.
    pub is_internal: bool,
    /// In the broker's order, which is not by number.
    pub partitions: Vec<PartitionMetadata>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionMetadata {
    /// Of this partition. Code 9 says only that some replica is down: the leader is still good.
    pub error: ErrorCode,
    /// Number, from 0.
    pub partition: i32,
    /// The leader's broker id, `None` while there is none.
    pub leader: Option<i32>,
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
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    type Response = MetadataResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        let all = if version == 0 { Some(&[][..]) } else { None };
        out.nullable_array("MetadataRequest.topics", self.topics.as_deref().or(all), |out, topic| {
            out.string("MetadataRequest.topics", topic);
        });
        if version >= 4 {
            out.bool(false); // allow_auto_topic_creation
        }
    }
}

impl Response for MetadataResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        MetadataRequest::VERSIONS.check("MetadataResponse", version)?;
        let mut r = Reader::new(body);
        let response = Self {
            throttle_ms: if version >= 3 { r.i32("MetadataResponse.throttle_time_ms")? } else { 0 },
            brokers: r.array("MetadataResponse.brokers", 10, |r| broker(version, r))?,
            cluster_id: if version >= 2 { r.nullable_string("MetadataResponse.cluster_id")? } else { None },
            controller_id: if version >= 1 { r.i32("MetadataResponse.controller_id")? } else { -1 },
            topics: r.array("MetadataResponse.topics", 8, |r| topic(version, r))?,
        };
        r.finish("MetadataResponse")?;
        Ok(response)
    }
}

fn broker(version: i16, r: &mut Reader) -> Result<Broker, WireError> {
    Ok(Broker {
        id: r.i32("MetadataResponse.brokers.node_id")?,
        host: r.string("MetadataResponse.brokers.host")?,
        port: r.i32("MetadataResponse.brokers.port")?,
        rack: if version >= 1 { r.nullable_string("MetadataResponse.brokers.rack")? } else { None },
    })
}

fn topic(version: i16, r: &mut Reader) -> Result<TopicMetadata, WireError> {
    Ok(TopicMetadata {
        error: r.i16("MetadataResponse.topics.error_code")?.into(),
        name: r.string("MetadataResponse.topics.name")?,
        is_internal: version >= 1 && r.bool("MetadataResponse.topics.is_internal")?,
        partitions: r.array("MetadataResponse.topics.partitions", 18, |r| partition(version, r))?,
    })
}

fn partition(version: i16, r: &mut Reader) -> Result<PartitionMetadata, WireError> {
    Ok(PartitionMetadata {
        error: r.i16("MetadataResponse.topics.partitions.error_code")?.into(),
        partition: r.i32("MetadataResponse.topics.partitions.partition_index")?,
        leader: Some(r.i32("MetadataResponse.topics.partitions.leader_id")?).filter(|id| *id >= 0),
        replicas: ids(r, "MetadataResponse.topics.partitions.replica_nodes")?,
        isr: ids(r, "MetadataResponse.topics.partitions.isr_nodes")?,
        offline_replicas: if version >= 5 {
            ids(r, "MetadataResponse.topics.partitions.offline_replicas")?
        } else {
            Vec::new()
        },
    })
}

fn ids(r: &mut Reader, what: &'static str) -> Result<Vec<i32>, WireError> {
    r.array(what, 4, |r| r.i32(what))
}
