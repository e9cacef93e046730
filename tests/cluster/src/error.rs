//! One error for all of the crate.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// What went wrong with a server, its jars or a request to it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A file, process or socket operation failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation and its object.
        what: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A Java runtime, Maven or a jar could not be had.
    #[error("{what}")]
    Fetch {
        /// What is missing and what to install, or what Maven printed.
        what: String,
    },
    /// A server is not in the state that the call needs, or ended by itself.
    #[error("{server} {what}; last lines of {}:\n{tail}", log.display())]
    Server {
        /// Name of the process, for example `broker-0`.
        server: String,
        /// What it did or did not do.
        what: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log, kept here because the file goes with the cluster.
        tail: String,
    },
    /// A condition did not come true in time.
    #[error("{what}: not within {within:?}; last seen: {seen}")]
    TimedOut {
        /// The condition that was waited for.
        what: String,
        /// The time that was given.
        within: Duration,
        /// What was seen instead at the last look.
        seen: String,
    },
    /// A broker answered a request with an error code of the Kafka protocol.
    #[error("{api} of {what}: broker answered error code {code} {message}")]
    Kafka {
        /// The request.
        api: &'static str,
        /// The topic, or topic and partition.
        what: String,
        /// Error code of the Kafka protocol guide.
        code: i16,
        /// The broker's own words, if the response has any.
        message: String,
    },
    /// A caller's argument cannot be served.
    #[error("{0}")]
    Invalid(String),
}

/// As for people: it is what `main` of an example ends with, which shows an error so.
impl fmt::Debug for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ClusterError {
    /// For `map_err`: adds the operation and its object to an I/O error.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// An error of a server, with the end of its log.
    pub(crate) fn server(server: &str, what: impl Into<String>, log: &Path) -> Self {
        Self::Server { server: server.to_owned(), what: what.into(), log: log.to_owned(), tail: tail(log) }
    }
}

/// The last lines of a log, bounded so that an error stays readable.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
