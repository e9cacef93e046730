//! How a broker is reached: a port, so that a broker in memory can stand in for a socket (feature `testkit`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[cfg(feature = "testkit")]
use crate::testkit::MemoryBrokers;

/// How brokers are reached.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Transport {
    /// TCP, without encryption.
    #[default]
    Tcp,
    /// Brokers in this process.
    #[cfg(feature = "testkit")]
    Memory {
        /// Who is dialled.
        brokers: MemoryBrokers,
        /// Who dials; a test may cut its connections.
        client: String,
    },
}

impl Transport {
    /// Dials `host:port`.
    pub(super) async fn dial(&self, host: &str, port: u16) -> io::Result<Socket> {
        match self {
            Self::Tcp => {
                let stream = TcpStream::connect((host, port)).await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            #[cfg(feature = "testkit")]
            Self::Memory { brokers, client } => brokers.dial(host, port, client).await.map(Socket::Memory),
        }
    }
}

/// An open connection's bytes.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    #[cfg(feature = "testkit")]
    Memory(tokio::io::DuplexStream),
}

macro_rules! each {
    ($socket:ident, $stream:ident => $poll:expr) => {
        match $socket.get_mut() {
            Socket::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $poll
            }
            #[cfg(feature = "testkit")]
            Socket::Memory(stream) => {
                let $stream = Pin::new(stream);
                $poll
            }
        }
    };
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }
}
