//! A broker's view of the cluster.

use crate::{connection::Api, wire::Reader};
use std::io;

/// One partition as a broker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionMetadata {
    /// Its number.
    pub partition: i32,
    /// The broker id of its leader, -1 without one.
    pub leader: i32,
    /// Broker ids of its replicas.
    pub replicas: Vec<i32>,
    /// Broker ids of the replicas in sync.
    pub isr: Vec<i32>,
}

/// What a broker tells of brokers and topics.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) brokers: Vec<(i32, String)>,
    /// -1 from brokers before 0.10.
    pub(crate) controller: i32,
    /// Error code, name and partitions of each topic.
    pub(crate) topics: Vec<(i16, String, Vec<PartitionMetadata>)>,
}

impl Metadata {
    /// Reads a response to `api`, which is of version 0 or 1.
    pub(crate) fn read(api: Api, response: &mut Reader<'_>) -> io::Result<Self> {
        let brokers = response.vec(|broker| {
            let id = broker.i32()?;
            let address = format!("{}:{}", broker.string()?, broker.i32()?);
            if api.version > 0 {
                broker.string()?; // rack
            }
            Ok((id, address))
        })?;
        let controller = if api.version > 0 { response.i32()? } else { -1 };
        let topics = response.vec(|topic| {
            let (code, name) = (topic.i16()?, topic.string()?);
            if api.version > 0 {
                topic.i8()?; // internal
            }
            let mut partitions = topic.vec(PartitionMetadata::read)?;
            partitions.sort_by_key(|partition| partition.partition);
            Ok((code, name, partitions))
        })?;
        Ok(Self { brokers, controller, topics })
    }

    pub(crate) fn partitions_of(&self, topic: &str) -> Vec<PartitionMetadata> {
        let found = self.topics.iter().find(|(_, name, _)| name == topic);
        found.map(|(_, _, partitions)| partitions.clone()).unwrap_or_default()
    }

    pub(crate) fn address_of(&self, broker: i32) -> Option<&str> {
        self.brokers.iter().find(|(id, _)| *id == broker).map(|(_, address)| address.as_str())
    }
}

impl PartitionMetadata {
    fn read(response: &mut Reader<'_>) -> io::Result<Self> {
        response.i16()?; // an error shows as a leader of -1
        let (partition, leader) = (response.i32()?, response.i32()?);
        Ok(Self { partition, leader, replicas: response.vec(Reader::i32)?, isr: response.vec(Reader::i32)? })
    }
}
