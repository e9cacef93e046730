use crate::kafka::compression::CompressionError;

/// A record set that cannot be read on. What came before it has been delivered; the caller adds topic and partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("records from offset {offset}: {problem}; to step over them, set the position to {resume_at}")]
#[non_exhaustive]
pub struct RecordsError {
    /// The first offset that could not be read; of a compressed wrapper of magic 0 or 1 its own, which is that of its
    /// last message.
    pub offset: i64,
    /// The next offset at which reading may go on: after the batch, as far as its header can be trusted.
    pub resume_at: i64,
    /// What is wrong. Boxed, so that the record walk returns few bytes.
    pub problem: Box<RecordsProblem>,
}

impl RecordsError {
    pub(super) fn new(offset: i64, resume_at: i64, problem: RecordsProblem) -> Self {
        let resume_at = resume_at.max(offset.saturating_add(1));
        Self { offset, resume_at, problem: Box::new(problem) }
    }
}

/// What is wrong with a record set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsProblem {
    /// A format that does not exist (yet).
    #[error("magic {0} is unknown: 0, 1 and 2 can be read")]
    Magic(i8),
    /// A size that cannot hold the fixed fields.
    #[error("size {size} is below the least of {least} bytes")]
    Size {
        /// As it stands in the entry, in bytes.
        size: i32,
        /// What the fixed fields take.
        least: i32,
    },
    /// Negative, or beyond the highest offset.
    #[error("offset or last offset delta {0} is out of range")]
    Offset(i64),
    /// The data was damaged, on disk or on its way.
    #[error("checksum {computed:#010x} differs from the stored {stored:#010x}")]
    Checksum {
        /// As it stands in the entry.
        stored: u32,
        /// Over the bytes.
        computed: u32,
    },
    /// See [`CompressionError`].
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// A negative record count, or one that cannot fit in the bytes.
    #[error("record count {count} cannot fit in {bytes} bytes")]
    Count {
        /// As it stands in the batch.
        count: i32,
        /// Decompressed bytes.
        bytes: usize,
    },
    /// A record that cannot be read: which field.
    #[error("malformed record: {0}")]
    Record(&'static str),
}
