//! Asks a leader for ends of its logs, and for times in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::list_offsets::{
    EARLIEST, LATEST, ListOffsetsRequest, ListOffsetsTopic, ListedOffset,
};
use tokio::time::timeout;

use super::BrokerAddress;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};

/// How long a number is waited for that is only told.
const PATIENCE: Duration = Duration::from_secs(1);

/// In this version brokers know times of segments only.
const SEGMENT_TIMES: i16 = 0;

pub(crate) type Listed = BTreeMap<TopicPartition, ListedOffset>;

/// What a broker says of its logs.
pub(crate) struct Ends {
    /// What was asked for.
    pub(crate) asked: Listed,
    /// The beginnings, where something else was asked for: to tell how much is passed over.
    pub(crate) begins: Listed,
}

/// A connection to a leader, to ask about its logs.
pub(crate) struct LeaderConnection {
    pub(super) connection: BrokerConnection,
    read_committed: bool,
}

impl LeaderConnection {
    /// With `read_committed`, the end of a log is where the first transaction begins that is still open.
    pub(crate) async fn connect(
        broker: &BrokerAddress,
        options: ConnectOptions,
        read_committed: bool,
    ) -> Result<Self, ConnectionError> {
        let connection = BrokerConnection::connect(&broker.host, broker.port, options).await?;
        Ok(Self { connection, read_committed })
    }

    /// Asks for a place in each log: an end, or a time in ms since 1970.
    ///
    /// A time gives the first record of that time or younger, and the end of the log when there is none. In version 0
    /// (before 0.10.1) brokers go by the times at which segments were last written: it gives the start of the youngest
    /// that was not written after that time, which lies at or before that record, and the beginning of the log when
    /// there is none.
    pub(crate) async fn list_ends(
        &mut self,
        wanted: &[(TopicPartition, i64)],
    ) -> Result<Ends, ConnectionError> {
        // before the search: what comes to the log between the two is not passed over then
        let mut in_place_of_none = self.list(at(wanted, |time| time >= 0, LATEST)).await?;
        let mut asked = self.list(wanted.to_vec()).await?;
        let mut none = wanted.to_vec();
        none.retain(|(key, time)| *time >= 0 && asked.get(key).is_some_and(is_none));
        if self.connection.version_of::<ListOffsetsRequest>()? == SEGMENT_TIMES {
            in_place_of_none = self.list(at(&none, |_| true, EARLIEST)).await?;
        }
        asked.extend(none.iter().filter_map(|(key, _)| in_place_of_none.remove_entry(key)));
        // only told, so a position does not depend on it
        let begins = self.list(at(wanted, |time| time != EARLIEST, EARLIEST));
        let begins = timeout(PATIENCE, begins).await.ok().and_then(Result::ok).unwrap_or_default();
        Ok(Ends { asked, begins })
    }

    /// Asks for a place in each log, in one request.
    pub(crate) async fn list(
        &mut self,
        wanted: Vec<(TopicPartition, i64)>,
    ) -> Result<Listed, ConnectionError> {
        if wanted.is_empty() {
            return Ok(Listed::new());
        }
        let mut topics: BTreeMap<Arc<str>, Vec<(i32, i64)>> = BTreeMap::new();
        for (key, time) in wanted {
            topics.entry(key.topic).or_default().push((key.partition, time));
        }
        let topics = topics.into_iter().map(|(topic, partitions)| ListOffsetsTopic { topic, partitions });
        let request = ListOffsetsRequest { read_committed: self.read_committed, topics: topics.collect() };
        let topics = self.connection.call(&request).await?.topics.into_iter();
        Ok(by_partition(topics.map(|it| (it.topic, it.partitions)), |listed| listed.partition))
    }
}

/// Another time for those whose time is one of `which`.
fn at(
    wanted: &[(TopicPartition, i64)],
    which: impl Fn(i64) -> bool,
    other: i64,
) -> Vec<(TopicPartition, i64)> {
    wanted.iter().filter(|(_, time)| which(*time)).map(|(key, _)| (key.clone(), other)).collect()
}

/// The search went well and found nothing.
fn is_none(listed: &ListedOffset) -> bool {
    listed.error.is_ok() && listed.offset.is_none()
}

/// What a response has by topic, a list for each; `number` is a partition's.
pub(super) fn by_partition<T>(
    topics: impl Iterator<Item = (Arc<str>, Vec<T>)>,
    number: impl Fn(&T) -> i32,
) -> BTreeMap<TopicPartition, T> {
    let mut all = BTreeMap::new();
    for (topic, partitions) in topics {
        let keyed = |it: T| (TopicPartition::new(Arc::clone(&topic), number(&it)), it);
        all.extend(partitions.into_iter().map(keyed));
    }
    all
}
