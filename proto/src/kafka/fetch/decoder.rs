use super::response::{FetchHead, head, partition_head};
use super::{FetchRequest, FetchedPartition};
use crate::kafka::frame::Request;
use crate::kafka::wire::{Reader, WireError, WireProblem};
use std::sync::Arc;

/// Decodes a Fetch response while it arrives, so that each record set can be read from the socket straight into a
/// buffer of its partition, and no buffer of the whole response's size is needed.
///
/// The caller reads some bytes, calls [`Self::next`] with all that it has not consumed yet, and drops what that
/// consumed. After [`FetchPart::Partition`] it takes `records_size` bytes from the stream itself (the first of them
/// may be among the bytes that it has) before the next call.
#[derive(Debug, Clone)]
pub struct FetchDecoder {
    version: i16,
    position: usize,
    left: usize,
    expects: Expects,
}

#[derive(Debug, Clone, Copy)]
enum Expects {
    Head,
    Topic { topics: usize },
    Partition { topics: usize, partitions: usize },
}

/// A part of a Fetch response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchPart {
    /// What stands before the topics.
    Head(FetchHead),
    /// The topic of the partitions that follow.
    Topic(Arc<str>),
    /// A partition, with its `records` left empty.
    Partition {
        /// All but the records.
        partition: FetchedPartition,
        /// Bytes of the records, which follow in the stream.
        records_size: usize,
    },
    /// Nothing follows.
    End,
}

impl FetchDecoder {
    /// Decodes a body (what follows the correlation id) of `body_size` bytes.
    pub fn new(version: i16, body_size: usize) -> Result<Self, WireError> {
        FetchRequest::VERSIONS.check("FetchResponse", version)?;
        Ok(Self { version, position: 0, left: body_size, expects: Expects::Head })
    }

    /// Bytes of the body that no part has accounted for yet, those of announced records excluded.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next part and the bytes of `available` that it took; `None` if it does not end within `available`.
    pub fn next(&mut self, available: &[u8]) -> Result<Option<(FetchPart, usize)>, WireError> {
        let available = &available[..available.len().min(self.left)];
        let mut reader = Reader::new(available);
        match self.part(&mut reader) {
            Ok((part, expects)) => {
                self.expects = expects;
                let consumed = reader.position();
                self.account(consumed);
                if let FetchPart::Partition { records_size, .. } = part {
                    self.account(records_size);
                }
                Ok(Some((part, consumed)))
            }
            Err(WireError { problem: WireProblem::Truncated { .. } | WireProblem::Count { .. }, .. })
                if available.len() < self.left =>
            {
                Ok(None)
            }
            Err(error) => Err(WireError { at: self.position + error.at, ..error }),
        }
    }

    fn account(&mut self, bytes: usize) {
        self.position += bytes;
        self.left -= bytes;
    }

    fn part(&self, r: &mut Reader<&[u8]>) -> Result<(FetchPart, Expects), WireError> {
        match self.expects {
            Expects::Head => {
                let head = head(self.version, r)?;
                let topics = r.array_len("FetchResponse.topics", 0)?.unwrap_or(0);
                Ok((FetchPart::Head(head), Expects::Topic { topics }))
            }
            Expects::Topic { topics: 0 } | Expects::Partition { topics: 0, partitions: 0 } => self.end(),
            Expects::Topic { topics } | Expects::Partition { topics, partitions: 0 } => {
                let topic = r.string("FetchResponse.topics.topic")?;
                let partitions = r.array_len("FetchResponse.topics.partitions", 0)?.unwrap_or(0);
                Ok((FetchPart::Topic(topic), Expects::Partition { topics: topics - 1, partitions }))
            }
            Expects::Partition { topics, partitions } => {
                let partition = partition_head(self.version, r)?;
                let records_size = self.records_size(r)?;
                let expects = Expects::Partition { topics, partitions: partitions - 1 };
                Ok((FetchPart::Partition { partition, records_size }, expects))
            }
        }
    }

    fn end(&self) -> Result<(FetchPart, Expects), WireError> {
        match self.left {
            0 => Ok((FetchPart::End, self.expects)),
            left => {
                let problem = WireProblem::TrailingBytes(left);
                Err(WireError { what: "FetchResponse", at: 0, problem })
            }
        }
    }

    fn records_size(&self, r: &mut Reader<&[u8]>) -> Result<usize, WireError> {
        let (what, at) = ("FetchResponse.topics.partitions.records", r.position());
        let size = r.i32(what)?;
        if size == -1 {
            return Ok(0);
        }
        let left = self.left - r.position();
        match usize::try_from(size) {
            Ok(size) if size <= left => Ok(size),
            Ok(size) => Err(WireError { what, at, problem: WireProblem::Length(size as i64) }),
            Err(_) => Err(WireError { what, at, problem: WireProblem::Length(size.into()) }),
        }
    }
}
