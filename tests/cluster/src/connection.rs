//! One connection to one broker, one request at a time.

use crate::wire::Writer;
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

/// A request kind at a version; the constants are what every broker from 1.0 to 4.x serves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    pub(crate) name: &'static str,
    key: i16,
    pub(crate) version: i16,
}

impl Api {
    pub(crate) const PRODUCE: Self = Self { name: "Produce", key: 0, version: 3 };
    pub(crate) const LIST_OFFSETS: Self = Self { name: "ListOffsets", key: 2, version: 1 };
    pub(crate) const METADATA: Self = Self { name: "Metadata", key: 3, version: 1 };
    /// From 0.9 on.
    pub(crate) const OFFSET_COMMIT: Self = Self { name: "OffsetCommit", key: 8, version: 2 };
    /// From 0.8.2 on.
    pub(crate) const OFFSET_FETCH: Self = Self { name: "OffsetFetch", key: 9, version: 1 };
    /// From 0.8.2 on, where it is called ConsumerMetadata.
    pub(crate) const FIND_COORDINATOR: Self = Self { name: "FindCoordinator", key: 10, version: 0 };
    pub(crate) const CREATE_TOPICS: Self = Self { name: "CreateTopics", key: 19, version: 2 };
    pub(crate) const DELETE_TOPICS: Self = Self { name: "DeleteTopics", key: 20, version: 1 };
    pub(crate) const INIT_PRODUCER_ID: Self = Self { name: "InitProducerId", key: 22, version: 0 };
    pub(crate) const CREATE_PARTITIONS: Self = Self { name: "CreatePartitions", key: 37, version: 0 };
    /// From 1.1 on.
    pub(crate) const DELETE_GROUPS: Self = Self { name: "DeleteGroups", key: 42, version: 0 };

    pub(crate) fn at(self, version: i16) -> Self {
        Self { version, ..self }
    }
}

/// A connection that fails for good at its first error.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    correlation: i32,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let wait = Duration::from_secs(10);
        let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(wait))?;
        Ok(Self { stream, correlation: 0 })
    }

    /// Sends a request and returns the body of its response.
    pub(crate) fn call(&mut self, api: Api, body: &[u8]) -> io::Result<Vec<u8>> {
        self.correlation += 1;
        let mut header = Writer::default();
        header.i16(api.key);
        header.i16(api.version);
        header.i32(self.correlation);
        header.string("troupe-cluster");
        let mut frame = Writer::default();
        frame.len(header.0.len() + body.len());
        frame.0.extend(header.0);
        self.stream.write_all(&frame.0)?;
        self.stream.write_all(body)?;
        self.receive()
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let [length, correlation] =
            [[head[0], head[1], head[2], head[3]], [head[4], head[5], head[6], head[7]]]
                .map(i32::from_be_bytes);
        let length = usize::try_from(length - 4).ok().filter(|length| *length < 64 << 20);
        let (Some(length), true) = (length, correlation == self.correlation) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the response to our request"));
        };
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}
