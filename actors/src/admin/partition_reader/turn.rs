//! What is asked for next, and what an answer changes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::fetch::FetchedPartition;

use super::asking::{Event, Fetched, Fetching, Finding, Found, Unfound};
use super::reading::{Bounds, Failed, Reading};
use super::{PartitionReadError, PartitionReader};
use crate::fetcher_manager::{BrokerAddress, Leaders};

impl PartitionReader {
    /// Asks for what is wanted, and takes in what comes first.
    pub(super) async fn turn(&mut self) {
        self.find();
        self.fetch();
        match self.under_way.next().await {
            Some(Event::Found(found)) => self.found(found),
            Some(Event::Fetched(fetched)) => self.fetched(*fetched),
            // nothing could be asked: whatever it is, it must not spin
            None => tokio::time::sleep(self.options.backoff).await,
        }
    }

    /// Has leaders looked for, and the ends of logs.
    fn find(&mut self) {
        let lacks = |reading: &Reading| reading.leader.is_none() || reading.wants_bounds().is_some();
        let lacking = self.readings.iter().filter(|(_, it)| lacks(it) && !it.is_over(self.options.until));
        let is_again = lacking.clone().any(|(_, it)| it.is_failing());
        let wanted: BTreeMap<_, _> = lacking.map(|(key, it)| (key.clone(), it.wants_bounds())).collect();
        if wanted.is_empty() || std::mem::replace(&mut self.is_finding, true) {
            return;
        }
        let pause = if is_again { self.options.backoff } else { Duration::ZERO };
        let finding = Finding {
            brokers: self.brokers.clone(),
            connect: self.connect.clone(),
            read_committed: self.options.read.read_committed,
            wanted,
            pause,
        };
        self.under_way.push(Box::pin(finding.run()));
    }

    fn found(&mut self, found: Result<Found, String>) {
        self.is_finding = false;
        let wanting = |reading: &Reading| reading.leader.is_none() || reading.wants_bounds().is_some();
        match found {
            Ok(Found { leaders, mut bounds }) => {
                self.learn(&leaders.brokers);
                for (key, reading) in self.readings.iter_mut().filter(|(_, it)| wanting(it)) {
                    let outcome = led(reading, &leaders, &self.brokers);
                    let outcome = match (outcome, bounds.remove(key)) {
                        (Ok(()), Some(bounds)) => told(reading, bounds, self.options.read.read_committed),
                        (outcome, _) => outcome,
                    };
                    self.errors.extend(failed(outcome, reading, &self.options));
                }
            }
            Err(why) => {
                for reading in self.readings.values_mut().filter(|it| wanting(it)) {
                    self.errors.extend(reading.unanswered(why.clone(), &self.options));
                }
            }
        }
    }

    /// The brokers that are up take the place of those that were known; those given stay.
    fn learn(&mut self, brokers: &[BrokerAddress]) {
        self.brokers.retain(|known| known.id < 0 || !brokers.iter().any(|it| it.id == known.id));
        self.brokers.extend(brokers.iter().cloned());
    }

    /// Has each broker asked that is not being asked.
    fn fetch(&mut self) {
        let mut wanted = BTreeMap::<i32, Vec<(TopicPartition, i64, i32)>>::new();
        for (key, reading) in &self.readings {
            if let (Some(leader), Some(offset)) = (reading.leader, reading.due(self.options.until)) {
                wanted.entry(leader).or_default().push((key.clone(), offset, reading.fetch_bytes));
            }
        }
        for (leader, mut wanted) in wanted {
            let Some(broker) = self.brokers.iter().find(|broker| broker.id == leader) else { continue };
            if !self.asked.insert(leader) {
                continue;
            }
            // counted by broker: where two are asked in turn, one of them would have each second partition first only
            let fetches = self.fetches.entry(leader).or_default();
            *fetches += 1;
            let first = *fetches % wanted.len();
            wanted.rotate_left(first);
            let fetching = Fetching {
                broker: broker.clone(),
                connection: self.connections.remove(&leader),
                connect: self.connect.clone(),
                read_committed: self.options.read.read_committed,
                max_wait: self.options.max_wait,
                wanted,
            };
            self.under_way.push(Box::pin(fetching.run()));
        }
    }

    fn fetched(&mut self, Fetched { broker, asked, outcome }: Fetched) {
        self.asked.remove(&broker);
        let answered = match outcome {
            Ok((_, answer)) if !answer.head.error.is_ok() => Err(answer.head.error.to_string()),
            Ok((connection, answer)) => {
                self.connections.insert(broker, connection);
                Ok(answer.partitions)
            }
            Err(error) => Err(error.to_string()),
        };
        match answered {
            Ok(partitions) => {
                for (key, partition) in partitions {
                    self.take_in(&key, asked.get(&key).copied(), partition);
                }
            }
            Err(why) => {
                for (key, _) in asked {
                    if let Some(reading) = self.readings.get_mut(&key) {
                        self.errors.extend(reading.unanswered(why.clone(), &self.options));
                    }
                }
            }
        }
    }

    fn take_in(&mut self, key: &TopicPartition, asked: Option<i64>, answer: FetchedPartition) {
        let Some(reading) = self.readings.get_mut(key) else { return };
        // it may stand elsewhere by now
        let Some(from) = asked.filter(|asked| reading.due(self.options.until) == Some(*asked)) else {
            return;
        };
        if !answer.error.is_ok() {
            let outcome = reading.refused(answer.error);
            self.errors.extend(failed(outcome, reading, &self.options));
            return;
        }
        match reading.fetched(from, answer, &self.options) {
            Ok(chunk) => self.chunks.extend(chunk),
            Err(error) => self.errors.push_back(error),
        }
    }
}

/// Who leads it.
fn led(reading: &mut Reading, leaders: &Leaders, brokers: &[BrokerAddress]) -> Result<(), Failed> {
    let refusal = leaders.refusal(&reading.key.topic).filter(|it| it.disposition() == Disposition::Fatal);
    if let Some(error) = refusal {
        return reading.refused(error);
    }
    let leader = leaders.of(&reading.key).map_err(|why| {
        let is_missing = !leaders.brokers.is_empty() && !leaders.tells_of(&reading.key);
        let missing = is_missing.then(|| reading.not_known(leaders.partitions_of(&reading.key.topic)));
        missing.flatten().map_or(Failed::Try(why), Failed::Now)
    })?;
    if !brokers.iter().any(|broker| broker.id == leader.broker) {
        return Err(Failed::Try(format!("its leader, broker {}, is not up", leader.broker)));
    }
    reading.leader = Some(leader.broker);
    Ok(())
}

fn told(reading: &mut Reading, bounds: Result<Bounds, Unfound>, read_committed: bool) -> Result<(), Failed> {
    match bounds {
        Ok(bounds) => reading.bounded(bounds, read_committed).map_or(Ok(()), |error| Err(Failed::Now(error))),
        // a log that has no place of that kind
        Err(Unfound::Refused(ErrorCode::OffsetOutOfRange)) => {
            Err(Failed::Try(ErrorCode::OffsetOutOfRange.to_string()))
        }
        Err(Unfound::Refused(error)) => reading.refused(error),
        Err(Unfound::Unanswered(why)) => Err(Failed::Try(why)),
    }
}

fn failed(
    outcome: Result<(), Failed>,
    reading: &mut Reading,
    options: &super::PartitionReadOptions,
) -> Option<PartitionReadError> {
    match outcome {
        Ok(()) => None,
        Err(Failed::Now(error)) => Some(error),
        Err(Failed::Try(why)) => reading.unanswered(why, options),
    }
}
