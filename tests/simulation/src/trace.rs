//! What is told of a run: one line an event, with the time since its beginning.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// The lines of a run; clones are the same.
#[derive(Clone)]
pub struct Trace {
    began: Instant,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Of everything told so far: two runs with the same one went the same way.
    fingerprint: DefaultHasher,
    lines: Vec<String>,
    keeps: bool,
}

impl Trace {
    /// Begins now. Lines are kept, with the members' own log, only if they are wanted.
    pub fn new(keeps: bool) -> Self {
        let inner = Inner { keeps, ..Inner::default() };
        Self { began: Instant::now(), inner: Arc::new(Mutex::new(inner)) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds since the beginning.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Tells an event.
    pub fn tell(&self, event: fmt::Arguments<'_>) {
        let line = format!("{:9.3} {event}", self.seconds());
        let mut inner = self.inner();
        line.hash(&mut inner.fingerprint);
        if inner.keeps {
            inner.lines.push(line);
        }
    }

    /// Stands for the way that the run went.
    pub fn fingerprint(&self) -> u64 {
        self.inner().fingerprint.finish()
    }

    /// The lines kept so far.
    pub fn lines(&self) -> Vec<String> {
        self.inner().lines.clone()
    }
}

impl FormatTime for Trace {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        write!(w, "{:9.3}  ", self.seconds())
    }
}

impl io::Write for Trace {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        self.inner().lines.push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
