//! What follows when a handler fails on one of several records, by the subscription's policy.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use kafka_troupe_proto::group::Decision;

use super::InFlightDriver;
use super::taken::{Awaited, Taken};
use crate::dead_letters::{DeadLetterError, DeadLetters, Written};
use crate::decoder::Decoder;
use crate::handler_result::HandlerError;
use crate::registry::{Halt, HaltReason};
use crate::stream_queue::failing::{FailedWith, stopped_with};
use crate::stream_queue::{DeadLettered, Failure, PartitionFailed, Skipped, StreamFailed};

/// What is given up, and written before it is acknowledged.
pub(super) struct Burial {
    letters: DeadLetters,
    topic: Arc<str>,
    why: String,
    /// Tries to write it that failed.
    tries: u32,
}

impl<H: Actor, D: Decoder> InFlightDriver<H, D> {
    /// The handler could not handle it. Gives the one that begins then, if one does.
    #[cold]
    pub(super) fn failed(&mut self, mut taken: Taken, error: &HandlerError) -> Option<Taken> {
        taken.failures = taken.failures.saturating_add(1);
        let (place, record) = (error.place(), &taken.record);
        let is_its_own = place == Some((record.topic(), record.partition(), record.offset()));
        let decision = self.handling.decide(taken.failures, error, is_its_own);
        self.carry_out(decision, taken, error.to_string())
    }

    /// Its handler has ended with it before.
    #[cold]
    pub(super) fn failed_before(&mut self, mut taken: Taken) -> Option<Taken> {
        taken.ended_handler = false;
        let why = "its handler ended without an answer: it panicked, or stopped".to_owned();
        let decision = self.handling.on_failure.decide(taken.failures, false);
        self.carry_out(decision, taken, why)
    }

    fn carry_out(&mut self, decision: Decision, mut taken: Taken, why: String) -> Option<Taken> {
        let failure = failure(&taken, why);
        failure.decided(&decision);
        match (decision, self.letters.clone()) {
            (Decision::RetryAfter(delay), _) => {
                tracing::warn!(%failure, ?delay, "the record could not be handled; it comes again");
                self.wait_for(delay, taken);
                return None;
            }
            (Decision::DeadLetter(topic), Some(letters)) => {
                taken.burial = Some(Box::new(Burial { letters, topic, why: failure.why, tries: 0 }));
                return Some(taken);
            }
            (Decision::Skip, _) => {
                // one that was cut off by the end of its claim is told of as well, though it may come again
                if self.finish(&taken) {
                    self.queue.do_send(Skipped(failure));
                }
            }
            // then it comes again elsewhere, and what the stream has besides goes on
            (Decision::StopStream, _) if failure.partition.is_closed() => {}
            (Decision::StopStream, _) => {
                halt(&failure);
                self.halt_others(&failure);
                self.queue.do_send(StreamFailed(failure));
            }
            // also where nobody is there to write a dead letter
            _ => {
                halt(&failure);
                self.queue.do_send(PartitionFailed(failure));
            }
        }
        self.let_go(taken)
    }

    /// Nothing more begins of the others either; those that nothing is in flight of are halted by the stream.
    fn halt_others(&self, failure: &Failure) {
        let others = self.claims.partitions().filter(|it| !Arc::ptr_eq(it, &failure.partition));
        others.for_each(|it| it.halt(HaltReason::Failed, Halt::asked_for(&stopped_with(failure))));
    }

    pub(super) fn wait_for(&mut self, delay: Duration, taken: Taken) {
        let time = Awaited::after(delay, &taken);
        self.wait(taken, time);
    }

    /// Between the gate and [`letter_answered`](Self::letter_answered) the partition is held, as for a handler.
    #[cold]
    pub(super) fn write_letter(&mut self, taken: Taken) {
        let Some(Burial { letters, topic, why, .. }) = taken.burial.as_deref() else { return };
        let letter = letters.write(topic, &taken.record, why, taken.failures);
        self.wait(taken, Awaited::Letter(Box::pin(letter)));
    }

    /// The letter is there, or it is to be written again: nothing is acknowledged before it is there.
    #[cold]
    pub(super) fn letter_answered(
        &mut self,
        mut taken: Taken,
        result: Result<Written, DeadLetterError>,
    ) -> Option<Taken> {
        self.claims.answered(taken.origin);
        let burial = taken.burial.as_mut()?;
        if let Err(error) = result {
            burial.tries = burial.tries.saturating_add(1);
            let (tries, delay) = (burial.tries, self.handling.on_failure.pause_after(burial.tries));
            tracing::error!(%error, tries, ?delay, "a dead letter could not be written; it is acknowledged only then");
            self.wait_for(delay, taken);
            return None;
        }
        let why = std::mem::take(&mut burial.why);
        let failure = failure(&taken, why);
        if self.finish(&taken) {
            self.queue.do_send(DeadLettered(failure));
        }
        self.let_go(taken)
    }

    /// The record with which the handler ends, if that can be told: it was called with it, or there is no other. And
    /// those that have failed: the next life goes on counting.
    pub(super) fn failures(&self) -> Vec<FailedWith> {
        let polled = || self.pending.get(self.polled?).map(|pending| &pending.taken);
        let only = || {
            let mut all = self.pending.iter();
            let first = all.next().filter(|it| matches!(it.what, Awaited::Answer(_)))?;
            all.next().is_none().then_some(&first.taken)
        };
        let ended = self.called.as_ref().or_else(polled).or_else(only);
        let is_other = |taken: &&Taken| !ended.is_some_and(|it| std::ptr::eq(it, *taken));
        let others = self.pending.iter().map(|it| &it.taken).filter(is_other);
        let failed = others.filter(|taken| taken.failures > 0).map(|taken| failed_with(taken, false));
        failed.chain(ended.map(|taken| failed_with(taken, true))).collect()
    }
}

fn failed_with(taken: &Taken, ended_handler: bool) -> FailedWith {
    let (partition, offset) = (Arc::clone(&taken.chunk.partition), taken.record.offset());
    let failures = taken.failures.saturating_add(ended_handler.into());
    FailedWith { partition, offset, next: offset + 1, records: 1, failures, ended_handler }
}

fn failure(taken: &Taken, why: String) -> Failure {
    let partition = Arc::clone(&taken.chunk.partition);
    Failure { partition, offset: taken.record.offset(), why, attempts: taken.failures }
}

/// At once: the stream hears of it only after this, and might give out more of it until then.
fn halt(failure: &Failure) {
    let Failure { partition, offset, why, attempts } = failure;
    let halt = Halt { offset: Some(*offset), attempts: *attempts, ..Halt::asked_for(why) };
    partition.halt(HaltReason::Failed, halt);
}
