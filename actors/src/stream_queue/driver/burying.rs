//! What is given up: told of, or written to a dead-letter topic before it is acknowledged, however long that takes. Cold.

use std::pin::Pin;
use std::sync::Arc;
use std::vec;

use actix::Actor;

use super::feed::Feed;
use super::{Driver, FENCED_RETRY, State};
use crate::dead_letters::{DeadLetterError, DeadLetters, Written};
use crate::record::Record;
use crate::registry::Gate;
use crate::stream_queue::{DeadLettered, Failure, Skipped};

/// A letter on its way.
pub(in super::super) type LetterWritten = Pin<Box<dyn Future<Output = Result<Written, DeadLetterError>>>>;

/// A record, or the records of a batch, of which one after the other is written.
pub(super) struct Burial {
    letters: DeadLetters,
    topic: Arc<str>,
    /// Of the record whose turn it is.
    failure: Failure,
    record: Record,
    others: vec::IntoIter<Record>,
    /// Where the partition goes on after the last.
    next: i64,
    /// Tries to write it that failed.
    tries: u32,
}

impl<H: Actor, F: Feed> Driver<H, F> {
    /// Acknowledges what failed, up to `next`, and tells of each of its records.
    pub(super) fn skip(&mut self, failure: Failure, next: i64) {
        let (records, next) = self.given_up(&failure, next);
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        for record in records {
            self.queue.do_send(Skipped(Failure { offset: record.offset(), ..failure.clone() }));
        }
        self.go_on_after(next);
        self.tally.add_all(count);
    }

    /// Begins to have what failed written, up to `next`.
    pub(super) fn bury(&mut self, letters: DeadLetters, topic: Arc<str>, failure: Failure, next: i64) {
        let (records, next) = self.given_up(&failure, next);
        let mut others = records.into_iter();
        let Some(record) = others.next() else { return self.go_on_after(next) };
        self.burial = Some(Burial { letters, topic, failure, record, others, next, tries: 0 });
        self.state = State::Burying;
    }

    /// The records from the one that failed on, before `next`; or before one that cannot be read, which is met once more.
    fn given_up(&mut self, failure: &Failure, next: i64) -> (Vec<Record>, i64) {
        match &self.reader {
            Some(reader) => reader.records_between(&mut self.decompressor, failure.offset, next),
            None => (Vec::new(), next),
        }
    }

    fn go_on_after(&mut self, next: i64) {
        (self.burial, self.failing) = (None, None);
        self.go_on_at(next);
    }

    /// Has the record whose turn it is written.
    #[cold]
    pub(super) fn write_letter(&mut self) {
        self.state = State::Reading;
        let (Some(reader), Some(burial)) = (&mut self.reader, &mut self.burial) else { return self.ask() };
        match reader.gate() {
            Gate::Open => {}
            Gate::Fenced => return self.pause(FENCED_RETRY),
            // somebody else's, or it comes again
            Gate::Closed | Gate::Halted => {
                self.burial = None;
                return self.ask();
            }
        }
        let Burial { letters, topic, failure, record, .. } = burial;
        failure.offset = record.offset();
        self.state = State::Writing(Box::pin(letters.write(topic, record, &failure.why, failure.attempts)));
    }

    /// The letter is there, or it is to be written again: nothing is acknowledged before it is there.
    #[cold]
    pub(super) fn written(&mut self, result: Result<Written, DeadLetterError>) {
        self.state = State::Burying;
        let (Some(reader), Some(burial)) = (&mut self.reader, &mut self.burial) else { return self.ask() };
        match result {
            Ok(_) => {
                self.queue.do_send(DeadLettered(burial.failure.clone()));
                reader.pass(burial.failure.offset + 1);
                self.tally.add();
                burial.tries = 0;
                match burial.others.next() {
                    Some(record) => burial.record = record,
                    None => {
                        let next = burial.next;
                        self.state = State::Reading;
                        self.go_on_after(next);
                    }
                }
            }
            Err(error) => {
                burial.tries = burial.tries.saturating_add(1);
                let delay = self.handling.on_failure.pause_after(burial.tries);
                tracing::error!(%error, tries = burial.tries, ?delay, "a dead letter could not be written; its partition waits");
                self.pause(delay);
            }
        }
    }
}
