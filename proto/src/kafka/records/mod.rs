//! Record sets: what a Fetch response holds per partition.
//!
//! A record set is a row of entries of any magic: *batches* (magic 2), or *messages* (magic 0 and 1), plain or as the
//! compressed wrapper of an inner set. [`extent`] walks the entries shallowly (the next fetch offset, without
//! decoding); [`RecordBatches`] decodes one after the other (checksum, decompression); [`RecordCursor`] walks the
//! records of one lazily, without allocation.
//!
//! ```
//! # use kafka_troupe_proto::kafka::compression::Decompressor;
//! # use kafka_troupe_proto::kafka::records::{DecodeOptions, NewRecord, RecordBatchWriter, RecordBatches};
//! # let mut writer = RecordBatchWriter::new(5);
//! # writer.push(&NewRecord { value: Some(b"v"), ..NewRecord::default() });
//! # let records = writer.finish()?;
//! let mut decompressor = Decompressor::default();
//! let mut batches = RecordBatches::new(records, 0, DecodeOptions::default());
//! while let Some(batch) = batches.next_batch(&mut decompressor) {
//!     let batch = batch?;
//!     let mut cursor = batch.records();
//!     while let Some(record) = cursor.next() {
//!         let record = record?;
//!         assert_eq!((record.offset, record.value(&batch.payload)), (5, Some(&b"v"[..])));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod batches;
mod checksum;
mod cursor;
mod entry;
mod error;
mod legacy;
mod raw_record;
mod transactions;
mod writer;

pub use batch::{ControlType, RecordBatch, TimestampType};
pub use batches::{DecodeOptions, RecordBatches};
pub use checksum::message_checksum;
pub use cursor::RecordCursor;
pub use entry::{PartialBatch, RecordSetExtent, extent};
pub use error::{RecordsError, RecordsProblem};
pub use raw_record::{Header, Headers, Range32, RawRecord};
pub use transactions::TransactionFilter;
pub use writer::{NewRecord, RecordBatchWriter, write_messages};

#[cfg(all(test, feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod tests;
