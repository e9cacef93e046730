//! Prints records until the end that was asked for.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use kafka_troupe::{ConsumeError, Record};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::args::Args;
use super::formatter::Formatter;
use crate::ends::Ends;
use crate::exit::{Answer, Failure, Outcome};

/// So long a line that is being written may take when it is to end: a reader of stdout that stands still takes none.
const LAST_LINE: Duration = Duration::from_secs(2);

/// Where records come from.
pub trait Source {
    /// The next record, and the one before it is handled; none when no more will come. Cancel-safe.
    async fn next(&mut self) -> Option<Result<Record, ConsumeError>>;

    /// Goes on behind what cannot be read.
    async fn step_over(&mut self, unread: &ConsumeError) -> Result<(), Failure>;

    /// What to do about what cannot be read, beside `--skip-message-on-error`.
    fn advice(&self, unread: &ConsumeError) -> Option<String>;

    /// All that was given out is handled.
    fn all_handled(&mut self);

    /// All that was given out is handled, but for the last one.
    fn all_but_the_last_handled(&mut self);
}

/// How records are printed, and until when.
pub struct Printing {
    formatter: Box<dyn Formatter>,
    skip_on_error: bool,
    most: Option<u64>,
    patience: Duration,
    processed: u64,
    line: Vec<u8>,
}

/// Why it ended before it was asked to.
enum Stopped {
    /// Nobody reads what is printed.
    Closed,
    Failed(Failure),
}

impl<F: Into<Failure>> From<F> for Stopped {
    fn from(failure: F) -> Self {
        Self::Failed(failure.into())
    }
}

impl Printing {
    pub fn new(formatter: Box<dyn Formatter>, args: &Args) -> Self {
        Self {
            formatter,
            skip_on_error: args.skip_message_on_error,
            most: args.most(),
            patience: args.patience(),
            processed: 0,
            line: Vec::new(),
        }
    }

    /// Ends after so long without a record, unless the command line says how long (`consumer.timeout.ms`).
    pub fn patient_for(mut self, limit: Option<Duration>) -> Self {
        if let (Duration::MAX, Some(limit)) = (self.patience, limit) {
            self.patience = limit;
        }
        self
    }

    /// Prints what comes until there is enough, or no more, or a signal; what was printed is handled then, and nothing
    /// else. It does so in a thread of its own, which is left alone where nobody reads what it writes: then the source
    /// does not come back.
    pub async fn print<S: Source + Send + 'static>(
        self,
        mut source: S,
        ends: &mut Ends,
    ) -> (Option<S>, Outcome) {
        let (stop, stopped) = oneshot::channel();
        let (tell, mut over) = oneshot::channel();
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return (Some(source), Err(error.into())),
        };
        thread::spawn(move || {
            let outcome = runtime.block_on(self.print_until(&mut source, stopped));
            // nobody waits for it any more: the process ends
            let _ = tell.send((source, outcome));
        });
        let printed = tokio::select! {
            printed = &mut over => printed,
            () = ends.next() => {
                drop(stop);
                match timeout(LAST_LINE, over).await {
                    Ok(printed) => printed,
                    Err(_) => {
                        say!("nobody reads what is printed: the last line is not waited for");
                        return (None, Ok(Answer::Yes));
                    }
                }
            }
        };
        match printed {
            Ok((source, outcome)) => (Some(source), outcome),
            Err(_) => (None, Err(Failure::work("printing has ended unexpectedly"))),
        }
    }

    async fn print_until(mut self, source: &mut impl Source, stopped: oneshot::Receiver<()>) -> Outcome {
        let stopped = self.print_all(source, stopped).await;
        let outcome = match stopped {
            Ok(()) => {
                source.all_handled();
                Ok(Answer::Yes)
            }
            Err(stopped) => {
                source.all_but_the_last_handled();
                match stopped {
                    Stopped::Closed => {
                        say!("Unable to write to standard out, closing consumer.");
                        Ok(Answer::Yes)
                    }
                    Stopped::Failed(failure) => Err(failure),
                }
            }
        };
        say!("Processed a total of {} messages", self.processed);
        outcome
    }

    async fn print_all(
        &mut self,
        source: &mut impl Source,
        mut stop: oneshot::Receiver<()>,
    ) -> Result<(), Stopped> {
        while self.most.is_none_or(|most| self.processed < most) {
            // a chunk of records that are all there must not keep a signal waiting
            tokio::task::consume_budget().await;
            let record = tokio::select! {
                biased;
                _ = &mut stop => break,
                record = timeout(self.patience, source.next()) => record,
            };
            match record {
                Ok(Some(Ok(record))) => self.print_one(&record)?,
                Ok(Some(Err(unread))) if self.skip_on_error => {
                    say!("{unread}; stepping over it");
                    source.step_over(&unread).await?;
                }
                Ok(Some(Err(unread))) => return Err(cannot_be_read(&unread, source.advice(&unread)).into()),
                Ok(None) => break,
                Err(_) => {
                    say!("No record for {:?}.", self.patience);
                    break;
                }
            }
        }
        Ok(())
    }

    /// A line is out before its record is handled.
    fn print_one(&mut self, record: &Record) -> Result<(), Stopped> {
        self.line.clear();
        let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
        match self.formatter.write(record, &mut self.line) {
            Ok(()) => {}
            Err(why) if self.skip_on_error => {
                say!("cannot decode {topic}-{partition} at offset {offset}: {why}; stepping over it");
                // it counts, as it did
                self.processed += 1;
                return Ok(());
            }
            Err(why) => {
                return Err(Failure::work(format!(
                    "cannot decode {topic}-{partition} at offset {offset}: {why}; to step over it, consume with \
                     --skip-message-on-error"
                ))
                .into());
            }
        }
        let mut out = io::stdout().lock();
        match out.write_all(&self.line).and_then(|()| out.flush()) {
            Ok(()) => {
                self.processed += 1;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Stopped::Closed),
            Err(error) => Err(Failure::work(format!("cannot write to standard out: {error}")).into()),
        }
    }
}

fn cannot_be_read(unread: &ConsumeError, advice: Option<String>) -> Failure {
    let ConsumeError { topic, partition, offset, why, .. } = unread;
    let or = advice.map(|advice| format!(", or {advice}")).unwrap_or_default();
    Failure::work(format!(
        "cannot read {topic}-{partition} at offset {offset}: {why}; to step over it, consume with \
         --skip-message-on-error{or}"
    ))
}
