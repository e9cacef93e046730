//! The least that speaks to a broker: a blocking socket, and one buffer that is used again.

use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use kafka_troupe::proto::kafka::frame::{Request, Response, encode_request, response_size, split_response};

use crate::Result;

pub struct Link {
    stream: TcpStream,
    sent: i32,
    received: i32,
}

impl Link {
    pub fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, sent: 0, received: 0 })
    }

    pub fn send<R: Request>(&mut self, request: &R, version: i16) -> Result {
        self.stream.write_all(&encode_request(request, version, self.sent, "bench")?)?;
        self.sent += 1;
        Ok(())
    }

    /// Reads a response into `buffer`, and answers it with the whole of it, to take the buffer back from.
    pub fn receive<R: Response>(&mut self, version: i16, mut buffer: Vec<u8>) -> Result<(R, Bytes)> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix)?;
        let size = response_size(prefix, 128 << 20)?;
        buffer.clear();
        // into spare capacity, which is not zeroed
        buffer.reserve(size);
        (&mut self.stream).take(size as u64).read_to_end(&mut buffer)?;
        let frame = Bytes::from(buffer);
        let (id, body) = split_response(frame.clone())?;
        if id != self.received {
            return Err(format!("response {id} instead of {}", self.received).into());
        }
        self.received += 1;
        Ok((R::decode(version, body)?, frame))
    }
}
