//! What follows when a handler fails, by the subscription's policy. Cold: not on the way of records that are handled.

use std::sync::Arc;

use actix::Actor;
use kafka_troupe_proto::group::Decision;

use super::Driver;
use super::feed::Feed;
use crate::handler_result::HandlerError;
use crate::stream_queue::failing::FailedWith;
use crate::stream_queue::{Failure, PartitionFailed, StreamFailed};

impl<H: Actor, F: Feed> Driver<H, F> {
    #[cold]
    pub(super) fn failed(&mut self, error: &HandlerError) {
        let Some(reader) = &mut self.reader else { return };
        let partition = Arc::clone(reader.partition());
        let place = error.place().filter(|(topic, number, _)| {
            let its = &partition.topic_partition;
            *topic == &*its.topic && *number == its.partition
        });
        let place = place.map(|(.., offset)| offset);
        let (records, first) = (reader.records_in_hand(), reader.first_in_hand());
        let Some((offset, next)) = F::failed(reader, place) else { return };
        if let Some(first) = first.filter(|first| *first < offset) {
            let (handled, _) = reader.records_between(&mut self.decompressor, first, offset);
            self.tally.add_all(u32::try_from(handled.len()).unwrap_or(u32::MAX));
        }
        let failed = FailedWith { partition, offset, next, records, failures: 1, ended_handler: true };
        let failed = failed.after(self.failing.as_ref());
        let decision = self.handling.decide(failed.failures, error, place == Some(offset));
        self.carry_out(decision, failed, error.to_string());
    }

    /// What comes next has ended its handler before.
    #[cold]
    pub(super) fn failed_before(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let partition = Arc::clone(reader.partition());
        let known = self.known.take(&partition);
        let failures = known.as_ref().map_or(1, |known| known.failures);
        let records = reader.records_in_hand();
        let Some((offset, next)) = F::failed(reader, None) else { return };
        let failed = FailedWith { partition, offset, next, records, failures, ended_handler: true };
        let failed = FailedWith { failures, ..failed.after(known.as_ref()) };
        let why = "its handler ended without an answer: it panicked, or stopped".to_owned();
        self.carry_out(self.handling.on_failure.decide(failures, false), failed, why);
    }

    fn carry_out(&mut self, decision: Decision, failed: FailedWith, why: String) {
        let FailedWith { ref partition, offset, next, failures, .. } = failed;
        let failure = Failure { partition: Arc::clone(partition), offset, why, attempts: failures };
        self.failing = Some(failed);
        failure.decided(&decision);
        match (decision, self.letters.clone()) {
            (Decision::RetryAfter(delay), _) => {
                tracing::warn!(%failure, ?delay, "the record could not be handled; it comes again");
                self.go_on_at(offset);
                self.pause(delay);
            }
            (Decision::Skip, _) => self.skip(failure, next),
            (Decision::DeadLetter(topic), Some(letters)) => self.bury(letters, topic, failure, next),
            (Decision::StopStream, _) => {
                self.queue.do_send(StreamFailed(failure));
                self.stop();
            }
            // also where nobody is there to write a dead letter
            _ => {
                self.queue.do_send(PartitionFailed(failure));
                self.stop();
            }
        }
    }

    pub(super) fn go_on_at(&mut self, offset: i64) {
        if let Some(reader) = &mut self.reader {
            F::go_on_at(reader, offset);
        }
    }

    /// Nothing more of this chunk: its partition is halted before the next one is asked for. Should the record come
    /// again, it is tried as if it were the first time.
    fn stop(&mut self) {
        self.failing = None;
        self.ask();
    }

    /// The record with which the handler ends: in its hand, or to come to it again.
    pub(super) fn ends_with(&self) -> Option<FailedWith> {
        let reader = self.reader.as_ref()?;
        let partition = Arc::clone(reader.partition());
        let failing = self.failing.as_ref().filter(|it| Arc::ptr_eq(&it.partition, &partition));
        let Some((offset, next)) = reader.first_in_hand().zip(reader.next_in_hand()) else {
            return failing.cloned();
        };
        let records = reader.records_in_hand();
        let failed = FailedWith { partition, offset, next, records, failures: 1, ended_handler: true };
        Some(failed.after(failing))
    }
}
