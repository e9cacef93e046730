//! Signals that end what would go on for ever.

use std::fs;
use std::io;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Signals that come within this after one are the same one: `timeout` sends each twice, to the process and to its group,
/// and a terminal's Ctrl-C reaches it beside a wrapper that passes it on.
const SAME: Duration = Duration::from_secs(1);

/// Ctrl-C, SIGTERM, and SIGHUP of a terminal that is closed, unless that is ignored (`nohup`): none is lost from where this
/// is made. The others end it also where a shell ignores them for what it runs in the background.
pub struct Ends {
    signals: Vec<Signal>,
    last: Option<Instant>,
}

impl Ends {
    pub fn new() -> io::Result<Self> {
        let hangup = (!ignores_hangup()).then(SignalKind::hangup);
        let ends = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup);
        Ok(Self { signals: ends.map(signal).collect::<io::Result<_>>()?, last: None })
    }

    /// Waits for the next one; cancel-safe.
    pub async fn next(&mut self) {
        loop {
            select_all(self.signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
            if self.counts(Instant::now()) {
                return;
            }
        }
    }

    /// Whether a signal is another than the last one that counted.
    fn counts(&mut self, now: Instant) -> bool {
        let is_other = self.last.is_none_or(|last| now.duration_since(last) >= SAME);
        if is_other {
            self.last = Some(now);
        }
        is_other
    }
}

/// As `/proc` has it, a bit for each signal that is ignored; where that cannot be told, it is not.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    ignored >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signals_at_once_count_as_one() {
        let (mut ends, begun) = (Ends::new().unwrap(), Instant::now());
        let counted = [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 60_000]
            .map(|millis| ends.counts(begun + Duration::from_millis(millis)));
        assert_eq!(counted, [true, false, false, true, false, false, true, true]);
    }
}
