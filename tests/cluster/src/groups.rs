//! What brokers store of consumer groups, asked for by requests of our own.

use crate::{
    Client, ClusterError,
    client::not_yet,
    connection::{Api, Connection},
    poll::{Look, until},
    wire::{Reader, Writer},
};
use std::{collections::BTreeMap, io};

/// A group's coordinator as a broker tells it: an error code, the broker's id and its address.
struct Coordinator {
    code: i16,
    id: i32,
    address: String,
}

impl Client {
    /// The id of the broker that is the group's coordinator, once there is one: the leader of the partition of
    /// `__consumer_offsets` that the group belongs to. The first question of all makes that topic. While a leader
    /// moves, a broker may tell the one before.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if no broker names one for a minute, [`ClusterError::Kafka`] if it is refused.
    pub fn coordinator(&self, group: &str) -> Result<i32, ClusterError> {
        until(&format!("coordinator of group {group}"), || {
            let found = match self.ask_for_coordinator(group) {
                Ok(found) => found,
                Err(error) => return Ok(Look::NotYet(error.to_string())),
            };
            match found.code {
                0 => Ok(Look::Done(found.id)),
                code => not_yet(Api::FIND_COORDINATOR, group, code, String::new()),
            }
        })
    }

    /// The offsets that brokers store for a group, by partition of one topic; those that it has none of are left out.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if no coordinator answers for a minute, [`ClusterError::Kafka`] if it refuses.
    pub fn committed_offsets(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>, ClusterError> {
        let count = self.wait_for_topic(topic)?;
        self.committed_offsets_of(group, topic, count)
    }

    /// As [`Client::committed_offsets`], of the first so many partitions of a topic that need not be there.
    ///
    /// # Errors
    /// Those of [`Client::committed_offsets`].
    pub fn committed_offsets_of(
        &self,
        group: &str,
        topic: &str,
        count: i32,
    ) -> Result<BTreeMap<i32, i64>, ClusterError> {
        let mut body = Writer::default();
        body.string(group);
        body.len(1);
        body.string(topic);
        body.len(usize::try_from(count).unwrap_or_default());
        (0..count).for_each(|partition| body.i32(partition));
        until(&format!("offsets of group {group}"), || {
            let answer = self.ask_coordinator(group, Api::OFFSET_FETCH, &body.0);
            let partitions = match answer.and_then(|response| offsets(&mut Reader(&response))) {
                Ok(partitions) => partitions,
                Err(error) => return Ok(Look::NotYet(error.to_string())),
            };
            match partitions.iter().find(|(.., code)| *code != 0) {
                Some((partition, _, code)) => {
                    not_yet(Api::OFFSET_FETCH, &format!("{topic}-{partition}"), *code, String::new())
                }
                None => {
                    let stored = partitions.into_iter().filter(|(_, offset, _)| *offset != -1);
                    Ok(Look::Done(stored.map(|(partition, offset, _)| (partition, offset)).collect()))
                }
            }
        })
    }

    /// Commits as the old consumer does, and Kafka's own tools for a group that stands still, which are no members of it.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if no coordinator answers for a minute, [`ClusterError::Kafka`] if it refuses.
    pub fn commit_offset(
        &self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Result<(), ClusterError> {
        let mut body = Writer::default();
        body.string(group);
        body.i32(-1); // generation
        body.string(""); // member
        body.i64(-1); // retention time
        body.len(1);
        body.string(topic);
        body.len(1);
        body.i32(partition);
        body.i64(offset);
        body.string(""); // metadata
        self.order_coordinator(group, Api::OFFSET_COMMIT, &body.0)
    }

    /// Deletes what brokers know of a group, which must have no members there; brokers from 1.1 on.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if no coordinator answers for a minute, [`ClusterError::Kafka`] if it refuses.
    pub fn delete_group(&self, group: &str) -> Result<(), ClusterError> {
        let mut body = Writer::default();
        body.len(1);
        body.string(group);
        self.order_coordinator(group, Api::DELETE_GROUPS, &body.0)
    }

    /// For a request of one thing, whose response ends with its error code.
    fn order_coordinator(&self, group: &str, api: Api, body: &[u8]) -> Result<(), ClusterError> {
        until(&format!("{} of group {group}", api.name), || {
            let answer = self.ask_coordinator(group, api, body);
            match answer.and_then(|response| last_code(&response)) {
                Ok(0) => Ok(Look::Done(())),
                Ok(code) => not_yet(api, group, code, String::new()),
                Err(error) => Ok(Look::NotYet(error.to_string())),
            }
        })
    }

    fn ask_coordinator(&self, group: &str, api: Api, body: &[u8]) -> io::Result<Vec<u8>> {
        let found = self.ask_for_coordinator(group)?;
        match found.code {
            0 => Connection::open(&found.address)?.call(api, body),
            code => Err(io::Error::other(format!("group {group} has no coordinator: error code {code}"))),
        }
    }

    fn ask_for_coordinator(&self, group: &str) -> io::Result<Coordinator> {
        let mut body = Writer::default();
        body.string(group);
        let response = self.any().map_err(io::Error::other)?.call(Api::FIND_COORDINATOR, &body.0)?;
        let mut response = Reader(&response);
        let (code, id) = (response.i16()?, response.i32()?);
        Ok(Coordinator { code, id, address: format!("{}:{}", response.string()?, response.i32()?) })
    }
}

/// Partition, offset and error code of each that was asked for.
fn offsets(response: &mut Reader<'_>) -> io::Result<Vec<(i32, i64, i16)>> {
    let topics = response.vec(|topic| {
        topic.string()?;
        topic.vec(|partition| {
            let (number, offset) = (partition.i32()?, partition.i64()?);
            partition.string()?; // metadata
            Ok((number, offset, partition.i16()?))
        })
    })?;
    Ok(topics.into_iter().flatten().collect())
}

fn last_code(response: &[u8]) -> io::Result<i16> {
    response.last_chunk().map(|code| i16::from_be_bytes(*code)).ok_or(io::ErrorKind::UnexpectedEof.into())
}
