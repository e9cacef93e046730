//! One connection: requests in, answers out, in turn.

use std::io;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::pause_until;
use super::MemoryBrokers;

/// Answers until the client hangs up or sends what a broker does not take.
pub(super) async fn serve(brokers: MemoryBrokers, broker: i32, mut stream: DuplexStream) -> io::Result<()> {
    loop {
        let size = stream.read_u32().await?;
        let mut request = BytesMut::zeroed(size as usize);
        stream.read_exact(&mut request).await?;
        let Some(body) = brokers.answer(broker, request.freeze()).await? else { continue };
        let arrival = brokers.state().arrival();
        pause_until(arrival).await;
        let mut answer = BytesMut::new();
        answer.put_u32(u32::try_from(body.len()).map_err(io::Error::other)?);
        answer.put_slice(&body);
        stream.write_all(&answer).await?;
    }
}
