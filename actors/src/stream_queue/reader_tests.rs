//! Transactions: whatever is fetched from wherever, read committed gives what a whole log would.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::kafka::compression::Compression;
use kafka_troupe_proto::kafka::fetch::AbortedTransaction;
use kafka_troupe_proto::kafka::records::{DecodeOptions, NewRecord, RecordBatchWriter};
use kafka_troupe_proto::zk::ConsumerThreadId;
use proptest::prelude::*;

use super::*;
use crate::lease::{BootInstant, Lease, SessionEpoch};
use crate::registry::{Claim, Position};
use crate::stream_queue::Credit;

/// What happens to a log.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many records without a transaction.
    Plain(i64),
    /// So many in the transaction of a producer, with one more compacted away behind them or not.
    Write(i64, i64, bool),
    /// The end of its transaction, if one is open: whether it is committed.
    End(i64, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => (1..4i64).prop_map(Event::Plain),
        4 => (0..3i64, 1..4i64, any::<bool>()).prop_map(|(producer, count, gap)| Event::Write(producer, count, gap)),
        3 => (0..3i64, any::<bool>()).prop_map(|(producer, commits)| Event::End(producer, commits)),
    ]
}

struct Aborted {
    transaction: AbortedTransaction,
    marker: i64,
}

/// A log, and what is true of it.
#[derive(Default)]
struct Log {
    /// Base offset, next offset, bytes.
    batches: Vec<(i64, i64, Bytes)>,
    /// Offsets of records, each with whether it is committed, once that is known.
    records: BTreeMap<i64, bool>,
    aborted: Vec<Aborted>,
    /// First offset and records of open transactions.
    open: BTreeMap<i64, (i64, Vec<i64>)>,
    end: i64,
}

impl Log {
    fn of(events: &[Event]) -> Self {
        let mut log = Self::default();
        for event in events {
            match *event {
                Event::Plain(count) => {
                    let offsets = log.write(RecordBatchWriter::new(log.end), count, false);
                    log.records.extend(offsets.into_iter().map(|offset| (offset, true)));
                }
                Event::Write(producer, count, gap) => {
                    let (first, batch) = (log.end, RecordBatchWriter::new(log.end));
                    let offsets = log.write(batch.transactional(producer, 0), count, gap);
                    log.open.entry(producer).or_insert((first, Vec::new())).1.extend(offsets);
                }
                Event::End(producer, commits) => log.end_transaction(producer, commits),
            }
        }
        log
    }

    fn write(&mut self, mut batch: RecordBatchWriter, count: i64, gap: bool) -> Vec<i64> {
        let offsets: Vec<_> = (self.end..self.end + count).collect();
        for _ in &offsets {
            batch.push(&NewRecord { value: Some(b"v"), ..NewRecord::default() });
        }
        self.put(batch.end_at(self.end + count + i64::from(gap)), self.end + count + i64::from(gap));
        offsets
    }

    fn put(&mut self, batch: RecordBatchWriter, next: i64) {
        self.batches.push((self.end, next, batch.finish().unwrap()));
        self.end = next;
    }

    fn end_transaction(&mut self, producer: i64, commits: bool) {
        let Some((first_offset, offsets)) = self.open.remove(&producer) else { return };
        let mut marker = RecordBatchWriter::new(self.end).transactional(producer, 0).control();
        let key = [0, 0, 0, u8::from(commits)];
        marker.push(&NewRecord { key: Some(&key), value: Some(&[0; 6]), ..NewRecord::default() });
        if !commits {
            let transaction = AbortedTransaction::new(producer, first_offset);
            self.aborted.push(Aborted { transaction, marker: self.end });
        }
        self.records.extend(offsets.into_iter().map(|offset| (offset, commits)));
        self.put(marker, self.end + 1);
    }

    /// The last stable offset.
    fn stable_end(&self) -> i64 {
        self.open.values().map(|(first, _)| *first).min().unwrap_or(self.end)
    }

    /// What a broker answers, of `batches` batches at most: the bytes, where they end, and the transactions aborted.
    fn fetch(&self, offset: i64, batches: usize) -> (Bytes, i64, Vec<AbortedTransaction>) {
        let stable = self.stable_end();
        let wanted = self.batches.iter().filter(|(_, next, _)| (offset + 1..=stable).contains(next));
        let (mut bytes, mut end) = (BytesMut::new(), offset);
        for (_, next, batch) in wanted.take(batches) {
            bytes.extend_from_slice(batch);
            end = *next;
        }
        let overlaps = |it: &&Aborted| it.marker >= offset && it.transaction.first_offset < end + 2;
        (bytes.freeze(), end, self.aborted.iter().filter(overlaps).map(|it| it.transaction).collect())
    }

    fn base_of(&self, offset: i64) -> i64 {
        self.batches.iter().find(|(_, next, _)| offset < *next).map_or(self.end, |(base, ..)| *base)
    }
}

fn claim(offset: i64) -> (Arc<OwnedPartition>, Arc<Lease>) {
    let (lease, epoch) = (Arc::new(Lease::new()), SessionEpoch(1));
    lease.extend_to(epoch, BootInstant::now() + Duration::from_secs(3600));
    let claim = Claim {
        topic_partition: TopicPartition::new("topic", 0),
        generation: Generation(1),
        session: SessionNumber(1),
        epoch,
        thread: ConsumerThreadId::new("group_host", 0),
        appeared: false,
        position: Position { offset: Some(offset), ..Position::NONE },
    };
    let credit = Arc::new(Credit::new(2, 1 << 20));
    (Arc::new(OwnedPartition::new(claim, credit, Arc::clone(&lease))), lease)
}

/// Reads a chunk as a handler does; gives the offsets handed over.
fn read(log: &Log, chunk: FetchedChunk, options: &ReadOptions) -> Vec<i64> {
    let (partition, mut decompressor) = (Arc::clone(&chunk.partition), options.decompressor());
    let (mut reader, mut handed_over) = (ChunkReader::new(chunk, options), Vec::new());
    loop {
        match reader.step(&mut decompressor, |record| record.offset()) {
            Step::HandedOver(offset) => {
                assert!(partition.acked() >= log.base_of(offset), "what was passed over holds the position");
                handed_over.push(offset);
                reader.handled();
            }
            Step::End => return handed_over,
            _ => panic!("it can be read"),
        }
    }
}

proptest! {
    #[test]
    fn read_committed_gives_what_is_committed_wherever_a_chunk_begins_and_ends(
        events in prop::collection::vec(event(), 1..40),
        start in 0..100i64,
        chunks in prop::collection::vec((1..6usize, 0..6i64), 40),
        read_committed in any::<bool>(),
    ) {
        let log = Log::of(&events);
        let start = start % (log.stable_end() + 1);
        let options = ReadOptions { read_committed, ..ReadOptions::default() };
        let (partition, _lease) = claim(start);
        let mut read_all = Vec::new();
        for (batches, back) in chunks {
            // a fetcher that starts anew may begin behind what is handled already
            let offset = (partition.acked() - back).max(0);
            let (records, next_offset, aborted) = log.fetch(offset, batches);
            if next_offset > offset {
                let aborted = if read_committed { aborted } else { Vec::new() };
                let chunk = FetchedChunk::new(Arc::clone(&partition), offset, next_offset, records, aborted);
                let before = partition.acked();
                read_all.extend(read(&log, chunk, &options));
                prop_assert_eq!(partition.acked(), next_offset.max(before));
            }
        }
        let is_due = |(offset, committed): &(&i64, &bool)| {
            (start..partition.acked()).contains(*offset) && (!read_committed || **committed)
        };
        let due: Vec<_> = log.records.iter().filter(is_due).map(|(offset, _)| *offset).collect();
        prop_assert_eq!(read_all, due);
    }
}

#[test]
fn an_abort_marker_before_the_position_ends_its_transaction() {
    let events =
        [Event::Write(1, 2, false), Event::End(1, false), Event::Write(1, 2, false), Event::End(1, true)];
    let log = Log::of(&events);
    let (partition, _lease) = claim(3);
    let (records, next_offset, aborted) = log.fetch(0, 4);
    assert_eq!(aborted, [AbortedTransaction::new(1, 0)]);
    let chunk = FetchedChunk::new(Arc::clone(&partition), 0, next_offset, records, aborted);
    let options = ReadOptions { read_committed: true, ..ReadOptions::default() };
    assert_eq!(read(&log, chunk, &options), [3, 4]);
    assert_eq!(partition.acked(), 6);
}

fn single(batch: Bytes, next_offset: i64, options: &ReadOptions) -> Step<i64> {
    let (partition, _lease) = claim(0);
    let chunk = FetchedChunk::new(partition, 0, next_offset, batch, Vec::new());
    ChunkReader::new(chunk, options).step(&mut options.decompressor(), |record| record.offset())
}

fn error(step: Step<i64>) -> ConsumeError {
    match step {
        Step::Failed(error) => error,
        _ => panic!("it can be read"),
    }
}

#[test]
fn a_batch_that_comes_to_too_much_names_the_property() {
    let mut batch = RecordBatchWriter::new(0);
    batch.push(&NewRecord { value: Some(&[7; 20]), ..NewRecord::default() });
    // one bare block of one literal
    let payload = batch.payload().to_vec();
    let length = u8::try_from(payload.len()).unwrap();
    let block = [&[length, (length - 1) << 2][..], &payload].concat();
    let bytes = batch.finish_compressed(Compression::Snappy, &block).unwrap();
    let fits = ReadOptions { decompressed_batch_max_bytes: payload.len(), ..ReadOptions::default() };
    assert!(matches!(single(bytes.clone(), 1, &fits), Step::HandedOver(0)));
    let small = ReadOptions { decompressed_batch_max_bytes: payload.len() - 1, ..fits };
    let error = error(single(bytes, 1, &small)).to_string();
    assert!(error.contains("raise troupe.decompressed.batch.max.bytes"), "{error}");
}

#[test]
fn damage_is_found_unless_nobody_is_to_look() {
    let mut batch = RecordBatchWriter::new(0);
    batch.push(&NewRecord { value: Some(b"ab"), ..NewRecord::default() });
    let mut bytes = batch.finish().unwrap().to_vec();
    let value = bytes.len() - 3;
    bytes[value] ^= 1;
    let error = error(single(bytes.clone().into(), 1, &ReadOptions::default()));
    assert_eq!((error.offset, error.resume_at), (0, 1));
    assert!(error.to_string().ends_with("; to step over it, seek(\"topic\", 0, 1)"), "{error}");
    let unchecked =
        ReadOptions { decode: DecodeOptions::default().check_crcs(false), ..ReadOptions::default() };
    assert!(matches!(single(bytes.into(), 1, &unchecked), Step::HandedOver(0)));
}
