use super::batch::{BATCH_HEADER, CHECKED_FROM, CONTROL, TRANSACTIONAL};
use crate::kafka::compression::Compression;
use crate::kafka::wire::{WireError, WireProblem, varint};
use bytes::{BufMut, Bytes, BytesMut};

/// A record to write.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewRecord<'a> {
    /// In ms since 1970.
    pub timestamp: i64,
    /// `None` for null.
    pub key: Option<&'a [u8]>,
    /// `None` for null.
    pub value: Option<&'a [u8]>,
    /// In order; a key may repeat.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// Writes one batch of magic 2.
#[derive(Debug, Clone)]
pub struct RecordBatchWriter {
    base_offset: i64,
    next_offset: i64,
    attributes: i16,
    producer_id: i64,
    producer_epoch: i16,
    timestamps: Option<(i64, i64)>,
    count: i32,
    payload: BytesMut,
    record: BytesMut,
}

impl RecordBatchWriter {
    /// The first record gets `base_offset`; a producer always writes 0, and the broker sets the real one.
    pub fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            next_offset: base_offset,
            attributes: 0,
            producer_id: -1,
            producer_epoch: -1,
            timestamps: None,
            count: 0,
            payload: BytesMut::new(),
            record: BytesMut::new(),
        }
    }

    /// Marks the batch as part of a transaction of this producer.
    pub fn transactional(mut self, producer_id: i64, producer_epoch: i16) -> Self {
        self.attributes |= TRANSACTIONAL;
        (self.producer_id, self.producer_epoch) = (producer_id, producer_epoch);
        self
    }

    /// Marks the batch as a control batch, whose one record is the marker.
    pub fn control(mut self) -> Self {
        self.attributes |= CONTROL;
        self
    }

    /// Appends a record at the next offset.
    pub fn push(&mut self, record: &NewRecord<'_>) {
        self.push_at(self.next_offset, record);
    }

    /// Appends a record at `offset`, leaving a gap before it as compaction does. Offsets must rise.
    pub fn push_at(&mut self, offset: i64, record: &NewRecord<'_>) {
        let (base_timestamp, max_timestamp) = self.timestamps.unwrap_or((record.timestamp, record.timestamp));
        self.timestamps = Some((base_timestamp, max_timestamp.max(record.timestamp)));
        let out = &mut self.record;
        out.clear();
        out.put_i8(0);
        varint::put(out, record.timestamp.wrapping_sub(base_timestamp));
        varint::put(out, offset - self.base_offset);
        put_field(out, record.key);
        put_field(out, record.value);
        varint::put(out, record.headers.len() as i64);
        for (key, value) in record.headers {
            put_field(out, Some(key.as_bytes()));
            put_field(out, *value);
        }
        varint::put(&mut self.payload, self.record.len() as i64);
        self.payload.put_slice(&self.record);
        self.count += 1;
        self.next_offset = offset + 1;
    }

    /// Bytes of the records so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Sets the offset after the batch, as where compaction has removed its last records.
    pub fn end_at(mut self, next_offset: i64) -> Self {
        self.next_offset = next_offset.max(self.next_offset);
        self
    }

    /// The batch, uncompressed. Errors above 2 GiB.
    pub fn finish(self) -> Result<Bytes, WireError> {
        let payload = self.payload.clone();
        self.finish_compressed(Compression::None, &payload)
    }

    /// The batch with `compressed` in place of [`Self::payload`]. Errors above 2 GiB.
    pub fn finish_compressed(self, codec: Compression, compressed: &[u8]) -> Result<Bytes, WireError> {
        let length = BATCH_HEADER - 12 + compressed.len();
        let problem = WireProblem::TooLong(length);
        let size =
            i32::try_from(length).map_err(|_| WireError { what: "RecordBatch.length", at: 8, problem })?;
        let (base_timestamp, max_timestamp) = self.timestamps.unwrap_or((-1, -1));
        let mut out = BytesMut::with_capacity(BATCH_HEADER + compressed.len());
        out.put_i64(self.base_offset);
        out.put_i32(size);
        out.put_i32(-1); // partition leader epoch: the broker's to set
        out.put_i8(2);
        out.put_u32(0);
        out.put_i16(self.attributes | codec.attribute());
        out.put_i32((self.next_offset - self.base_offset - 1).max(0) as i32);
        out.put_i64(base_timestamp);
        out.put_i64(max_timestamp);
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(-1); // base sequence: not idempotent
        out.put_i32(self.count);
        out.put_slice(compressed);
        let checksum = crc32c::crc32c(&out[CHECKED_FROM..]);
        out[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        Ok(out.freeze())
    }
}

/// Messages of magic 0 or 1 (brokers before 0.11), uncompressed, with offsets from 0 as a producer writes them. Magic 0
/// has no timestamps, and neither has headers. Errors above 2 GiB.
pub fn write_messages(magic: i8, records: &[NewRecord<'_>]) -> Result<Bytes, WireError> {
    let mut out = BytesMut::new();
    for (offset, record) in records.iter().enumerate() {
        let message = message(magic, record)?;
        out.put_i64(offset as i64);
        out.put_i32(checked("Message.size", message.len() + 4)?);
        out.put_u32(crc32fast::hash(&message));
        out.put_slice(&message);
    }
    checked("MessageSet", out.len())?;
    Ok(out.freeze())
}

fn message(magic: i8, record: &NewRecord<'_>) -> Result<BytesMut, WireError> {
    let mut message = BytesMut::new();
    message.put_i8(magic);
    message.put_i8(0); // attributes: no codec, the producer's time
    if magic > 0 {
        message.put_i64(record.timestamp);
    }
    for (what, field) in [("Message.key", record.key), ("Message.value", record.value)] {
        message.put_i32(field.map_or(Ok(-1), |bytes| checked(what, bytes.len()))?);
        message.put_slice(field.unwrap_or_default());
    }
    Ok(message)
}

fn checked(what: &'static str, length: usize) -> Result<i32, WireError> {
    i32::try_from(length).map_err(|_| WireError { what, at: 0, problem: WireProblem::TooLong(length) })
}

fn put_field(out: &mut BytesMut, field: Option<&[u8]>) {
    varint::put(out, field.map_or(-1, |bytes| bytes.len() as i64));
    out.put_slice(field.unwrap_or_default());
}
