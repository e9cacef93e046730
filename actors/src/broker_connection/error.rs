//! Why a connection failed.

use std::time::Duration;

use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::frame::{ApiKey, VersionRange};
use kafka_troupe_proto::kafka::wire::WireError;

/// A connection failed; it must be dropped and opened anew after a backoff.
#[derive(Debug, thiserror::Error)]
#[error("broker at {address}: {problem}")]
#[non_exhaustive]
pub struct ConnectionError {
    /// `host:port`.
    pub address: String,
    /// What went wrong.
    pub problem: ConnectionProblem,
    /// The connection was closed without a byte of an answer: it may have been closed before the request came.
    pub(crate) unanswered: bool,
}

impl ConnectionError {
    pub(crate) fn new(address: &str, problem: ConnectionProblem) -> Self {
        Self { address: address.to_owned(), problem, unanswered: false }
    }
}

/// What went wrong with a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionProblem {
    /// Refused, reset, name not found, and so on.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Nothing came in time.
    #[error("waited {limit:?} {what} (socket.timeout.ms)")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// `socket.timeout.ms`.
        limit: Duration,
    },
    /// The broker closed the connection in place of a response.
    #[error("closed the connection instead of answering; it does not know the request, or wants TLS or SASL")]
    Closed,
    /// Not a Kafka reply, or one that cannot be read.
    #[error("the reply is not Kafka as we know it: {0}")]
    Wire(#[from] WireError),
    /// An answer to another request.
    #[error("correlation id {answered} answers {asked}")]
    CorrelationId {
        /// Ours.
        asked: i32,
        /// The broker's.
        answered: i32,
    },
    /// The broker speaks none of our versions of a request.
    #[error("no common version of {request}: we speak {ours}, the broker {}", theirs.map_or("none".to_owned(), |range| range.to_string()))]
    NoCommonVersion {
        /// The request.
        request: &'static str,
        /// What we speak.
        ours: VersionRange,
        /// What the broker speaks.
        theirs: Option<VersionRange>,
    },
    /// The broker answered a request as a whole with an error.
    #[error("{api:?} refused: {error}")]
    Refused {
        /// The request.
        api: ApiKey,
        /// The broker's code.
        error: ErrorCode,
    },
}

impl ConnectionProblem {
    /// The broker, or something on the way, ended the connection.
    pub(crate) fn is_hang_up(&self) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match self {
            Self::Closed => true,
            Self::Io(error) => {
                matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            }
            _ => false,
        }
    }
}
