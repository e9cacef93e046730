//! Fetches, read as they arrive: each record set straight from the socket into a buffer of its own, so that one
//! that is handled slowly holds its own memory only.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::fetch::{FetchDecoder, FetchHead, FetchPart, FetchRequest, FetchedPartition};

use super::{BrokerConnection, ConnectionError, ConnectionProblem};

/// Bytes read ahead for the small fields between record sets; what of them belongs to one is copied into it.
const READ_AHEAD: usize = 4 << 10;

/// An answered fetch.
#[derive(Debug)]
#[non_exhaustive]
pub struct FetchAnswer {
    /// What stands before the topics: throttle time and error of the whole.
    pub head: FetchHead,
    /// In the broker's order, each with its record set.
    pub partitions: Vec<(TopicPartition, FetchedPartition)>,
}

impl BrokerConnection {
    /// Like [`call`](Self::call), for a fetch.
    ///
    /// # Errors
    /// [`ConnectionError`]; the connection is then out of step: drop it.
    pub async fn fetch(&mut self, request: &FetchRequest) -> Result<FetchAnswer, ConnectionError> {
        let version = self.version_of::<FetchRequest>()?;
        let answered = self.fetch_in(request, version).await;
        answered.map_err(|problem| self.error(problem))
    }

    async fn fetch_in(
        &mut self,
        request: &FetchRequest,
        version: i16,
    ) -> Result<FetchAnswer, ConnectionProblem> {
        let id = self.send(request, version).await?;
        let body = self.read_head(id).await?;
        let mut arriving = Arriving {
            decoder: FetchDecoder::new(version, body)?,
            ahead: BytesMut::with_capacity(READ_AHEAD),
            connection: self,
        };
        let answer = arriving.answer().await?;
        self.throttled(answer.head.throttle_ms);
        Ok(answer)
    }
}

/// A response on its way in.
struct Arriving<'a> {
    decoder: FetchDecoder,
    /// Read, and not decoded yet.
    ahead: BytesMut,
    connection: &'a mut BrokerConnection,
}

impl Arriving<'_> {
    async fn answer(&mut self) -> Result<FetchAnswer, ConnectionProblem> {
        let (mut head, mut topic, mut partitions) = (None, Arc::<str>::from(""), Vec::new());
        loop {
            match self.part().await? {
                FetchPart::Head(fields) => head = Some(fields),
                FetchPart::Topic(name) => topic = name,
                FetchPart::Partition { mut partition, records_size } => {
                    partition.records = self.records(records_size).await?;
                    partitions
                        .push((TopicPartition::new(Arc::clone(&topic), partition.partition), partition));
                }
                // the end; the head came first
                _ => {
                    return head
                        .map(|head| FetchAnswer { head, partitions })
                        .ok_or(ConnectionProblem::Closed);
                }
            }
        }
    }

    async fn part(&mut self) -> Result<FetchPart, ConnectionProblem> {
        loop {
            if let Some((part, taken)) = self.decoder.next(&self.ahead)? {
                let _ = self.ahead.split_to(taken);
                return Ok(part);
            }
            // no further than the response goes
            let missing = self.decoder.left() - self.ahead.len();
            self.ahead.reserve(READ_AHEAD);
            self.connection.read_some(&mut self.ahead, missing.min(READ_AHEAD)).await?;
        }
    }

    async fn records(&mut self, size: usize) -> Result<Bytes, ConnectionProblem> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut buffer = self.connection.record_buffers.take(size, super::FIRST_RESERVE);
        let here = self.ahead.split_to(self.ahead.len().min(size));
        buffer.bytes.extend_from_slice(&here);
        self.connection.fill(&mut buffer.bytes, size).await?;
        Ok(self.connection.record_buffers.freeze(buffer))
    }
}
