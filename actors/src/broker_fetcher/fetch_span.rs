//! The spans of a fetch and of a connection to a broker.

use std::fmt;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::fetch::{FetchRequest, FetchedPartition};
use tracing::{Span, field};

use crate::broker_connection::{ConnectionError, FetchAnswer};
use crate::fetcher_manager::BrokerAddress;

/// Of the spans and what is told in them.
const TARGET: &str = "kafka_troupe::fetch";

/// From opening a connection until the broker has said what it speaks.
pub(super) fn dialling(broker: &BrokerAddress, fetcher: u32) -> Span {
    let address = format_args!("{}:{}", broker.host, broker.port);
    tracing::debug_span!(target: TARGET, "connect", broker = broker.id, fetcher, %address, error = field::Empty)
}

/// From sending a request until its answer is read.
pub(super) fn fetching(broker: &BrokerAddress, fetcher: u32, request: &FetchRequest) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "fetch",
        broker = broker.id,
        fetcher,
        from = %Positions(request),
        max_bytes = request.max_bytes,
        bytes = field::Empty,
        error = field::Empty,
    )
}

/// Notes in the span what came of it, and tells of each partition that brought something.
pub(super) fn answered(answer: &Result<FetchAnswer, ConnectionError>) {
    let span = Span::current();
    match answer {
        _ if span.is_disabled() => {}
        Ok(answer) => {
            let bytes: usize = answer.partitions.iter().map(|(_, partition)| partition.records.len()).sum();
            span.record("bytes", bytes);
            answer.partitions.iter().for_each(|(key, partition)| tell(key, partition));
        }
        Err(error) => {
            span.record("error", field::display(error));
        }
    }
}

fn tell(key: &TopicPartition, fetched: &FetchedPartition) {
    tracing::trace!(
        target: TARGET,
        topic = &*key.topic,
        partition = key.partition,
        bytes = fetched.records.len(),
        high_watermark = fetched.high_watermark,
        error = ?fetched.error,
        "partition fetched"
    );
}

/// Each partition that is asked for, with its offset: `orders-0@42`. What a fetch session remembers is not asked for
/// again.
struct Positions<'a>(&'a FetchRequest);

impl fmt::Display for Positions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for topic in &self.0.topics {
            for partition in &topic.partitions {
                write!(f, "{between}{}-{}@{}", topic.topic, partition.partition, partition.offset)?;
                between = ",";
            }
        }
        Ok(())
    }
}
