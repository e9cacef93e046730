//! What goes over the wire: who leads, where logs begin and end, and records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::fetch::{FetchPartition, FetchRequest, FetchTopic, NO_SESSION_EPOCH};
use kafka_troupe_proto::kafka::list_offsets::{EARLIEST, LATEST};
use tokio::time::Instant;

use super::reading::Bounds;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError, FetchAnswer};
use crate::fetcher_manager::{BrokerAddress, LeaderConnection, Leaders, find_leaders};

/// Bytes that brokers should answer with at most, all partitions together (Fetch 3 and later).
const MOST_BYTES: i32 = 16 << 20;
/// Partitions that are asked for at a time where brokers know no such limit.
const MOST_PARTITIONS: usize = 8;
/// Brokers since Fetch 3 (0.10.1) do.
const LIMITS_WHOLE: i16 = 3;
/// A broker that answers with nothing sooner than this is not asked again before.
const LEAST_PERIOD: Duration = Duration::from_millis(50);

/// Something that was under way is there.
pub(super) enum Event {
    /// Leaders, and ends of logs.
    Found(Result<Found, String>),
    /// Records.
    Fetched(Box<Fetched>),
}

/// Who leads which partition, and what was asked of the leaders.
pub(super) struct Found {
    pub(super) leaders: Leaders,
    pub(super) bounds: BTreeMap<TopicPartition, Result<Bounds, Unfound>>,
}

/// Why the ends of a log could not be told.
pub(super) enum Unfound {
    /// The leader says so.
    Refused(ErrorCode),
    /// It did not answer.
    Unanswered(String),
}

/// An answer to a fetch, or why there is none.
pub(super) struct Fetched {
    pub(super) broker: i32,
    /// Which partitions, and from which offset.
    pub(super) asked: BTreeMap<TopicPartition, i64>,
    pub(super) outcome: Result<(BrokerConnection, FetchAnswer), ConnectionError>,
}

/// What is to be asked of leaders, once they are found.
pub(super) struct Finding {
    pub(super) brokers: Vec<BrokerAddress>,
    pub(super) connect: ConnectOptions,
    pub(super) read_committed: bool,
    /// Whose leaders to find; of some the log's ends are wanted too, and the place of a time.
    pub(super) wanted: BTreeMap<TopicPartition, Option<Option<i64>>>,
    /// A pause before it.
    pub(super) pause: Duration,
}

impl Finding {
    pub(super) async fn run(self) -> Event {
        tokio::time::sleep(self.pause).await;
        let topics = self.wanted.keys().map(|key| Arc::clone(&key.topic)).collect();
        let found = find_leaders(self.brokers.clone(), self.connect.clone(), topics).await;
        match found {
            Ok((_, leaders)) => {
                let bounds = self.bounds(&leaders).await;
                Event::Found(Ok(Found { leaders, bounds }))
            }
            Err(why) => Event::Found(Err(why)),
        }
    }

    async fn bounds(&self, leaders: &Leaders) -> BTreeMap<TopicPartition, Result<Bounds, Unfound>> {
        let mut by_leader = BTreeMap::<i32, Vec<(TopicPartition, Option<i64>)>>::new();
        for (key, wanted) in &self.wanted {
            if let (Some(time), Ok(led)) = (wanted, leaders.of(key)) {
                by_leader.entry(led.broker).or_default().push((key.clone(), *time));
            }
        }
        let asked = by_leader.into_iter().map(async |(broker, wanted)| {
            let address = leaders.brokers.iter().find(|it| it.id == broker);
            let told = match address {
                Some(address) => self.ask(address, &wanted).await.map_err(|error| error.to_string()),
                None => Err(format!("its leader, broker {broker}, is not up")),
            };
            told.unwrap_or_else(|why| {
                let unanswered = |(key, _)| (key, Err(Unfound::Unanswered(why.clone())));
                wanted.into_iter().map(unanswered).collect()
            })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn ask(
        &self,
        leader: &BrokerAddress,
        wanted: &[(TopicPartition, Option<i64>)],
    ) -> Result<BTreeMap<TopicPartition, Result<Bounds, Unfound>>, ConnectionError> {
        let mut leader = LeaderConnection::connect(leader, self.connect.clone(), self.read_committed).await?;
        let all = |at: i64| wanted.iter().map(|(key, _)| (key.clone(), at)).collect::<Vec<_>>();
        let times = wanted.iter().filter_map(|(key, time)| Some((key.clone(), (*time)?))).collect::<Vec<_>>();
        let times = if times.is_empty() { BTreeMap::new() } else { leader.list_ends(&times).await?.asked };
        // the beginning first: it only grows, and must not come out behind the end
        let starts = leader.list(all(EARLIEST)).await?;
        let ends = leader.list(all(LATEST)).await?;
        let bounds = wanted.iter().map(|(key, _)| {
            let listed = [starts.get(key), ends.get(key), times.get(key)];
            let refused = listed.into_iter().flatten().find_map(|listed| listed.error.ok().err());
            let [log_start, log_end, at_time] = listed.map(|listed| listed?.offset);
            let bounds = match (refused, log_start, log_end) {
                (Some(error), ..) => Err(Unfound::Refused(error)),
                (None, Some(log_start), Some(log_end)) => Ok(Bounds { log_start, log_end, at_time }),
                _ => Err(Unfound::Unanswered(
                    "its leader does not say where its log begins and ends".to_owned(),
                )),
            };
            (key.clone(), bounds)
        });
        Ok(bounds.collect())
    }
}

/// What is to be fetched from one broker.
pub(super) struct Fetching {
    pub(super) broker: BrokerAddress,
    pub(super) connection: Option<BrokerConnection>,
    pub(super) connect: ConnectOptions,
    pub(super) read_committed: bool,
    pub(super) max_wait: Duration,
    /// Partitions with offset and bytes; the first is served best.
    pub(super) wanted: Vec<(TopicPartition, i64, i32)>,
}

impl Fetching {
    pub(super) async fn run(self) -> Event {
        let broker = self.broker.id;
        let mut asked = self.wanted.iter().map(|(key, offset, _)| (key.clone(), *offset)).collect();
        let outcome = self.fetch(&mut asked).await;
        Event::Fetched(Box::new(Fetched { broker, asked, outcome }))
    }

    async fn fetch(
        mut self,
        asked: &mut BTreeMap<TopicPartition, i64>,
    ) -> Result<(BrokerConnection, FetchAnswer), ConnectionError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                BrokerConnection::connect(&self.broker.host, self.broker.port, self.connect.clone()).await?
            }
        };
        if connection.version_of::<FetchRequest>()? < LIMITS_WHOLE {
            self.wanted.truncate(MOST_PARTITIONS);
            asked.retain(|key, _| self.wanted.iter().any(|(wanted, ..)| wanted == key));
        }
        let sent = Instant::now();
        let answer = connection.fetch(&self.request()).await?;
        if answer.partitions.iter().all(|(_, partition)| partition.records.is_empty()) {
            tokio::time::sleep_until(sent + LEAST_PERIOD).await;
        }
        Ok((connection, answer))
    }

    fn request(&self) -> FetchRequest {
        // partitions in a row of one topic stand together, and the order is kept
        let mut topics = Vec::<FetchTopic>::new();
        for (TopicPartition { topic, partition, .. }, offset, max_bytes) in &self.wanted {
            let wanted = FetchPartition {
                partition: *partition,
                leader_epoch: -1,
                offset: *offset,
                max_bytes: *max_bytes,
            };
            match topics.last_mut().filter(|last| last.topic == *topic) {
                Some(last) => last.partitions.push(wanted),
                None => topics.push(FetchTopic { topic: Arc::clone(topic), partitions: vec![wanted] }),
            }
        }
        FetchRequest {
            max_wait_ms: i32::try_from(self.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: MOST_BYTES,
            read_committed: self.read_committed,
            session_id: 0,
            session_epoch: NO_SESSION_EPOCH,
            topics,
            forgotten: Vec::new(),
            rack: "".into(),
        }
    }
}
