//! One TCP connection to a broker: one request, one response, in turn.
//!
//! Versions belong to the connection: they are asked for when it opens, so a broker that was upgraded in place is
//! met anew by the next one (`versions.rs`: also how those of 0.8 and 0.9 are met, which cannot be asked). No request
//! is sent in a version that the broker has not named. Every wait has a deadline (`socket.timeout.ms`). After any error
//! the connection is out of step and must be dropped; nothing here tries again.
//!
//! A response that says that we are throttled delays the next request on its connection: brokers from 2.0 answer first
//! and are deaf for that long then, a minute at most. (Older ones have waited before they answered, so that nothing is
//! to be done.)

mod error;
mod fetch;
mod record_buffers;
mod transport;
mod versions;

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::api_versions::ApiVersions;
use kafka_troupe_proto::kafka::frame::{self, ApiKey, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

pub use error::{ConnectionError, ConnectionProblem};
pub use fetch::FetchAnswer;
use record_buffers::RecordBuffers;
use transport::Socket;
pub use transport::Transport;
use versions::{Dialling, OldBrokers};

/// The largest response that is read, in bytes. What a port that speaks TLS or HTTP answers reads as a larger one.
pub const MAX_RESPONSE_BYTES: usize = 128 << 20;

/// What is reserved at first for a response that no recycled buffer holds: a broker that lies about the size costs
/// no more than it sends.
const FIRST_RESERVE: usize = 64 << 10;

/// Brokers that speak this version of Fetch answer first and throttle then (KIP-219, 2.0).
const DEAF_FROM_FETCH: i16 = 8;

/// The longest that a throttled connection waits before its next request. Quotas are of seconds: a broker that says
/// more is not believed, and holds back what comes early by itself.
const MAX_DEAF: Duration = Duration::from_secs(60);

/// How a broker is dialled. Clones share what was learnt of brokers of 0.8 and 0.9, so that only the first connection
/// waits for what they do not answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Kafka property `client.id`: shows in the broker's logs, quotas and metrics.
    pub client_id: String,
    /// `socket.timeout.ms` (30 s): longest wait for the connection, and for the next bytes of a response.
    pub socket_timeout: Duration,
    /// TCP.
    pub transport: Transport,
    /// What was learnt of brokers that cannot be asked for their versions.
    old_brokers: OldBrokers,
}

impl ConnectOptions {
    /// Options for one client.
    pub fn new(client_id: impl Into<String>, socket_timeout: Duration) -> Self {
        Self {
            client_id: client_id.into(),
            socket_timeout,
            transport: Transport::default(),
            old_brokers: OldBrokers::default(),
        }
    }
}

/// An open connection whose versions are known.
#[derive(Debug)]
pub struct BrokerConnection {
    address: String,
    options: ConnectOptions,
    stream: Socket,
    versions: ApiVersions,
    next_correlation_id: i32,
    /// We are throttled: the broker reads nothing before then.
    deaf_until: Option<Instant>,
    /// Something has come since the last request.
    heard: bool,
    /// The last request's bytes, for the next.
    request: BytesMut,
    record_buffers: RecordBuffers,
}

impl BrokerConnection {
    /// Dials `host:port` and learns the versions.
    ///
    /// # Errors
    /// [`ConnectionError`], which names the address: refused, not in time, or not a Kafka broker.
    pub async fn connect(host: &str, port: u16, options: ConnectOptions) -> Result<Self, ConnectionError> {
        Dialling { host, port, options }.connect().await
    }

    /// A connection on which nothing has been asked; it knows of no versions.
    async fn dial(host: &str, port: u16, options: ConnectOptions) -> Result<Self, ConnectionError> {
        let address = ServerAddress::new(host, port).to_string();
        let dialling = options.transport.dial(host, port);
        let dialled = within(options.socket_timeout, "to connect", dialling).await;
        Ok(Self {
            stream: dialled.map_err(|problem| ConnectionError::new(&address, problem))?,
            address,
            options,
            versions: ApiVersions::default(),
            next_correlation_id: 0,
            deaf_until: None,
            heard: false,
            request: BytesMut::new(),
            record_buffers: RecordBuffers::default(),
        })
    }

    /// `host:port`, as in errors.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The version in which requests of this kind are sent.
    ///
    /// # Errors
    /// [`ConnectionProblem::NoCommonVersion`]: the broker is too old or too new.
    pub fn version_of<R: Request>(&self) -> Result<i16, ConnectionError> {
        let ours = R::VERSIONS;
        self.versions.choose_for::<R>().ok_or_else(|| {
            let theirs = self.versions.range(R::API);
            self.error(ConnectionProblem::NoCommonVersion { request: R::NAME, ours, theirs })
        })
    }

    /// Sends a request in the highest common version and waits for its response.
    ///
    /// # Errors
    /// [`ConnectionError`]; the connection is then out of step: drop it.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ConnectionError> {
        let version = self.version_of::<R>()?;
        let answered = self.exchange(request, version).await;
        answered.map_err(|problem| self.error(problem))
    }

    async fn exchange<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, ConnectionProblem> {
        let id = self.send(request, version).await?;
        let size = self.read_head(id).await?;
        let response = R::Response::decode(version, self.read_body(size).await?)?;
        self.throttled(response.throttle_ms());
        Ok(response)
    }

    /// How long the broker reads nothing from us, since we are throttled.
    pub fn deaf_for(&self) -> Duration {
        self.deaf_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    async fn read_body(&mut self, size: usize) -> Result<Bytes, ConnectionProblem> {
        let mut body = BytesMut::with_capacity(size.min(FIRST_RESERVE));
        self.fill(&mut body, size).await?;
        Ok(body.freeze())
    }

    /// A response said so.
    fn throttled(&mut self, ms: i32) {
        let time = Duration::from_millis(u64::try_from(ms).unwrap_or(0)).min(MAX_DEAF);
        let is_deaf = self.versions.range(ApiKey::Fetch).is_some_and(|range| range.max >= DEAF_FROM_FETCH);
        self.deaf_until = (is_deaf && !time.is_zero()).then(|| Instant::now() + time);
    }

    /// Sends a request; says its correlation id.
    async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<i32, ConnectionProblem> {
        if let Some(until) = self.deaf_until.take() {
            tokio::time::sleep_until(until).await;
        }
        let id = self.next_correlation_id;
        self.next_correlation_id = id.wrapping_add(1);
        self.heard = false;
        let mut out = std::mem::take(&mut self.request);
        out.clear();
        let out = frame::encode_request_into(out, request, version, id, &self.options.client_id)?;
        within(self.options.socket_timeout, "to send a request", self.stream.write_all(&out)).await?;
        self.request = out;
        Ok(id)
    }

    /// Reads what a response begins with, and checks that it answers request `asked`; says the size of its body.
    async fn read_head(&mut self, asked: i32) -> Result<usize, ConnectionProblem> {
        let mut head = Self::no_head();
        self.fill_head(&mut head).await?;
        let (answered, size) = split_head(head)?;
        check_answers(asked, answered)?;
        Ok(size)
    }

    fn no_head() -> BytesMut {
        BytesMut::with_capacity(frame::SIZE_PREFIX + 4)
    }

    /// Size and correlation id. May be given up, and gone on with.
    async fn fill_head(&mut self, head: &mut BytesMut) -> Result<(), ConnectionProblem> {
        self.fill(head, frame::SIZE_PREFIX).await?;
        // what is no Kafka reply may end here
        frame::response_size(size_prefix(head), MAX_RESPONSE_BYTES)?;
        self.fill(head, frame::SIZE_PREFIX + 4).await
    }

    /// Reads until the buffer holds `size` bytes. What it has no room for is reserved as it arrives: a broker that
    /// lies about a size costs no more than twice what it sends.
    async fn fill(&mut self, buffer: &mut BytesMut, size: usize) -> Result<(), ConnectionProblem> {
        while buffer.len() < size {
            if buffer.len() == buffer.capacity() {
                buffer.reserve((size - buffer.len()).min(buffer.len().max(FIRST_RESERVE)));
            }
            let room = buffer.capacity().min(size) - buffer.len();
            self.read_some(buffer, room).await?;
        }
        Ok(())
    }

    /// Reads up to `most` bytes, of what has arrived, into spare capacity that need not be zeroed.
    async fn read_some(&mut self, buffer: &mut BytesMut, most: usize) -> Result<(), ConnectionProblem> {
        let mut room = buffer.limit(most);
        let read = self.stream.read_buf(&mut room);
        match within(self.options.socket_timeout, "for a response", read).await? {
            0 => Err(ConnectionProblem::Closed),
            _ => {
                self.heard = true;
                Ok(())
            }
        }
    }

    fn error(&self, problem: ConnectionProblem) -> ConnectionError {
        self.options.old_brokers.doubt(&self.address);
        let unanswered = !self.heard && problem.is_hang_up();
        ConnectionError { unanswered, ..ConnectionError::new(&self.address, problem) }
    }
}

fn size_prefix(head: &[u8]) -> [u8; frame::SIZE_PREFIX] {
    head.first_chunk().copied().unwrap_or_default()
}

/// Correlation id and size of the body.
fn split_head(mut head: BytesMut) -> Result<(i32, usize), ConnectionProblem> {
    let size = frame::response_size(size_prefix(&head), MAX_RESPONSE_BYTES)?;
    head.advance(frame::SIZE_PREFIX);
    Ok((head.get_i32(), size - 4))
}

fn check_answers(asked: i32, answered: i32) -> Result<(), ConnectionProblem> {
    if answered == asked { Ok(()) } else { Err(ConnectionProblem::CorrelationId { asked, answered }) }
}

async fn within<T>(
    limit: Duration,
    what: &'static str,
    io: impl Future<Output = std::io::Result<T>>,
) -> Result<T, ConnectionProblem> {
    match tokio::time::timeout(limit, io).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(ConnectionProblem::TimedOut { what, limit }),
    }
}

#[cfg(test)]
mod tests;
