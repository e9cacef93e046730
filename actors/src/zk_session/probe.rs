//! Learns what session timeout an ensemble grants, by a throw-away session over a socket of our own: the client
//! library does not tell (asking 30 s of a server with a 500 ms tick gives 10 s).
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kafka_troupe_proto::zk::connect_request::{ConnectRequest, ConnectResponse, close_session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The session timeout that the server at `address` grants when asked for `wanted`. The caller sets the deadline, and
/// tries again: a server that is starting, or has no quorum, takes connections and closes them.
pub(super) async fn granted_timeout(address: SocketAddr, wanted: Duration) -> io::Result<Duration> {
    let mut socket = TcpStream::connect(address).await?;
    let wanted = i32::try_from(wanted.as_millis()).unwrap_or(i32::MAX);
    socket.write_all(&ConnectRequest::new_session(wanted).encode()).await?;
    let mut prefix = [0; 4];
    socket.read_exact(&mut prefix).await.map_err(hung_up)?;
    let mut reply = vec![0; ConnectResponse::frame_len(prefix).map_err(not_zookeeper)?];
    socket.read_exact(&mut reply).await.map_err(hung_up)?;
    let granted = ConnectResponse::decode(&reply).map_err(not_zookeeper)?;
    socket.write_all(&close_session(1)).await?;
    match u64::try_from(granted.timeout_ms) {
        Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it granted no session")),
    }
}

fn hung_up(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let what = "it closed the connection: it is starting, has no quorum, or is no ZooKeeper server";
            io::Error::new(error.kind(), what)
        }
        _ => error,
    }
}

fn not_zookeeper(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
