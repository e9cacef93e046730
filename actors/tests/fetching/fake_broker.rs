//! A broker that answers every fetch at once with nothing.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use kafka_troupe_proto::kafka::wire::Writer;

/// What the broker saw.
pub enum Seen {
    Fetch(Instant),
    /// A connection on which fetches had come was closed.
    HungUp,
}

/// Starts one that leads partition 0 of `topic` as broker 0; says on which port it listens, and what it sees.
pub fn start(topic: &'static str) -> io::Result<(u16, Receiver<Seen>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (seen, sees) = channel();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let seen = seen.clone();
            thread::spawn(move || serve(socket, topic, port, &seen));
        }
    });
    Ok((port, sees))
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

fn serve(mut socket: TcpStream, topic: &str, port: u16, seen: &Sender<Seen>) -> io::Result<()> {
    let mut fetches = 0;
    while let Ok((api, correlation_id)) = read_request(&mut socket) {
        let mut out = Writer::default();
        out.i32(correlation_id);
        match api {
            1 => {
                fetches += 1;
                // a test that has seen enough is gone
                let _ = seen.send(Seen::Fetch(Instant::now()));
                fetch_response(&mut out, topic);
            }
            3 => metadata_response(&mut out, topic, port),
            18 => api_versions_response(&mut out),
            other => panic!("unexpected request {other}"),
        }
        let response = out.finish().expect("small fields");
        let size = u32::try_from(response.len()).expect("a small response");
        socket.write_all(&[&size.to_be_bytes(), &response[..]].concat())?;
    }
    if fetches > 0 {
        let _ = seen.send(Seen::HungUp);
    }
    Ok(())
}

fn read_request(socket: &mut TcpStream) -> io::Result<(i16, i32)> {
    let mut size = [0; 4];
    socket.read_exact(&mut size)?;
    let mut request = vec![0; u32::from_be_bytes(size) as usize];
    socket.read_exact(&mut request)?;
    let api = i16::from_be_bytes([request[0], request[1]]);
    Ok((api, i32::from_be_bytes([request[4], request[5], request[6], request[7]])))
}

fn api_versions_response(out: &mut Writer) {
    out.i16(0);
    out.array("versions", &[(1, 4), (3, 4)], |out, (api, version)| {
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
