//! Producing fast: one thread fills batches, some send them.

use crate::{
    Client, ClusterError,
    batch::{Batch, ProducerId},
    client::not_yet,
    connection::{Api, Connection},
    generation::Format,
    poll::{Look, until},
    wire::{Reader, Writer},
};
use std::{
    collections::HashMap,
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// Bytes of a full batch, well below the default `message.max.bytes` (1 MB).
const FULL: usize = 256 * 1024;
/// Threads that send, so that one fills a batch while a broker writes another.
const SENDERS: usize = 4;
/// Full batches that wait for each sender.
const QUEUE: usize = 4;
const REQUEST_TIMEOUT_MS: i32 = 5_000;
/// The broker has the batch from an attempt whose answer was lost.
const DUPLICATE_SEQUENCE: i16 = 46;

/// A record to produce.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProduceRecord {
    /// Where to; `None` for the key's partition, or without a key for one after the other.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Vec<u8>,
}

impl ProduceRecord {
    /// A record with only a value.
    pub fn value(value: impl Into<Vec<u8>>) -> Self {
        Self { partition: None, key: None, value: value.into() }
    }
}

impl From<String> for ProduceRecord {
    fn from(value: String) -> Self {
        Self::value(value)
    }
}

impl From<&str> for ProduceRecord {
    fn from(value: &str) -> Self {
        Self::value(value)
    }
}

/// A full batch on its way to a sender.
type Job = (i32, Batch);

pub(crate) fn produce(
    client: &Client,
    topic: &str,
    records: impl IntoIterator<Item = ProduceRecord>,
) -> Result<u64, ClusterError> {
    let partitions = client.wait_for_topic(topic)?;
    let producer = producer_id(client)?;
    let senders = SENDERS.min(usize::try_from(partitions).unwrap_or(1));
    thread::scope(|scope| {
        let (queues, threads): (Vec<_>, Vec<_>) = (0..senders)
            .map(|_| {
                let (queue, jobs) = sync_channel(QUEUE);
                let sender =
                    Sender { client, topic, producer, leaders: HashMap::new(), sent: HashMap::new() };
                (queue, scope.spawn(move || sender.run(&jobs)))
            })
            .unzip();
        let filled = fill(topic, records, (partitions, client.generation.format()), &queues);
        drop(queues);
        let mut count = 0;
        for thread in threads {
            count += thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        filled.map(|()| count)
    })
}

/// Puts records into batches and full batches into queues; a sender that failed ends it early, and tells why itself.
fn fill(
    topic: &str,
    records: impl IntoIterator<Item = ProduceRecord>,
    (partitions, format): (i32, Format),
    queues: &[SyncSender<Job>],
) -> Result<(), ClusterError> {
    let mut batches: Vec<Batch> = (0..partitions).map(|_| Batch::new(format)).collect();
    let queue_of = |partition: usize| &queues[partition % queues.len()];
    let job = |partition: usize, batch| (i32::try_from(partition).unwrap_or(i32::MAX), batch);
    let mut next = 0;
    for record in records {
        let chosen = match (record.partition, &record.key) {
            (Some(partition), _) => usize::try_from(partition).unwrap_or(usize::MAX),
            (None, Some(key)) => (murmur2(key) & 0x7fff_ffff) as usize % batches.len(),
            (None, None) => {
                next = (next + 1) % batches.len();
                next
            }
        };
        let Some(batch) = batches.get_mut(chosen) else {
            let what =
                format!("{topic} has {partitions} partitions, none with number {:?}", record.partition);
            return Err(ClusterError::Invalid(what));
        };
        batch.push(&record);
        if batch.size() >= FULL {
            let full = std::mem::replace(batch, Batch::new(format));
            if queue_of(chosen).send(job(chosen, full)).is_err() {
                return Ok(());
            }
        }
    }
    for (partition, batch) in batches.into_iter().enumerate().filter(|(_, batch)| batch.count() > 0) {
        if queue_of(partition).send(job(partition, batch)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sends the batches of its partitions, each partition's one after the other.
struct Sender<'a> {
    client: &'a Client,
    topic: &'a str,
    producer: ProducerId,
    /// Open connections to the leaders.
    leaders: HashMap<i32, Connection>,
    /// Records sent so far, which is the sequence number of the next.
    sent: HashMap<i32, i32>,
}

impl Sender<'_> {
    /// Until the queue closes; returns the number of acknowledged records.
    fn run(mut self, jobs: &Receiver<Job>) -> Result<u64, ClusterError> {
        let mut acknowledged = 0;
        for (partition, batch) in jobs {
            let count = batch.count();
            let sequence = self.sent.get(&partition).copied().unwrap_or(0);
            self.send(partition, &batch.seal(self.producer, sequence))?;
            self.sent.insert(partition, sequence.wrapping_add(count) & i32::MAX);
            acknowledged += u64::from(count.unsigned_abs());
        }
        Ok(acknowledged)
    }

    fn send(&mut self, partition: i32, batch: &[u8]) -> Result<(), ClusterError> {
        let api = self.client.generation.produce();
        let mut body = Writer(Vec::with_capacity(batch.len() + 100));
        if api.version >= 3 {
            body.i16(-1); // no transaction
        }
        body.i16(-1); // acks=all
        body.i32(REQUEST_TIMEOUT_MS);
        body.len(1);
        body.string(self.topic);
        body.len(1);
        body.i32(partition);
        body.bytes(batch);
        let what = format!("{}-{partition}", self.topic);
        until(&format!("acknowledgement of a batch to {what}"), || {
            let code = self.call(api, partition, &body.0);
            if !matches!(code, Ok(0)) {
                self.leaders.remove(&partition);
            }
            match code {
                Ok(0 | DUPLICATE_SEQUENCE) => Ok(Look::Done(())),
                Ok(code) => not_yet(api, &what, code, String::new()),
                Err(error) => Ok(Look::NotYet(error.to_string())),
            }
        })
    }

    /// One attempt; returns the error code.
    fn call(&mut self, api: Api, partition: i32, body: &[u8]) -> io::Result<i16> {
        if !self.leaders.contains_key(&partition) {
            self.leaders.insert(partition, self.client.leader(self.topic, partition)?);
        }
        let leader = self.leaders.get_mut(&partition).ok_or(io::ErrorKind::NotConnected)?;
        let response = leader.call(api, body)?;
        let codes = Reader(&response).vec(|topic| {
            topic.string()?;
            topic.vec(|partition| {
                partition.i32()?;
                let code = partition.i16()?;
                partition.i64()?; // base offset
                if api.version >= 2 {
                    partition.i64()?; // append time
                }
                Ok(code)
            })
        })?;
        codes.into_iter().flatten().next().ok_or_else(|| io::Error::other("no result"))
    }
}

fn producer_id(client: &Client) -> Result<ProducerId, ClusterError> {
    if client.generation.format() != Format::Batch {
        return Ok(ProducerId::NONE);
    }
    let mut body = Writer::default();
    body.i16(-1); // no transaction
    body.i32(REQUEST_TIMEOUT_MS);
    until("producer id", || {
        let any = client.any().map_err(io::Error::other);
        let response = any.and_then(|mut any| any.call(Api::INIT_PRODUCER_ID, &body.0));
        let answer = response.and_then(|response| {
            let mut response = Reader(&response);
            response.i32()?; // throttle time
            Ok((response.i16()?, ProducerId { id: response.i64()?, epoch: response.i16()? }))
        });
        match answer {
            Ok((0, producer)) => Ok(Look::Done(producer)),
            Ok((code, _)) => not_yet(Api::INIT_PRODUCER_ID, "the producer", code, String::new()),
            Err(error) => Ok(Look::NotYet(error.to_string())),
        }
    })
}

/// The hash by which Kafka's producer assigns keys to partitions (`Utils.murmur2`).
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_equals_kafkas() {
        // vectors of Kafka's own UtilsTest
        let vectors: [(&[u8], i32); 4] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key).cast_signed(), hash, "{key:?}");
        }
    }
}
