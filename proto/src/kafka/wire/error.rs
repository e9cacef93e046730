/// A message that could not be read or written: which field, where, and why.
///
/// A read error means that the peer is not a Kafka broker or that the connection is out of step: close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}: {problem}")]
#[non_exhaustive]
pub struct WireError {
    /// The field, as message and path, for example `FetchResponse.topics.partitions`.
    pub what: &'static str,
    /// Position in the message body, in bytes.
    pub at: usize,
    /// What is wrong with it.
    pub problem: WireProblem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireProblem {
    /// The message ends inside the field.
    #[error("needs {needed} bytes, {left} are left")]
    Truncated {
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that the message still has.
        left: usize,
    },
    /// A length or count below -1, or -1 (null) where a value is required.
    #[error("length {0} is not allowed here")]
    Length(i64),
    /// An element count that cannot fit in the rest of the message.
    #[error("{count} elements cannot fit in the {left} bytes left")]
    Count {
        /// The count that the message claims.
        count: usize,
        /// Bytes that the message still has.
        left: usize,
    },
    /// A string is not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// A variable-length integer that does not end, or overflows its type.
    #[error("malformed variable-length integer")]
    Varint,
    /// The message goes on after its last field.
    #[error("{0} unread bytes after the last field")]
    TrailingBytes(usize),
    /// The version is outside what this codec speaks.
    #[error("version {version} is outside {min} to {max}")]
    Version {
        /// The version asked for.
        version: i16,
        /// Lowest version spoken.
        min: i16,
        /// Highest version spoken.
        max: i16,
    },
    /// A value too long for its length field.
    #[error("{0} is more than the length field can say")]
    TooLong(usize),
    /// The first four bytes are no plausible size: the port speaks something else, or the reply is too large.
    #[error("size {size} exceeds the limit of {limit} bytes{hint}")]
    FrameSize {
        /// The size that the prefix claims, in bytes.
        size: u32,
        /// The limit given by the caller, in bytes.
        limit: usize,
        /// What the bytes look like instead (TLS, HTTP), or empty.
        hint: &'static str,
    },
}
