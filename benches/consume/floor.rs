//! The floor: fetch over one connection, walk the records, check the checksums; the next fetch is sent before that.
//! No group, no commits, no threads, nothing per record but the walk.

use std::sync::Arc;
use std::time::Instant;

use kafka_troupe::proto::kafka::compression::Decompressor;
use kafka_troupe::proto::kafka::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchedPartition, NO_SESSION_EPOCH,
};
use kafka_troupe::proto::kafka::records::{DecodeOptions, RecordBatches, extent};

use crate::contender::Tally;
use crate::link::Link;
use crate::{PARTITIONS, Result, TOPIC};

/// The first that is served without conversion from brokers with magic 2.
const VERSION: i16 = 4;
/// As Troupe's defaults.
const PARTITION_BYTES: i32 = 1 << 20;
const RESPONSE_BYTES: i32 = 8 << 20;

/// Reads the whole topic.
pub fn consume(port: u16, per_partition: i64) -> Result<Tally> {
    let mut link = Link::connect(port)?;
    let mut decompressor = Decompressor::default();
    let mut offsets = vec![0; PARTITIONS as usize];
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    let mut tally = Tally::default();
    let mut buffer = Vec::new();
    let mut first = None;
    link.send(&request(&order, &offsets), VERSION)?;
    while !order.is_empty() {
        let (response, frame) = link.receive::<FetchResponse>(VERSION, buffer)?;
        first.get_or_insert_with(Instant::now);
        let sets: Vec<_> = response.topics.into_iter().flat_map(|topic| topic.partitions).collect();
        let from = offsets.clone();
        for set in &sets {
            let index = set.partition as usize;
            if let Some(next) = extent(&set.records).next_offset {
                offsets[index] = next;
                // who got something goes to the back
                order.retain(|other| *other != index);
                order.push(index);
            }
        }
        order.retain(|index| offsets[*index] < per_partition);
        if !order.is_empty() {
            link.send(&request(&order, &offsets), VERSION)?;
        }
        for set in sets {
            let index = set.partition as usize;
            walk(set, from[index], &mut decompressor, &mut tally)?;
        }
        buffer = Vec::from(frame);
    }
    tally.nanos = first.map_or(0, |first| first.elapsed().as_nanos());
    Ok(tally)
}

fn request(order: &[usize], offsets: &[i64]) -> FetchRequest {
    let partition = |index: &usize| FetchPartition {
        partition: *index as i32,
        leader_epoch: -1,
        offset: offsets[*index],
        max_bytes: PARTITION_BYTES,
    };
    FetchRequest {
        max_wait_ms: 100,
        min_bytes: 1,
        max_bytes: RESPONSE_BYTES,
        read_committed: false,
        session_id: 0,
        session_epoch: NO_SESSION_EPOCH,
        topics: vec![FetchTopic {
            topic: Arc::from(TOPIC),
            partitions: order.iter().map(partition).collect(),
        }],
        forgotten: Vec::new(),
        rack: Arc::from(""),
    }
}

fn walk(set: FetchedPartition, from: i64, decompressor: &mut Decompressor, tally: &mut Tally) -> Result {
    set.error.ok()?;
    let mut batches = RecordBatches::new(set.records, from, DecodeOptions::default());
    while let Some(batch) = batches.next_batch(decompressor) {
        let batch = batch?;
        let mut cursor = batch.records();
        while let Some(record) = cursor.next() {
            tally.add(record?.value(&batch.payload));
        }
    }
    Ok(())
}
