//! An application that is told to end: alone in its process, because the signal is for all of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use actix_web::{App, HttpServer};
use kafka_troupe::StatusSnapshot;
use kafka_troupe::web::{Dashboard, Observation, Source, scope};
use rustix::process::{Signal, getpid, kill_process};

/// actix-web's server waits for open connections, half a minute as a rule; those of `/events` are never done.
#[actix_web::test]
async fn open_pages_do_not_hold_up_the_end_of_a_server_that_handles_the_signal() {
    let source =
        Source::from_fn("zk:2181", |_| async { Some(Observation::new(StatusSnapshot::default(), None)) });
    let dashboard = Dashboard::new([source]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let app = move || App::new().service(scope("/troupe", &dashboard));
    let server = HttpServer::new(app).workers(1).listen(listener).unwrap().run();
    let page = std::thread::spawn(move || {
        let mut page = TcpStream::connect(address).unwrap();
        page.write_all(b"GET /troupe/events HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        let mut bytes = [0; 4096];
        while !text.contains("event: picture") {
            let read = page.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        let begun = Instant::now();
        kill_process(getpid(), Signal::TERM).unwrap();
        while page.read(&mut bytes).unwrap_or_default() > 0 {}
        begun.elapsed()
    });
    let begun = Instant::now();
    server.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(15), "the server ended after {:?}", begun.elapsed());
    assert!(page.join().unwrap() < Duration::from_secs(5));
}
