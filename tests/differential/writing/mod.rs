//! Writes random records by all clients in turn, one at a time, so that each record's offset is known.

mod by_java;
mod by_raw;

use std::collections::BTreeSet;
use std::time::Instant;

use fastrand::Rng;
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::batches::{CODECS, Producer, encode};
use crate::journal::{Fate, How, Journal};
use crate::raw::{Batch, PATIENCE, Raw};
use crate::records;
use crate::topics::{PARTITIONS, Topic, taken_by};

/// Magic 2 came with them.
pub fn has_transactions(version: KafkaVersion) -> bool {
    taken_by(version).contains(&2)
}

/// All that writes, and what was written.
pub struct Writing<'a> {
    version: KafkaVersion,
    rng: &'a mut Rng,
    topics: Vec<Topic>,
    java: Vec<by_java::Java>,
    raw: Raw,
    /// Their transactions are open at the same time.
    transactional: Vec<by_raw::Transactions>,
    journal: Journal,
}

impl<'a> Writing<'a> {
    pub fn new(cluster: &Cluster, topics: Vec<Topic>, rng: &'a mut Rng) -> Self {
        let version = cluster.broker(0).version();
        let mut raw = Raw::connect(cluster.broker(0));
        let count = if has_transactions(version) { 3 } else { 0 };
        let transactional = (0..count).map(|number| by_raw::Transactions::new(&mut raw, number)).collect();
        Self {
            version,
            java: by_java::producers(cluster),
            rng,
            topics,
            raw,
            transactional,
            journal: Journal::default(),
        }
    }

    /// So many records, with each codec at least twice: in rounds without and with transactions of Java, in which
    /// those of the second client go on. Two transactions stay open, one with much after it. Brokers before 0.11 have
    /// none.
    pub fn write(mut self, count: usize) -> Journal {
        let codecs: Vec<&str> = CODECS.iter().map(|codec| codec.0).filter(|name| self.knows(name)).collect();
        let rounds = 2 * codecs.len().max(count / 5_000);
        for round in 0..rounds {
            self.change_formats(round, rounds);
            self.configure_java(codecs[round / 2 % codecs.len()], round % 2 == 1);
            while self.journal.count() < count * (round + 1) / rounds {
                self.step();
            }
            if round + 2 == rounds {
                self.leave_raw_open();
            }
            if round + 1 < rounds {
                self.end_java(0);
            }
        }
        self.end_all_raw();
        self.leave_java_open();
        for topic in self.topics.clone() {
            self.settle(topic.name);
        }
        self.journal
    }

    /// Brokers before 2.1 have no zstd.
    fn knows(&self, codec: &str) -> bool {
        codec != "zstd" || self.version > KafkaVersion::V1_1_1
    }

    fn step(&mut self) {
        match self.rng.u32(..8) {
            0..4 => self.send_by_java(),
            7 if !self.transactional.is_empty() => {
                let at = self.rng.usize(..self.transactional.len());
                self.end_raw(at);
            }
            _ => self.send_raw(),
        }
    }

    /// A topic that goes through formats has each for a third of the time.
    fn change_formats(&mut self, round: usize, rounds: usize) {
        for at in 0..self.topics.len() {
            let topic = &self.topics[at];
            let format = topic.formats[round * topic.formats.len() / rounds];
            if format != topic.format {
                self.raw.alter(topic, format);
                self.topics[at].format = format;
                self.wait_for_format(at);
            }
        }
    }

    /// The broker hears of it a moment later. Only of magic 2 must we know: until then it refuses headers.
    fn wait_for_format(&mut self, at: usize) {
        let topic = self.topics[at].clone();
        if topic.format < 2 {
            return;
        }
        let headers = vec![("header".to_owned(), None)];
        let record = JavaRecord { timestamp: Some(0), headers, ..records::plain(self.rng) };
        let batch = Batch {
            topic: topic.name,
            partition: record.partition,
            magic: 2,
            codec: "none",
            records: encode(std::slice::from_ref(&record), 2, CODECS[0].1, Producer::NONE),
            transactional_id: None,
        };
        let begun = Instant::now();
        while self.raw.produce(&batch).0 != 0 {
            assert!(begun.elapsed() < PATIENCE, "{} does not become magic 2", topic.name);
        }
        let how = How { writer: by_raw::NAME, magic: 2, codec: "none", transaction: None };
        self.journal.note(topic.name, record, how);
    }

    /// The record, with its timestamp only if consumers see just that.
    fn note(&mut self, topic: &Topic, mut record: JavaRecord, how: How) {
        if topic.format == 0 || topic.append_time || how.magic == 0 {
            record.timestamp = None;
        }
        self.journal.note(topic.name, record, how);
    }

    fn draw_fate(&mut self) -> Fate {
        if self.rng.u32(..5) < 3 { Fate::Committed } else { Fate::Aborted }
    }

    /// The markers come a moment after the answer.
    fn ended(&mut self, transaction: usize, fate: Fate) {
        let places = self.journal.end(transaction, fate);
        let topics: BTreeSet<&str> = places.into_iter().map(|(topic, _)| topic).collect();
        topics.into_iter().for_each(|topic| self.settle(topic));
    }

    /// Waits until a topic is as long as the journal says.
    fn settle(&mut self, topic: &'static str) {
        let expected: Vec<i64> = (0..PARTITIONS).map(|at| self.journal.end_of((topic, at))).collect();
        let begun = Instant::now();
        loop {
            let ends = self.raw.ends(topic);
            if ends == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{topic} ends at {ends:?}, not {expected:?}");
        }
    }
}
