//! Batches of the second client: records as `kafka-protocol` encodes them.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use troupe_cluster::JavaRecord;

/// The names by which Kafka's properties call them, and the least magic that `kafka-protocol` writes each with.
pub const CODECS: [(&str, Compression, i8); 5] = [
    ("none", Compression::None, 0),
    ("gzip", Compression::Gzip, 0),
    ("snappy", Compression::Snappy, 0),
    ("lz4", Compression::Lz4, 1),
    ("zstd", Compression::Zstd, 2),
];

/// Whose batch it is.
#[derive(Debug, Clone, Copy)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
    /// Of the first record.
    pub sequence: i32,
    pub transactional: bool,
}

impl Producer {
    pub const NONE: Self = Self { id: -1, epoch: -1, sequence: -1, transactional: false };
}

/// A message set or a batch; all records have timestamps, close together.
pub fn encode(records: &[JavaRecord], version: i8, compression: Compression, producer: Producer) -> Bytes {
    let records: Vec<Record> = (0..).zip(records).map(|(at, record)| convert(record, at, producer)).collect();
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, &records, &RecordEncodeOptions { version, compression }).unwrap();
    bytes.freeze()
}

fn convert(record: &JavaRecord, at: i32, producer: Producer) -> Record {
    let header = |(name, value): &(String, Option<Vec<u8>>)| {
        (StrBytes::from_string(name.clone()), value.clone().map(Bytes::from))
    };
    Record {
        transactional: producer.transactional,
        control: false,
        partition_leader_epoch: -1,
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        timestamp_type: TimestampType::Creation,
        offset: i64::from(at),
        // in step with the offsets, or the encoder begins another batch; without producer only the first is written
        sequence: producer.sequence + at,
        timestamp: record.timestamp.unwrap_or(-1),
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: record.headers.iter().map(header).collect(),
    }
}
