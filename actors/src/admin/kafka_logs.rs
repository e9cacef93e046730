//! Offsets of logs: their ends, and times in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use tokio::time::{Instant, sleep, timeout_at};

use super::KafkaAdmin;
use super::kafka::BACKOFF;
use crate::broker_connection::ConnectionError;
use crate::fetcher_manager::{BrokerAddress, LeaderConnection, Leaders, Listed, find_leaders};

/// Per partition: an offset, none where the log has none for that time; or why it cannot be told.
pub type LogOffsets = BTreeMap<TopicPartition, Result<Option<i64>, String>>;

/// What is asked of each leader.
#[derive(Clone, Copy)]
enum Question {
    /// What it says for the time.
    Listed(i64),
    /// Where a consumer begins.
    Position(i64),
}

impl KafkaAdmin {
    /// The offset in each log at a time in ms since 1970, or at an end:
    /// [`LATEST`](kafka_troupe_proto::kafka::list_offsets::LATEST),
    /// [`EARLIEST`](kafka_troupe_proto::kafka::list_offsets::EARLIEST).
    ///
    /// A time gives the first record of that time or younger, and none when there is none. Brokers before 0.10.1 go by
    /// the times at which segments were last written: the start of the youngest that was not written after that time,
    /// and none when all were.
    pub async fn log_offsets(&self, keys: &[TopicPartition], at: i64) -> LogOffsets {
        self.ask_leaders(keys, Question::Listed(at)).await
    }

    /// As [`Self::log_offsets`], but where a consumer would begin to read all that is of that time or younger: at the
    /// end of the log when there is nothing; with brokers before 0.10.1 at its beginning when they know of nothing
    /// older.
    pub async fn log_positions(&self, keys: &[TopicPartition], at: i64) -> LogOffsets {
        self.ask_leaders(keys, Question::Position(at)).await
    }

    async fn ask_leaders(&self, keys: &[TopicPartition], question: Question) -> LogOffsets {
        let deadline = Instant::now() + self.limit;
        let (mut told, mut open) = (LogOffsets::new(), keys.to_vec());
        loop {
            let round = self.ask_round(&open, question, deadline).await;
            told.extend(round.told);
            // what is still open stays as it is where no time is left
            told.extend(round.passing.iter().map(|(key, why)| (key.clone(), Err(why.clone()))));
            open = round.passing.into_keys().collect();
            if open.is_empty() || self.once || Instant::now() + BACKOFF >= deadline {
                return told;
            }
            sleep(BACKOFF).await;
        }
    }

    /// Who is silent costs no other leader's answer.
    async fn ask_round(&self, keys: &[TopicPartition], question: Question, deadline: Instant) -> Round {
        let mut round = Round::default();
        let topics = keys.iter().map(|key| Arc::clone(&key.topic)).collect();
        let found = timeout_at(deadline, find_leaders(self.brokers(), self.options.clone(), topics)).await;
        let leaders = match found.unwrap_or_else(|_| Err("the brokers are silent".to_owned())) {
            Ok((_, leaders)) => leaders,
            Err(why) => {
                round.passing = keys.iter().map(|key| (key.clone(), why.clone())).collect();
                return round;
            }
        };
        let by_leader = round.by_leader(keys, &leaders);
        let asked = by_leader.into_iter().map(async |(broker, keys)| {
            let address = leaders.brokers.iter().find(|it| it.id == broker);
            let Some(address) = address else { return (keys, Err(format!("broker {broker} is not up"))) };
            let listed = timeout_at(deadline, self.ask_leader(address, &keys, question)).await;
            let listed = listed.map(|listed| listed.map_err(|error| error.to_string()));
            (keys, listed.unwrap_or_else(|_| Err(format!("broker {broker} is silent"))))
        });
        for (keys, listed) in join_all(asked).await {
            round.sort(keys, listed);
        }
        round
    }

    async fn ask_leader(
        &self,
        leader: &BrokerAddress,
        keys: &[TopicPartition],
        question: Question,
    ) -> Result<Listed, ConnectionError> {
        let mut connection =
            LeaderConnection::connect(leader, self.options.clone(), self.read_committed).await?;
        let at = |time| keys.iter().map(|key| (key.clone(), time)).collect::<Vec<_>>();
        match question {
            Question::Listed(time) => connection.list(at(time)).await,
            Question::Position(time) => connection.list_ends(&at(time)).await.map(|ends| ends.asked),
        }
    }
}

/// Why it is no use to ask again, if it is none: there is no such topic, or no such partition of it.
fn missing(leaders: &Leaders, key: &TopicPartition) -> Option<String> {
    match (leaders.refusal(&key.topic), leaders.partitions_of(&key.topic)) {
        (None, 0) | (Some(ErrorCode::UnknownTopicOrPartition), _) => {
            Some("there is no such topic".to_owned())
        }
        (Some(error), _) if error.disposition() == Disposition::Fatal => Some(error.to_string()),
        (None, count) if !leaders.tells_of(key) => {
            Some(format!("there is no such partition: the topic has {count}"))
        }
        _ => None,
    }
}

/// What came of one round.
#[derive(Default)]
struct Round {
    told: LogOffsets,
    /// Why not yet.
    passing: BTreeMap<TopicPartition, String>,
}

impl Round {
    /// Whom to ask for which; the rest is settled.
    fn by_leader(
        &mut self,
        keys: &[TopicPartition],
        leaders: &Leaders,
    ) -> BTreeMap<i32, Vec<TopicPartition>> {
        let mut by_leader = BTreeMap::<_, Vec<_>>::new();
        for key in keys {
            match (missing(leaders, key), leaders.of(key)) {
                (Some(why), _) => drop(self.told.insert(key.clone(), Err(why))),
                (None, Ok(led)) => by_leader.entry(led.broker).or_default().push(key.clone()),
                (None, Err(why)) => drop(self.passing.insert(key.clone(), why)),
            }
        }
        by_leader
    }

    fn sort(&mut self, keys: Vec<TopicPartition>, listed: Result<Listed, String>) {
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(why) => return self.passing.extend(keys.into_iter().map(|key| (key, why.clone()))),
        };
        for key in keys {
            match listed.remove(&key).map(|listed| (listed.error, listed.offset)) {
                None => drop(self.passing.insert(key, "the answer leaves it out".to_owned())),
                Some((ErrorCode::None, offset)) => drop(self.told.insert(key, Ok(offset))),
                Some((error, _)) if error.disposition() == Disposition::Fatal => {
                    self.told.insert(key, Err(error.to_string()));
                }
                Some((error, _)) => drop(self.passing.insert(key, error.to_string())),
            }
        }
    }
}
