//! The few requests of ZooKeeper's protocol by which topics are changed.

use crate::wire::{Reader, Writer};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// Error codes of replies.
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;
const CREATE: i32 = 1;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_CHILDREN: i32 = 8;
const CLOSE: i32 = -11;
/// All permissions.
const PERMISSIONS: i32 = 31;
const WAIT: Duration = Duration::from_secs(10);

/// A session with one server of a `zookeeper.connect`, below its chroot.
#[derive(Debug)]
pub(crate) struct Znodes {
    stream: TcpStream,
    chroot: String,
}

impl Znodes {
    /// A session with the first server that grants one.
    pub(crate) fn open(connect: &str) -> io::Result<Self> {
        let (servers, chroot) = connect.split_at(connect.find('/').unwrap_or(connect.len()));
        let mut last = io::Error::other("no ZooKeeper server is named");
        for server in servers.split(',') {
            match Self::open_at(server, chroot) {
                Ok(znodes) => return Ok(znodes),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn open_at(server: &str, chroot: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_write_timeout(Some(WAIT))?;
        let mut znodes = Self { stream, chroot: chroot.to_owned() };
        let mut body = Writer::default();
        body.i32(0); // protocol version
        body.i64(0); // transactions seen
        body.i32(10_000); // session timeout in ms
        body.i64(0); // a new session
        body.bytes(&[0; 16]); // its password
        znodes.send(&body)?;
        znodes.receive()?;
        Ok(znodes)
    }

    /// Creates a node; false if it exists.
    pub(crate) fn create(&mut self, path: &str, data: &str) -> io::Result<bool> {
        let mut body = self.request(CREATE, path);
        body.bytes(data.as_bytes());
        body.len(1);
        body.i32(PERMISSIONS);
        body.bytes(b"world");
        body.bytes(b"anyone");
        body.i32(0); // persistent
        Ok(self.call(&body)?.0 != NODE_EXISTS)
    }

    /// Creates a node or overwrites its data.
    pub(crate) fn put(&mut self, path: &str, data: &str) -> io::Result<()> {
        if self.create(path, data)? {
            return Ok(());
        }
        let mut body = self.request(SET_DATA, path);
        body.bytes(data.as_bytes());
        body.i32(-1); // whatever the version
        match self.call(&body)?.0 {
            NO_NODE => Err(io::Error::other(format!("{path} went meanwhile"))),
            _ => Ok(()),
        }
    }

    pub(crate) fn exists(&mut self, path: &str) -> io::Result<bool> {
        let mut body = self.request(GET_DATA, path);
        body.i8(0); // no watch
        Ok(self.call(&body)?.0 != NO_NODE)
    }

    /// Ids of the brokers that are registered, in order.
    pub(crate) fn brokers(&mut self) -> io::Result<Vec<i32>> {
        self.numbers_below("/brokers/ids")
    }

    /// The offsets that a group has stored for a topic, by partition.
    pub(crate) fn offsets(&mut self, group: &str, topic: &str) -> io::Result<BTreeMap<i32, i64>> {
        let folder = format!("/consumers/{group}/offsets/{topic}");
        let mut offsets = BTreeMap::new();
        for partition in self.numbers_below(&folder)? {
            if let Some(text) = self.text(&format!("{folder}/{partition}"))? {
                offsets.insert(partition, text.parse().map_err(io::Error::other)?);
            }
        }
        Ok(offsets)
    }

    /// Names of a node's children, which are numbers, in order; none if it is not there.
    fn numbers_below(&mut self, path: &str) -> io::Result<Vec<i32>> {
        let mut body = self.request(GET_CHILDREN, path);
        body.i8(0); // no watch
        let (code, children) = self.call(&body)?;
        if code == NO_NODE {
            return Ok(Vec::new());
        }
        let mut numbers = Reader(&children).vec(|child| {
            let name = child.bytes()?;
            String::from_utf8_lossy(name).parse().map_err(io::Error::other)
        })?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What a node holds, if it is there.
    fn text(&mut self, path: &str) -> io::Result<Option<String>> {
        let mut body = self.request(GET_DATA, path);
        body.i8(0); // no watch
        let (code, data) = self.call(&body)?;
        if code == NO_NODE {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(Reader(&data).bytes()?).into_owned()))
    }

    /// `host:port` of the brokers that are registered.
    pub(crate) fn broker_addresses(&mut self) -> io::Result<Vec<String>> {
        self.brokers()?.into_iter().map(|id| self.address(id)).collect()
    }

    fn address(&mut self, broker: i32) -> io::Result<String> {
        let text = self.text(&format!("/brokers/ids/{broker}"))?.unwrap_or_default();
        // what is after `"endpoints"` has colons and quotes of its own
        let value = |key: &str| {
            let (_, after) = text.split_once(&format!("\"{key}\":"))?;
            Some(after.split([',', '}']).next()?.trim().trim_matches('"').to_owned())
        };
        match (value("host"), value("port")) {
            (Some(host), Some(port)) => Ok(format!("{host}:{port}")),
            _ => Err(io::Error::other(format!("broker {broker} has registered {text}"))),
        }
    }

    fn request(&self, operation: i32, path: &str) -> Writer {
        let mut body = Writer::default();
        body.i32(1); // number of the request: there is only one at a time
        body.i32(operation);
        body.bytes(format!("{}{path}", self.chroot).as_bytes());
        body
    }

    /// The error code, if it is one to be expected, and the answer.
    fn call(&mut self, body: &Writer) -> io::Result<(i32, Vec<u8>)> {
        self.send(body)?;
        let reply = self.receive()?;
        let mut reply = Reader(&reply);
        reply.i32()?; // number of the request
        reply.i64()?; // transaction
        match reply.i32()? {
            code @ (0 | NO_NODE | NODE_EXISTS) => Ok((code, reply.0.to_vec())),
            code => Err(io::Error::other(format!("ZooKeeper answered error code {code}"))),
        }
    }

    fn send(&mut self, body: &Writer) -> io::Result<()> {
        let mut frame = Writer::default();
        frame.bytes(&body.0);
        self.stream.write_all(&frame.0)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| *length < 1 << 20);
        let mut reply = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
        self.stream.read_exact(&mut reply)?;
        Ok(reply)
    }
}

impl Drop for Znodes {
    fn drop(&mut self) {
        let mut body = Writer::default();
        body.i32(1);
        body.i32(CLOSE);
        // else the session would just expire
        let _ = self.send(&body);
    }
}
