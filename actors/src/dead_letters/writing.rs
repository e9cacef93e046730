//! Finds the leader of a dead letter's partition, and has it write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::produce::{ProduceRequest, ProduceTopic, ProducedBatch, magic_of};
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter, write_messages};
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use kafka_troupe_proto::schemas::status::v1 as status;
use prost::Message;
use tokio::time::sleep;

use super::{DeadLetterError, DeadLetterProblem as Problem, Write, Written};
use crate::broker_connection::{BrokerConnection, ConnectOptions};
use crate::fetcher_manager::{BrokerAddress, KnownBrokers, Leaders, find_leaders};

/// All in-sync replicas (`acks=all`).
const ALL: i16 = -1;

/// How often a letter is tried before whoever sent it is told: enough for a leader that moves.
const TRIES: u32 = 4;

/// How dead letters are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteSettings {
    /// `client.id` and `socket.timeout.ms`.
    pub connect: ConnectOptions,
    /// `refresh.leader.backoff.ms` (200): before a letter is tried again and its leader is looked up anew; doubled by
    /// each try.
    pub backoff: Duration,
}

impl From<&ConsumerConfig> for WriteSettings {
    fn from(config: &ConsumerConfig) -> Self {
        let connect = ConnectOptions::new(&config.client_id, config.socket_timeout);
        Self { connect, backoff: config.refresh_leader_backoff }
    }
}

/// A connection to one broker, and the turn to use it.
type Lane = Arc<tokio::sync::Mutex<Option<BrokerConnection>>>;

/// What the letters of one life of the writer share.
pub(super) struct Writing {
    settings: WriteSettings,
    brokers: Arc<KnownBrokers>,
    /// Who leads the partitions of a topic, until one of them fails.
    leaders: Mutex<BTreeMap<Arc<str>, Arc<Leaders>>>,
    /// By broker.
    lanes: Mutex<BTreeMap<i32, Lane>>,
    status: Mutex<status::DeadLetters>,
}

/// A dead letter as a record.
struct Encoded {
    topic: Arc<str>,
    /// Of the record that was given up.
    number: i32,
    timestamp: i64,
    key: Option<Bytes>,
    value: Vec<u8>,
}

impl Encoded {
    fn new(topic: &Arc<str>, letter: &DeadLetter) -> Self {
        Self {
            topic: Arc::clone(topic),
            number: letter.partition,
            timestamp: letter.given_up_ms,
            key: letter.key.clone(),
            value: letter.encode_to_vec(),
        }
    }

    fn request(&self, partition: i32, version: i16, patience: Duration) -> Result<ProduceRequest, Problem> {
        let record = NewRecord {
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: Some(&self.value),
            headers: &[],
        };
        let records = match magic_of(version) {
            2 => {
                let mut batch = RecordBatchWriter::new(0);
                batch.push(&record);
                batch.finish()
            }
            magic => write_messages(magic, &[record]),
        };
        let records = records.map_err(|_| self.too_large(ErrorCode::MessageTooLarge))?;
        let topics =
            vec![ProduceTopic { topic: Arc::clone(&self.topic), partitions: vec![(partition, records)] }];
        let timeout_ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        Ok(ProduceRequest { acks: ALL, timeout_ms, topics })
    }

    fn too_large(&self, error: ErrorCode) -> Problem {
        let key = self.key.as_ref().map_or(0, Bytes::len);
        Problem::TooLarge { bytes: key + self.value.len(), error }
    }

    /// Why there is nowhere to write it, by what this broker says of its topic.
    fn without_partitions(&self, leaders: &Leaders, broker: String) -> Option<Problem> {
        match leaders.refusal(&self.topic) {
            Some(ErrorCode::UnknownTopicOrPartition) => Some(Problem::UnknownTopic { brokers: broker }),
            _ if leaders.partitions_of(&self.topic) > 0 => None,
            Some(error) => Some(self.refused(&broker, error)),
            None => Some(Problem::UnknownTopic { brokers: broker }),
        }
    }

    /// What a broker's code comes to.
    fn refused(&self, broker: &str, error: ErrorCode) -> Problem {
        match error {
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => self.too_large(error),
            ErrorCode::TopicAuthorizationFailed | ErrorCode::ClusterAuthorizationFailed => {
                Problem::NotAuthorized { topic: Arc::clone(&self.topic), error }
            }
            error => Problem::Refused { broker: broker.to_owned(), error },
        }
    }
}

/// The leader of a letter's partition.
struct Led {
    partition: i32,
    broker: BrokerAddress,
}

/// A try that failed.
struct Failed {
    problem: Problem,
    again: Again,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// A connection that was idle and had been closed: it may well go on another.
    AtOnce,
    /// After a pause, by whom leads then.
    Later,
    /// Somebody must do something first: not before whoever sent it has been told.
    NotHere,
}

impl Failed {
    fn later(problem: Problem) -> Self {
        Self { problem, again: Again::Later }
    }

    fn of(problem: Problem) -> Self {
        let again = if problem.may_pass() { Again::Later } else { Again::NotHere };
        Self { problem, again }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writing {
    pub(super) fn new(topics: Vec<String>, settings: WriteSettings, brokers: Arc<KnownBrokers>) -> Self {
        let status = Mutex::new(status::DeadLetters { topics, ..status::DeadLetters::default() });
        Self { settings, brokers, leaders: Mutex::default(), lanes: Mutex::default(), status }
    }

    pub(super) fn describe(&self) -> status::DeadLetters {
        locked(&self.status).clone()
    }

    /// Tries until it is written, or somebody has to be told.
    pub(super) async fn write(&self, Write { topic, letter }: Write) -> Result<Written, DeadLetterError> {
        let encoded = Encoded::new(&topic, &letter);
        let (partition, offset) =
            (TopicPartition::new(letter.topic.as_str(), letter.partition), letter.offset);
        let (mut tries, mut pause) = (0, self.settings.backoff);
        loop {
            let Failed { problem, again } = match self.try_once(&encoded).await {
                Ok(written) => {
                    tracing::info!(%topic, ?written, %partition, offset, "dead letter written");
                    self.written();
                    return Ok(written);
                }
                Err(failure) => failure,
            };
            locked(&self.leaders).remove(&topic);
            if again == Again::AtOnce {
                continue;
            }
            let error =
                DeadLetterError { topic: Arc::clone(&topic), partition: partition.clone(), offset, problem };
            self.failed(&error);
            tries += 1;
            if again == Again::NotHere || tries == TRIES {
                return Err(error);
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    fn written(&self) {
        let mut status = locked(&self.status);
        status.written += 1;
        status.last_error.clear();
    }

    fn failed(&self, error: &DeadLetterError) {
        tracing::warn!(why = %error, "dead letter not written yet; it is tried again");
        let mut status = locked(&self.status);
        status.failures += 1;
        status.last_error = error.to_string();
    }

    async fn try_once(&self, letter: &Encoded) -> Result<Written, Failed> {
        let Led { partition, broker } = self.leader(letter).await?;
        let lane = Arc::clone(locked(&self.lanes).entry(broker.id).or_default());
        let mut lane = lane.lock().await;
        let kept = lane.take().filter(|kept| is_at(kept, &broker));
        let was_kept = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.dial(&broker).await?,
        };
        let no_answer = |why: String| Failed::of(Problem::NoAnswer { why });
        let version = connection.version_of::<ProduceRequest>();
        let version = version.map_err(|error| no_answer(error.to_string()))?;
        // the broker's wait for the replicas ends before ours for the broker
        let patience = self.settings.connect.socket_timeout / 4 * 3;
        let request = letter.request(partition, version, patience).map_err(Failed::of)?;
        let answer = connection.call(&request).await.map_err(|error| {
            let again = if was_kept && error.problem.is_hang_up() { Again::AtOnce } else { Again::Later };
            Failed { problem: Problem::NoAnswer { why: error.to_string() }, again }
        })?;
        let address = connection.address().to_owned();
        *lane = Some(connection);
        let produced = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let mut produced = produced.filter(|it| it.partition == partition);
        let batch = produced.next().ok_or_else(|| no_answer(format!("{address} answered without it")))?;
        let ProducedBatch { error, base_offset, .. } = *batch;
        error.ok().map_err(|error| Failed::of(letter.refused(&address, error)))?;
        Ok(Written { partition, offset: base_offset })
    }

    async fn dial(&self, broker: &BrokerAddress) -> Result<BrokerConnection, Failed> {
        let options = self.settings.connect.clone();
        let dialled = BrokerConnection::connect(&broker.host, broker.port, options).await;
        // nothing was sent, so it is not there
        dialled.map_err(|error| Failed::later(Problem::NoLeader { why: error.to_string() }))
    }

    /// The topic's partition for the letter, and who leads it.
    async fn leader(&self, letter: &Encoded) -> Result<Led, Failed> {
        let known = locked(&self.leaders).get(&letter.topic).cloned();
        let leaders = match known {
            Some(leaders) => leaders,
            None => self.look_up(letter).await?,
        };
        let count = i32::try_from(leaders.partitions_of(&letter.topic)).unwrap_or(i32::MAX).max(1);
        let partition = letter.number.rem_euclid(count);
        let no_leader = |why: String| Failed::later(Problem::NoLeader { why });
        let led = leaders.of(&TopicPartition::new(Arc::clone(&letter.topic), partition));
        let led = led.map_err(|why| no_leader(format!("{}-{partition}: {why}", letter.topic)))?;
        let broker = leaders.brokers.iter().find(|broker| broker.id == led.broker).cloned();
        let broker = broker.ok_or_else(|| no_leader(format!("broker {} is not up", led.broker)))?;
        Ok(Led { partition, broker })
    }

    async fn look_up(&self, letter: &Encoded) -> Result<Arc<Leaders>, Failed> {
        let unreached = |why: String| Failed::later(Problem::Unreached { why });
        let brokers = self.brokers.get();
        if brokers.is_empty() {
            return Err(unreached("none is known yet".to_owned()));
        }
        let options = self.settings.connect.clone();
        let found = find_leaders(brokers.clone(), options, [Arc::clone(&letter.topic)].into()).await;
        let (asked, leaders) = found.map_err(unreached)?;
        let broker = brokers.iter().find(|broker| broker.id == asked);
        let broker = broker
            .map_or("the cluster".to_owned(), |it| format!("broker {} at {}:{}", it.id, it.host, it.port));
        if let Some(problem) = letter.without_partitions(&leaders, broker) {
            return Err(Failed::of(problem));
        }
        let leaders = Arc::new(leaders);
        locked(&self.leaders).insert(Arc::clone(&letter.topic), Arc::clone(&leaders));
        Ok(leaders)
    }
}

/// A broker may have come back on another port.
fn is_at(connection: &BrokerConnection, broker: &BrokerAddress) -> bool {
    let address = kafka_troupe_proto::config::ServerAddress::new(&broker.host, broker.port);
    connection.address() == address.to_string()
}
