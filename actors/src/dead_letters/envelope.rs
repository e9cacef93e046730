//! From a record to its dead letter, and on to the writer.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::schemas::dead_letter::v1::{DeadLetter, Header};

use super::{DeadLetterError, DeadLetterProblem, DeadLetterWriter, Write, Written};
use crate::clock;
use crate::record::{Record, TimestampType};
use crate::registry::LetterUnderWay;
use crate::supervise::Slot;

/// The way of a member's streams to its [`DeadLetterWriter`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    writer: Slot<DeadLetterWriter>,
    group: Arc<str>,
    consumer_id: Arc<str>,
}

impl DeadLetters {
    /// For the streams of one member.
    pub fn new(writer: Slot<DeadLetterWriter>, group: &str, consumer_id: &str) -> Self {
        Self { writer, group: group.into(), consumer_id: consumer_id.into() }
    }

    /// Has a record kept in `topic`, with the `reason` for which it was given up after so many `attempts`. Only when
    /// this says so may it be acknowledged.
    ///
    /// # Errors
    /// [`DeadLetterError`]: it is not there, or may not be. To be tried again, after a pause.
    pub fn write(
        &self,
        topic: &Arc<str>,
        record: &Record,
        reason: &dyn Display,
        attempts: u32,
    ) -> impl Future<Output = Result<Written, DeadLetterError>> + 'static + use<> {
        let letter = self.letter(record, reason, attempts);
        let lost = DeadLetterError {
            topic: Arc::clone(topic),
            partition: TopicPartition::new(letter.topic.as_str(), letter.partition),
            offset: letter.offset,
            problem: DeadLetterProblem::NotRunning,
        };
        let claim = record.claim();
        let under_way = claim.map(|claim| LetterUnderWay::begin(claim, record.offset(), topic));
        let sent = self.writer.send(Write { topic: Arc::clone(topic), letter });
        async move {
            let result = sent.await.unwrap_or(Err(lost));
            if let (Err(error), Some(under_way)) = (&result, under_way) {
                under_way.failed(error.to_string(), !error.problem.may_pass());
            }
            result
        }
    }

    fn letter(&self, record: &Record, reason: &dyn Display, attempts: u32) -> DeadLetter {
        DeadLetter {
            topic: record.topic().to_owned(),
            partition: record.partition(),
            offset: record.offset(),
            timestamp: record.timestamp(),
            log_append_time: record.timestamp_type() == TimestampType::LogAppend,
            key: record.key().map(Bytes::copy_from_slice),
            value: record.value_bytes(),
            headers: record.headers().map(header).collect(),
            reason: shortened(reason.to_string()),
            attempts,
            group: self.group.to_string(),
            consumer_id: self.consumer_id.to_string(),
            given_up_ms: clock::millis(clock::now()),
        }
    }
}

/// The most that is kept of a reason, in bytes: an error may quote the record.
const REASON: usize = 8 << 10;

fn shortened(mut reason: String) -> String {
    if reason.len() > REASON {
        let end = (0..=REASON).rev().find(|at| reason.is_char_boundary(*at));
        reason.truncate(end.unwrap_or_default());
        reason.push('…');
    }
    reason
}

fn header(header: crate::record::Header<'_>) -> Header {
    let raw = str::from_utf8(header.key).is_err().then(|| Bytes::copy_from_slice(header.key));
    Header {
        key: header.name().into_owned(),
        value: header.value.map(Bytes::copy_from_slice),
        raw_key: raw.unwrap_or_default(),
    }
}
