//! A broker that answers every fetch at once with nothing, and says what it is asked.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
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

/// Starts one that leads partition 0 of `topic` as broker 0; says on which port it listens, and what it sees.
pub fn start(topic: &'static str) -> io::Result<(u16, Receiver<Seen>)> {
    let (seen, sees) = channel();
    // a test that has seen enough is gone
    let watch = move |it| drop(seen.send(it));
    Ok((start_watched(topic, Arc::new(|_| 0), Arc::new(watch))?, sees))
}

/// The same, with a log that has ends.
pub fn start_watched(topic: &'static str, ends: Ends, watch: Watch) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (ends, watch) = (Arc::clone(&ends), Arc::clone(&watch));
            thread::spawn(move || serve(socket, topic, port, &*ends, &*watch));
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

fn serve(
    mut socket: TcpStream,
    topic: &str,
    port: u16,
    ends: &dyn Fn(i64) -> i64,
    watch: &dyn Fn(Seen),
) -> io::Result<()> {
    let mut fetches = 0;
    while let Ok(Request { api, correlation_id, body }) = read_request(&mut socket) {
        let mut out = Writer::default();
        out.i32(correlation_id);
        match api {
            1 => {
                fetches += 1;
                // of one partition the offset and a limit end the request
                watch(Seen::Fetch(Instant::now(), i64_before(&body, 4)));
                fetch_response(&mut out, topic);
            }
            2 => list_offsets_response(&mut out, topic, ends(i64_before(&body, 0))),
            3 => metadata_response(&mut out, topic, port),
            18 => api_versions_response(&mut out),
            other => panic!("unexpected request {other}"),
        }
        let response = out.finish().expect("small fields");
        let size = u32::try_from(response.len()).expect("a small response");
        socket.write_all(&[&size.to_be_bytes(), &response[..]].concat())?;
    }
    if fetches > 0 {
        watch(Seen::HungUp);
    }
    Ok(())
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

fn api_versions_response(out: &mut Writer) {
    out.i16(0);
    out.array("versions", &[(1, 4), (2, 1), (3, 4)], |out, (api, version)| {
        out.i16(*api);
        out.i16(*version);
        out.i16(*version);
    });
}

fn metadata_response(out: &mut Writer, topic: &str, port: u16) {
    out.i32(0); // throttle time
    out.array("brokers", &[port], |out, port| {
        out.i32(0);
        out.string("host", "127.0.0.1");
        out.i32((*port).into());
        out.nullable_string("rack", None);
    });
    out.nullable_string("cluster id", None);
    out.i32(0); // controller
    out.array("topics", &[topic], |out, topic| {
        out.i16(0);
        out.string("name", topic);
        out.bool(false);
        out.array("partitions", &[0], |out, partition| {
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
