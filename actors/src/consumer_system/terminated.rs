//! The signals by which a process is told to end.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};

use super::{ConsumerHandle, ShutdownOutcome};

/// One end may be told twice: to the process, and to its process group (`timeout` of coreutils, a terminal's Ctrl-C
/// beside what a supervisor sends).
const SAME_SIGNAL: Duration = Duration::from_secs(1);
/// What is left for the last commit and words when somebody is in a hurry.
const CUT_SHORT: Duration = Duration::from_secs(1);

impl ConsumerHandle {
    /// Waits for SIGTERM or SIGINT (Ctrl-C), then [shuts down within](Self::shutdown_within)
    /// `troupe.shutdown.timeout.ms`; ends as well when the member is shut down otherwise. What `main` of a consumer ends
    /// with. From the call on, these signals do not end the process by themselves any more; a second one, a second or
    /// more after the first, leaves the shutdown one second, which the outcome tells.
    ///
    /// ```no_run
    /// # use kafka_troupe_actors::consumer_system::Builder;
    /// async fn run(builder: Builder) -> Result<(), Box<dyn std::error::Error>> {
    ///     let member = builder.start().await?;
    ///     let outcome = member.run_until_terminated().await?;
    ///     match outcome.is_complete() {
    ///         true => Ok(()),
    ///         false => Err(outcome.cut_off.join("; ").into()),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The signals cannot be waited for: no runtime with I/O, or refused by the operating system. Nothing is shut down.
    pub async fn run_until_terminated(&self) -> io::Result<ShutdownOutcome> {
        let mut signals = Signals::new()?;
        let first = tokio::select! {
            signal = signals.next() => signal,
            outcome = self.life.over() => return Ok(outcome),
        };
        let second = async {
            signals.pass(SAME_SIGNAL).await;
            signals.next().await
        };
        tokio::select! {
            outcome = self.leave(Some(self.config.shutdown_timeout), first) => Ok(outcome),
            second = second => {
                self.life.cut_off(format!("cut short by {second}, after {first}"));
                Ok(self.leave(Some(CUT_SHORT), second).await)
            }
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Passes over those that come within this time.
    async fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while timeout_at(until, self.next()).await.is_ok() {}
    }
}
