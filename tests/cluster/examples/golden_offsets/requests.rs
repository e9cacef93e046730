//! What the old consumer, and others, ask a coordinator: the few requests, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;

/// An offset of partition 0 of a topic.
pub struct Commit<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub offset: i64,
    pub metadata: &'a str,
}

/// How it is committed, by a client that is no member of the group.
pub enum Form {
    /// Version 1, at the time when the broker takes it.
    Now,
    /// Version 2, with how long it is kept in milliseconds; -1 for as long as the broker likes.
    Kept(i64),
    /// Version 6, with the epoch of the leader.
    Epoch(i32),
}

/// Asks for the coordinator, which makes the offsets topic, and commits; the error code, 0 for none.
pub fn commit(address: &str, commit: &Commit, form: &Form) -> i16 {
    let mut find = Vec::new();
    string(&mut find, commit.group);
    let found = call(address, 10, 0, &find);
    let code = i16::from_be_bytes([found[0], found[1]]);
    if code != 0 {
        return code;
    }
    let version = match form {
        Form::Now => 1,
        Form::Kept(_) => 2,
        Form::Epoch(_) => 6,
    };
    let mut body = Vec::new();
    string(&mut body, commit.group);
    body.extend((-1_i32).to_be_bytes()); // generation
    string(&mut body, ""); // member
    if let Form::Kept(time) = form {
        body.extend(time.to_be_bytes());
    }
    body.extend(1_i32.to_be_bytes());
    string(&mut body, commit.topic);
    body.extend(1_i32.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    body.extend(commit.offset.to_be_bytes());
    match form {
        Form::Now => body.extend((-1_i64).to_be_bytes()),
        Form::Epoch(epoch) => body.extend(epoch.to_be_bytes()),
        Form::Kept(_) => {}
    }
    string(&mut body, commit.metadata);
    last_code(&call(address, 8, version, &body))
}

/// Deletes a group; the error code, 0 for none.
pub fn delete_group(address: &str, group: &str) -> i16 {
    let mut body = 1_i32.to_be_bytes().to_vec();
    string(&mut body, group);
    last_code(&call(address, 42, 0, &body))
}

/// Both responses end with the code of their only entry.
fn last_code(response: &[u8]) -> i16 {
    let [.., high, low] = response else { panic!("an empty response") };
    i16::from_be_bytes([*high, *low])
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}

/// The body of the response.
fn call(address: &str, api: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend(api.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(7_i32.to_be_bytes()); // correlation id
    string(&mut frame, "golden");
    frame.extend(body);
    let size = frame.len() as i32 - 4;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    let exchange = || {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&frame)?;
        let mut size = [0; 4];
        stream.read_exact(&mut size)?;
        let mut response = vec![0; i32::from_be_bytes(size) as usize];
        stream.read_exact(&mut response)?;
        Ok::<_, std::io::Error>(response.split_off(4))
    };
    exchange().unwrap_or_else(|error| panic!("request {api} of version {version}: {error}"))
}
