//! The pulled stream for threads without a runtime: an iterator that blocks.

use std::fmt;
use std::iter::FusedIterator;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::KafkaStream;
use crate::record::{ConsumeError, Record};

/// What a [`BlockingStream`] gives in place of a record. It goes on after either.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// No record came within `consumer.timeout.ms`: `ConsumerTimeoutException` of the old consumer.
    #[error("no record came within {0:?} (consumer.timeout.ms)")]
    TimedOut(Duration),
    /// A record cannot be read: see [`KafkaStream`].
    #[error(transparent)]
    Consume(#[from] ConsumeError),
}

/// One stream of a subscription as an iterator, for a thread of the application's without a runtime, as the old
/// consumer's `ConsumerIterator` was: made by [`KafkaStream::blocking`].
///
/// `next` blocks for as long as `consumer.timeout.ms` says, without end by default, and gives
/// [`PullError::TimedOut`] then; asked again, it waits anew. It gives none, from then on for ever, when the consumer
/// system has shut down.
///
/// A record counts as handled when the next is asked for, also if none comes, or by [`ack`](Self::ack).
///
/// ```no_run
/// use kafka_troupe_actors::{ConsumerHandle, PullError};
///
/// fn print_from_a_thread(member: &ConsumerHandle) -> Vec<std::thread::JoinHandle<()>> {
///     let streams = member.streams("orders").into_iter();
///     let print = |stream: kafka_troupe_actors::KafkaStream| {
///         std::thread::spawn(|| {
///             for record in stream.blocking() {
///                 match record {
///                     Ok(record) => println!("{}", record.text()),
///                     Err(PullError::TimedOut(_)) => println!("nothing for a while"),
///                     Err(error) => eprintln!("{error}"),
///                 }
///             }
///         })
///     };
///     streams.map(print).collect()
/// }
/// ```
///
/// # Panics
/// `next`, in asynchronous code: it would block the thread of a runtime.
pub struct BlockingStream {
    stream: KafkaStream,
    timeout: Option<Duration>,
    /// For timers alone; it has no thread. Made when it is needed first, by the thread that pulls.
    runtime: Option<Runtime>,
}

impl KafkaStream {
    /// For a thread that has no runtime: see [`BlockingStream`].
    pub fn blocking(mut self) -> BlockingStream {
        // a timer of the runtime that it came from
        self.paused = None;
        BlockingStream { timeout: self.timeout, stream: self, runtime: None }
    }
}

impl BlockingStream {
    /// The record that was given out last is handled.
    pub fn ack(&mut self) {
        self.stream.ack();
    }

    fn wait(&mut self) -> Option<Result<Record, PullError>> {
        let runtime = self.runtime.get_or_insert_with(|| {
            let runtime = Builder::new_current_thread().enable_time().build();
            runtime.expect("timers alone need nothing of the operating system")
        });
        let Some(limit) = self.timeout else {
            return runtime.block_on(self.stream.next()).map(|item| Ok(item?));
        };
        match runtime.block_on(async { timeout(limit, self.stream.next()).await }) {
            Ok(item) => item.map(|item| Ok(item?)),
            Err(_) => Some(Err(PullError::TimedOut(limit))),
        }
    }
}

impl Iterator for BlockingStream {
    type Item = Result<Record, PullError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.stream.next_at_hand() {
            Some(item) => Some(item.map_err(PullError::from)),
            None => self.wait(),
        }
    }
}

impl FusedIterator for BlockingStream {}

impl Drop for BlockingStream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // allowed in asynchronous code as well
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for BlockingStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingStream")
            .field("stream", &self.stream)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
