mod batches;
mod field_cases;
mod golden;
mod hostile;
mod messages;
mod transactions;

use super::{DecodeOptions, NewRecord, RecordBatchWriter, RecordBatches, RecordsError};
use crate::kafka::compression::Decompressor;
use bytes::{BufMut, Bytes, BytesMut};

/// Offset, timestamp, value.
type Seen = (i64, i64, Option<Vec<u8>>);

/// All records from `from` on, and the error that ended the walk.
fn walk(set: impl Into<Bytes>, from: i64) -> (Vec<Seen>, Option<RecordsError>) {
    walk_with(set, from, DecodeOptions::default())
}

fn walk_with(set: impl Into<Bytes>, from: i64, options: DecodeOptions) -> (Vec<Seen>, Option<RecordsError>) {
    let mut decompressor = Decompressor::new(1 << 20);
    let mut batches = RecordBatches::new(set.into(), from, options);
    let mut seen = Vec::new();
    while let Some(batch) = batches.next_batch(&mut decompressor) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return (seen, Some(error)),
        };
        let mut cursor = batch.records();
        loop {
            // the short way must agree with the long one wherever it answers
            let mut short = cursor.clone();
            let usual = short.next_usual();
            let next = cursor.next();
            if let Some(usual) = usual {
                assert_eq!(next, Some(Ok(usual)));
                assert_eq!((short.remaining(), short.position()), (cursor.remaining(), cursor.position()));
            }
            let Some(record) = next else { break };
            match record {
                Ok(record) => {
                    let value = record.value(&batch.payload).map(<[u8]>::to_vec);
                    seen.push((record.offset, record.timestamp, value));
                }
                Err(error) => return (seen, Some(error)),
            }
        }
    }
    (seen, None)
}

fn offsets(set: impl Into<Bytes>, from: i64) -> Vec<i64> {
    let (seen, error) = walk(set, from);
    assert_eq!(error, None);
    seen.into_iter().map(|(offset, ..)| offset).collect()
}

fn writer(base: i64, values: &[&[u8]]) -> RecordBatchWriter {
    let mut writer = RecordBatchWriter::new(base);
    for (index, value) in values.iter().enumerate() {
        writer.push(&NewRecord {
            timestamp: 1000 + index as i64,
            value: Some(value),
            ..NewRecord::default()
        });
    }
    writer
}

fn batch(base: i64, values: &[&[u8]]) -> Bytes {
    writer(base, values).finish().expect("small enough")
}

/// Overwrites bytes of a batch and makes its checksum right again.
fn patched(batch: &[u8], at: usize, bytes: &[u8]) -> Bytes {
    let mut patched = batch.to_vec();
    patched[at..at + bytes.len()].copy_from_slice(bytes);
    let checksum = crc32c::crc32c(&patched[21..]).to_be_bytes();
    patched[17..21].copy_from_slice(&checksum);
    patched.into()
}

/// A message of magic 0 or 1.
fn message(magic: i8, offset: i64, attributes: u8, timestamp: i64, value: Option<&[u8]>) -> Bytes {
    let mut body = BytesMut::new();
    body.put_i8(magic);
    body.put_u8(attributes);
    if magic == 1 {
        body.put_i64(timestamp);
    }
    body.put_i32(-1);
    body.put_i32(value.map_or(-1, |value| value.len() as i32));
    body.put_slice(value.unwrap_or_default());
    let mut out = BytesMut::new();
    out.put_i64(offset);
    out.put_i32(body.len() as i32 + 4);
    out.put_u32(crc32fast::hash(&body));
    out.put_slice(&body);
    out.freeze()
}

fn joined(sets: &[Bytes]) -> Bytes {
    sets.concat().into()
}
