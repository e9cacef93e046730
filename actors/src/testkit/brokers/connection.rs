//! One connection: requests in, answers out, in turn.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::super::pause_until;
use super::MemoryBrokers;

/// Whether the client has hung up, or was cut off; clones are the same.
#[derive(Clone, Default)]
pub(super) struct HungUp(Arc<AtomicBool>);

impl HungUp {
    pub(super) fn is(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// The connection's own, which ends with it.
struct Ends(HungUp);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.0.store(true, SeqCst);
    }
}

/// Answers until the client hangs up or sends what a broker does not take.
pub(super) async fn serve(brokers: MemoryBrokers, broker: i32, stream: DuplexStream) -> io::Result<()> {
    let (mut stream, connection) = (BufReader::new(stream), Ends(HungUp::default()));
    loop {
        let size = stream.read_u32().await?;
        let mut request = BytesMut::zeroed(size as usize);
        stream.read_exact(&mut request).await?;
        let mut answer = pin!(brokers.answer(broker, request.freeze(), &connection.0));
        let body = tokio::select! {
            biased;
            body = &mut answer => body,
            next = stream.fill_buf() => {
                if next?.is_empty() {
                    connection.0.0.store(true, SeqCst);
                }
                answer.await
            }
        };
        let Some(body) = body? else { continue };
        let arrival = brokers.state().arrival();
        pause_until(arrival).await;
        let mut answer = BytesMut::new();
        answer.put_u32(u32::try_from(body.len()).map_err(io::Error::other)?);
        answer.put_slice(&body);
        stream.write_all(&answer).await?;
    }
}
