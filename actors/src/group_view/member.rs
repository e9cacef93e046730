//! What a member reads of its group: nodes over its session, the rest from the brokers that it knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_troupe_proto::config::{ConsumerConfig, OffsetsStorage};
use kafka_troupe_proto::schemas::group::v1::GroupView;

use super::assembled::{Found, Taking};
use super::brokers::Brokers;
use super::nodes::Nodes;
use super::reading::{Known, Reading, TopicsFrom};
use super::{GroupViewError, PATIENCE, ReaderParts};
use crate::supervise::ExitGuard;

/// The same for all of one life of the reader.
pub(super) struct MembersReading {
    config: Arc<ConsumerConfig>,
    consumer_id: String,
    reading: Reading,
    brokers: Brokers,
}

impl MembersReading {
    pub(super) fn new(parts: ReaderParts) -> (Self, ExitGuard) {
        let ReaderParts { config, consumer_id, session, metadata, brokers, connect, guard } = parts;
        let reading = Reading {
            nodes: Nodes::new(&config.group_id, Arc::new(session)),
            kept_out: config.kept_out_topics(),
            topics_from: match config.bootstrap_servers.is_empty() {
                true => TopicsFrom::ZooKeeper,
                false => TopicsFrom::Metadata(metadata),
            },
            shows_left_offsets: false,
        };
        let brokers = Brokers::new(&config, connect, brokers);
        (Self { config, consumer_id, reading, brokers }, guard)
    }

    /// An error only where nothing can be shown.
    pub(super) async fn read(&self) -> Result<GroupView, GroupViewError> {
        let (taking, group) = (Taking::begun(), &self.config.group_id);
        let read = self.reading.read(BTreeMap::new()).await;
        let (mut found, known) = read.map_err(|why| GroupViewError::new(group, why))?;
        self.ask_brokers(&known, &mut found).await;
        Ok(GroupView { consumer_id: self.consumer_id.clone(), ..taking.ended(group, found, &known) })
    }

    pub(super) fn took_too_long(&self) -> GroupViewError {
        let why = format!("its nodes were not read within {PATIENCE:?}; ask again");
        GroupViewError::new(&self.config.group_id, why)
    }

    /// What brokers tell: what they do not is absent, with one reason for all of it.
    async fn ask_brokers(&self, known: &Known, found: &mut Found) {
        let keys = known.existing(&found.partitions);
        if keys.is_empty() {
            return;
        }
        let in_kafka = async {
            match self.config.offsets_storage {
                OffsetsStorage::Kafka => self.brokers.committed(&keys).await,
                _ => Ok(BTreeMap::new()),
            }
        };
        let ((ends, errors), in_kafka) = tokio::join!(self.brokers.log_ends(&keys), in_kafka);
        found.log_ends = ends;
        found.errors.extend(errors);
        match in_kafka {
            Ok(committed) => found.committed_kafka = committed,
            Err(why) => found.errors.push(why),
        }
    }
}
