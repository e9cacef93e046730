//! What the topic of offsets remembers.

use crate::{Cluster, ClusterError, JavaRecord, wire::Reader};
use std::io;

/// A commit as the topic has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOffset {
    /// The group.
    pub group: String,
    /// The topic of the partition.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The offset; none where it was dropped.
    pub offset: Option<i64>,
}

impl Cluster {
    /// Every commit to Kafka that the topic still has, each partition's in its order, as [`Cluster::java_consume`] reads
    /// `__consumer_offsets`.
    ///
    /// # Errors
    /// Those of [`Cluster::java_consume`]; [`ClusterError::Io`] for a record that is cut.
    pub fn stored_offsets(&self) -> Result<Vec<StoredOffset>, ClusterError> {
        let records = self.java_consume("__consumer_offsets", &[])?;
        let offsets = records.iter().filter_map(|record| stored_offset(record).transpose());
        offsets.collect::<io::Result<_>>().map_err(ClusterError::io("read a record of __consumer_offsets"))
    }
}

/// A key is: version (0 or 1; others are no offsets), group, topic, partition. A value is: version, offset, and more.
fn stored_offset(record: &JavaRecord) -> io::Result<Option<StoredOffset>> {
    let mut key = Reader(record.key.as_deref().unwrap_or_default());
    if key.i16()? > 1 {
        return Ok(None);
    }
    let (group, topic, partition) = (key.string()?, key.string()?, key.i32()?);
    let offset = |value: &Vec<u8>| Reader(value.get(2..).unwrap_or_default()).i64();
    let offset = record.value.as_ref().map(offset).transpose()?;
    Ok(Some(StoredOffset { group, topic, partition, offset }))
}
