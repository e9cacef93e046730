//! A page of the dashboard that somebody has open.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

pub struct Page {
    events: TcpStream,
}

impl Page {
    /// Comes back when it has been shown the group.
    pub fn open(server: &str) -> Self {
        let mut events = TcpStream::connect(server).expect("it listens");
        events.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        events.write_all(b"GET /troupe/events HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is written");
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains("event: picture") {
            let read = events.read(&mut bytes).expect("it answers");
            assert_ne!(read, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        Self { events }
    }

    /// In good order: the last chunk of its answer has come.
    #[track_caller]
    pub fn has_ended(mut self) {
        let mut rest = Vec::new();
        self.events.read_to_end(&mut rest).expect("it is closed");
        assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    }
}
