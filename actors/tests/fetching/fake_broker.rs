//! A broker that answers every fetch at once with nothing, unless told otherwise, and says what it is asked.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use kafka_troupe_proto::kafka::wire::Writer;

/// What the broker saw.
pub enum Seen {
    /// From this offset.
    Fetch(Instant, i64),
    /// A connection on which fetches had come was closed.
    HungUp,
}

/// Tells which offset is the first (-2) or the next (-1) of the log.
pub type Ends = Arc<dyn Fn(i64) -> i64 + Send + Sync>;
/// Told of each request before it is answered.
pub type Watch = Arc<dyn Fn(Seen) + Send + Sync>;

/// A fetch of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Which of the connections on which fetches have come, and which of its fetches, from 0.
    pub connection: usize,
    pub number: usize,
    pub partition: i32,
}

/// What a broker does with a fetch.
pub enum Act {
    Answer,
    /// Answers, and closes the connection.
    AnswerAndClose,
    /// Closes the connection.
    HangUp,
}

/// Says what to do with a fetch.
pub type Script = Arc<dyn Fn(Fetch) -> Act + Send + Sync>;

/// Starts one that leads partition 0 of `topic` as broker 0; says on which port it listens, and what it sees.
pub fn start(topic: &'static str) -> io::Result<(u16, Receiver<Seen>)> {
    let (seen, sees) = channel();
    // a test that has seen enough is gone
    let watch = move |it| drop(seen.send(it));
    Ok((start_watched(topic, Arc::new(|_| 0), Arc::new(watch))?, sees))
}

/// The same, with a log that has ends.
pub fn start_watched(topic: &'static str, ends: Ends, watch: Watch) -> io::Result<u16> {
    start_broker(topic, 1, ends, watch, Arc::new(|_| Act::Answer))
}

/// One that leads so many partitions of `topic`, and does what the script says.
pub fn start_scripted(topic: &'static str, partitions: i32, script: Script) -> io::Result<u16> {
    start_broker(topic, partitions, Arc::new(|_| 0), Arc::new(|_| ()), script)
}

fn start_broker(
    topic: &'static str,
    partitions: i32,
    ends: Ends,
    watch: Watch,
    script: Script,
) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let connections = AtomicUsize::new(0);
    let broker = Arc::new(Broker { topic, partitions, port, ends, watch, script, connections });
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let broker = Arc::clone(&broker);
            thread::spawn(move || broker.serve(socket));
        }
    });
    Ok(port)
}

/// A port that answers whatever comes with a TLS alert and hangs up; says when something came.
pub fn start_tls() -> io::Result<(u16, Receiver<Instant>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (seen, sees) = channel();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            // a test that has seen enough is gone
            if read_request(&mut socket).and_then(|_| socket.write_all(&[0x15, 3, 3, 0, 2, 2, 70])).is_ok() {
                let _ = seen.send(Instant::now());
            }
        }
    });
    Ok((port, sees))
}

struct Broker {
    topic: &'static str,
    partitions: i32,
    port: u16,
    ends: Ends,
    watch: Watch,
    script: Script,
    /// On which fetches have come.
    connections: AtomicUsize,
}

impl Broker {
    fn serve(&self, mut socket: TcpStream) -> io::Result<()> {
        let (mut connection, mut fetches) = (0, 0);
        while let Ok(Request { api, correlation_id, body }) = read_request(&mut socket) {
            let (mut out, mut act) = (Writer::default(), Act::Answer);
            out.i32(correlation_id);
            match api {
                1 => {
                    if fetches == 0 {
                        connection = self.connections.fetch_add(1, Ordering::SeqCst);
                    }
                    // of one partition its number, the offset and a limit end the request
                    (self.watch)(Seen::Fetch(Instant::now(), i64_before(&body, 4)));
                    act = (self.script)(Fetch {
                        connection,
                        number: fetches,
                        partition: i32_before(&body, 12),
                    });
                    fetches += 1;
                    fetch_response(&mut out, self.topic);
                }
                2 => list_offsets_response(&mut out, self.topic, (self.ends)(i64_before(&body, 0))),
                3 => metadata_response(&mut out, self),
                18 => api_versions_response(&mut out),
                other => panic!("unexpected request {other}"),
            }
            if matches!(act, Act::HangUp) {
                break;
            }
            let response = out.finish().expect("small fields");
            let size = u32::try_from(response.len()).expect("a small response");
            socket.write_all(&[&size.to_be_bytes(), &response[..]].concat())?;
            if matches!(act, Act::AnswerAndClose) {
                break;
            }
        }
        if fetches > 0 {
            (self.watch)(Seen::HungUp);
        }
        Ok(())
    }
}

struct Request {
    api: i16,
    correlation_id: i32,
    body: Vec<u8>,
}

fn read_request(socket: &mut TcpStream) -> io::Result<Request> {
    let mut size = [0; 4];
    socket.read_exact(&mut size)?;
    let mut body = vec![0; u32::from_be_bytes(size) as usize];
    socket.read_exact(&mut body)?;
    let api = i16::from_be_bytes([body[0], body[1]]);
    Ok(Request { api, correlation_id: i32::from_be_bytes([body[4], body[5], body[6], body[7]]), body })
}

/// The number that ends so many bytes before the end.
fn i64_before(body: &[u8], end: usize) -> i64 {
    let end = body.len() - end;
    i64::from_be_bytes(body[end - 8..end].try_into().expect("eight bytes"))
}

fn i32_before(body: &[u8], end: usize) -> i32 {
    let end = body.len() - end;
    i32::from_be_bytes(body[end - 4..end].try_into().expect("four bytes"))
}

fn api_versions_response(out: &mut Writer) {
    out.i16(0);
    out.array("versions", &[(1, 4), (2, 1), (3, 4)], |out, (api, version)| {
        out.i16(*api);
        out.i16(*version);
        out.i16(*version);
    });
}

fn metadata_response(out: &mut Writer, broker: &Broker) {
    out.i32(0); // throttle time
    out.array("brokers", &[broker.port], |out, port| {
        out.i32(0);
        out.string("host", "127.0.0.1");
        out.i32((*port).into());
        out.nullable_string("rack", None);
    });
    out.nullable_string("cluster id", None);
    out.i32(0); // controller
    let partitions: Vec<i32> = (0..broker.partitions).collect();
    out.array("topics", &[broker.topic], |out, topic| {
        out.i16(0);
        out.string("name", topic);
        out.bool(false);
        out.array("partitions", &partitions, |out, partition| {
            out.i16(0);
            out.i32(*partition);
            out.i32(0); // leader
            out.array("replicas", &[0], |out, id| out.i32(*id));
            out.array("isr", &[0], |out, id| out.i32(*id));
        });
    });
}

fn fetch_response(out: &mut Writer, topic: &str) {
    out.i32(0); // throttle time
    out.array("topics", &[topic], |out, topic| {
        out.string("topic", topic);
        out.array("partitions", &[0], |out, partition| {
            out.i32(*partition);
            out.i16(0);
            out.i64(0); // high watermark
            out.i64(0); // last stable offset
            out.i32(-1); // aborted
            out.i32(-1); // records
        });
    });
}

fn list_offsets_response(out: &mut Writer, topic: &str, offset: i64) {
    out.array("topics", &[topic], |out, topic| {
        out.string("topic", topic);
        out.array("partitions", &[0], |out, partition| {
            out.i32(*partition);
            out.i16(0);
            out.i64(-1); // timestamp
            out.i64(offset);
        });
    });
}
