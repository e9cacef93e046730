//! One TCP connection to a broker: one request, one response, in turn.
//!
//! Versions belong to the connection: they are asked for when it opens, so a broker that was upgraded in place is
//! met anew by the next one. Every wait has a deadline (`socket.timeout.ms`). After any error the connection is
//! out of step and must be dropped; nothing here tries again.

mod error;
mod fetch;
mod record_buffers;
mod transport;

use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use kafka_troupe_proto::kafka::api_versions::{ApiVersions, ApiVersionsRequest};
use kafka_troupe_proto::kafka::frame::{self, ApiKey, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use error::{ConnectionError, ConnectionProblem};
pub use fetch::FetchAnswer;
use record_buffers::RecordBuffers;
use transport::Socket;
pub use transport::Transport;

/// The largest response that is read, in bytes. What a port that speaks TLS or HTTP answers reads as a larger one.
pub const MAX_RESPONSE_BYTES: usize = 128 << 20;

/// What is reserved at first for a response that no recycled buffer holds: a broker that lies about the size costs
/// no more than it sends.
const FIRST_RESERVE: usize = 64 << 10;

/// How a broker is dialled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Kafka property `client.id`: shows in the broker's logs, quotas and metrics.
    pub client_id: String,
    /// `socket.timeout.ms` (30 s): longest wait for the connection, and for the next bytes of a response.
    pub socket_timeout: Duration,
    /// TCP.
    pub transport: Transport,
}

impl ConnectOptions {
    /// Options for one client.
    pub fn new(client_id: impl Into<String>, socket_timeout: Duration) -> Self {
        Self { client_id: client_id.into(), socket_timeout, transport: Transport::default() }
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
    /// The last request's bytes, for the next.
    request: BytesMut,
    record_buffers: RecordBuffers,
}

impl BrokerConnection {
    /// Dials `host:port` and asks for the versions.
    ///
    /// # Errors
    /// [`ConnectionError`], which names the address: refused, not in time, or not a Kafka broker.
    pub async fn connect(host: &str, port: u16, options: ConnectOptions) -> Result<Self, ConnectionError> {
        let address = display_address(host, port);
        let dialling = options.transport.dial(host, port);
        let dialled = within(options.socket_timeout, "to connect", dialling).await;
        let mut connection = Self {
            stream: dialled.map_err(|problem| ConnectionError::new(&address, problem))?,
            address,
            options,
            versions: [ApiVersionsRequest::VERSIONS]
                .map(|range| (ApiKey::ApiVersions.code(), range))
                .into_iter()
                .collect(),
            next_correlation_id: 0,
            request: BytesMut::new(),
            record_buffers: RecordBuffers::default(),
        };
        connection.versions = connection.ask_versions().await?;
        Ok(connection)
    }

    async fn ask_versions(&mut self) -> Result<ApiVersions, ConnectionError> {
        let response = self.call(&ApiVersionsRequest).await?;
        match response.error.ok() {
            Ok(()) => Ok(response.versions),
            Err(error) => Err(self.error(ConnectionProblem::Refused { api: ApiKey::ApiVersions, error })),
        }
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
        let mut body = BytesMut::with_capacity(size.min(FIRST_RESERVE));
        self.fill(&mut body, size).await?;
        Ok(R::Response::decode(version, body.freeze())?)
    }

    /// Sends a request; says its correlation id.
    async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<i32, ConnectionProblem> {
        let id = self.next_correlation_id;
        self.next_correlation_id = id.wrapping_add(1);
        let mut out = std::mem::take(&mut self.request);
        out.clear();
        let out = frame::encode_request_into(out, request, version, id, &self.options.client_id)?;
        within(self.options.socket_timeout, "to send a request", self.stream.write_all(&out)).await?;
        self.request = out;
        Ok(id)
    }

    /// Reads what a response begins with, and checks that it answers request `asked`; says the size of its body.
    async fn read_head(&mut self, asked: i32) -> Result<usize, ConnectionProblem> {
        let mut head = BytesMut::with_capacity(frame::SIZE_PREFIX + 4);
        self.fill(&mut head, frame::SIZE_PREFIX).await?;
        let size = frame::response_size(head.get_u32().to_be_bytes(), MAX_RESPONSE_BYTES)?;
        self.fill(&mut head, 4).await?;
        match head.get_i32() {
            answered if answered == asked => Ok(size - 4),
            answered => Err(ConnectionProblem::CorrelationId { asked, answered }),
        }
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
            _ => Ok(()),
        }
    }

    fn error(&self, problem: ConnectionProblem) -> ConnectionError {
        ConnectionError::new(&self.address, problem)
    }
}

/// `host:port`, with brackets around an IPv6 address.
fn display_address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
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
