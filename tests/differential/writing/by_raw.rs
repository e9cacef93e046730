//! What the second client writes.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::records::Compression;
use troupe_cluster::JavaRecord;

use super::Writing;
use crate::batches::{CODECS, Producer, encode};
use crate::journal::{Fate, How, Place};
use crate::raw::{Batch, Raw, Transactional};
use crate::records;
use crate::topics::{PARTITIONS, Topic, taken_by};

pub const NAME: &str = "kafka-protocol";

/// A producer and the transaction that it has now.
pub struct Transactions {
    producer: Transactional,
    /// Of the next record.
    sequences: BTreeMap<Place, i32>,
    now: Option<usize>,
    added: BTreeSet<Place>,
}

impl Transactions {
    pub fn new(raw: &mut Raw, number: usize) -> Self {
        let producer = Transactional::init(raw, format!("raw-{number}"));
        Self { producer, sequences: BTreeMap::new(), now: None, added: BTreeSet::new() }
    }

    /// Takes a partition into the transaction for so many records.
    fn enlist(&mut self, raw: &mut Raw, place: Place, count: usize) -> Producer {
        if self.added.insert(place) {
            self.producer.add(raw, place.0, place.1);
        }
        let next = self.sequences.entry(place).or_default();
        let sequence = *next;
        *next += i32::try_from(count).unwrap();
        Producer { id: self.producer.producer_id, epoch: self.producer.epoch, sequence, transactional: true }
    }
}

impl Writing<'_> {
    /// A batch of any magic, which the broker converts to that of the topic.
    pub(super) fn send_raw(&mut self) {
        let topic = self.topics[self.rng.usize(..self.topics.len())].clone();
        let transactional = topic.format == 2 && self.rng.bool();
        let magic = if transactional { 2 } else { self.rng.i8(taken_by(self.version)) };
        let known = CODECS.iter().filter(|codec| codec.2 <= magic && self.knows(codec.0));
        let codecs: Vec<_> = known.collect();
        let (codec, compression, _) = *codecs[self.rng.usize(..codecs.len())];
        let by = transactional.then(|| self.rng.usize(..self.transactional.len()));
        let partition = self.rng.i32(0..PARTITIONS);
        self.send_batch(&topic, partition, magic, (codec, compression), by);
    }

    fn send_batch(
        &mut self,
        topic: &Topic,
        partition: i32,
        magic: i8,
        (codec, compression): (&'static str, Compression),
        by: Option<usize>,
    ) {
        let place = (topic.name, partition);
        let records = self.raw_records(partition, magic == 2 && topic.format == 2, magic > 0);
        let (mut producer, mut transaction, mut transactional_id) = (Producer::NONE, None, None);
        if let Some(its) = by.map(|by| &mut self.transactional[by]) {
            transaction = Some(*its.now.get_or_insert_with(|| self.journal.begin()));
            producer = its.enlist(&mut self.raw, place, records.len());
            transactional_id = Some(its.producer.id.as_str());
        }
        let encoded = encode(&records, magic, compression, producer);
        let batch = Batch { topic: topic.name, partition, magic, codec, records: encoded, transactional_id };
        let answer = self.raw.produce(&batch);
        let what = format!("produce of magic {magic} in {codec} to {topic:?}");
        assert_eq!(answer, (0, self.journal.end_of(place)), "{what}: error code and offset");
        let how = How { writer: NAME, magic, codec, transaction };
        records.into_iter().for_each(|record| self.note(topic, record, how));
    }

    /// Of one batch, in which `kafka-protocol` takes no distant timestamps and no name twice.
    fn raw_records(&mut self, partition: i32, headers: bool, timestamps: bool) -> Vec<JavaRecord> {
        let base = records::timestamp(self.rng);
        let most = if self.rng.bool() { 3 } else { 60 };
        let count = self.rng.usize(1..=most);
        let mut record = || {
            let mut record = JavaRecord { partition, ..records::plain(self.rng) };
            if timestamps {
                record.timestamp = Some(base + self.rng.i64(0..1_000_000));
            }
            if headers {
                let mut names = BTreeSet::new();
                record.headers = records::headers(self.rng);
                record.headers.retain(|(name, _)| names.insert(name.clone()));
            }
            record
        };
        (0..count).map(|_| record()).collect()
    }

    /// Commits or aborts, if there is a transaction.
    pub(super) fn end_raw(&mut self, at: usize) {
        let Some(transaction) = self.transactional[at].now.take() else { return };
        let fate = self.draw_fate();
        let its = &mut self.transactional[at];
        its.added.clear();
        its.producer.end(&mut self.raw, fate == Fate::Committed);
        self.ended(transaction, fate);
    }

    pub(super) fn end_all_raw(&mut self) {
        (0..self.transactional.len()).for_each(|at| self.end_raw(at));
    }

    /// In the last partition of each topic that takes it; more comes after it.
    pub(super) fn leave_raw_open(&mut self) {
        if self.transactional.is_empty() {
            return;
        }
        self.end_raw(0);
        let topics: Vec<Topic> = self.topics.iter().filter(|topic| topic.format == 2).cloned().collect();
        for topic in topics {
            self.send_batch(&topic, PARTITIONS - 1, 2, ("gzip", Compression::Gzip), Some(0));
        }
        self.transactional.remove(0);
    }
}
