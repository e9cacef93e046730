//! What is left of a session: no thread, and no password in the log. Alone in its process, so that it counts no other
//! test's threads and reads no other test's log.
mod zk;

use std::io;
use std::sync::{Arc, Mutex};

use kafka_troupe_actors::zk_session::{CLIENT_THREAD, SessionEvent, Shutdown};
use zk::{Session, eventually, zookeeper};

fn client_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == CLIENT_THREAD).count()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[actix::test]
async fn nothing_is_left_of_a_session() {
    let log = Log::default();
    let writer = log.clone();
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    everything.with_writer(move || writer.clone()).with_ansi(false).init();
    let server = zookeeper();
    let (mut session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    assert_eq!(client_threads(), 1);
    // also when the server is gone and the session with it
    server.zookeeper().kill().unwrap();
    session.until(&SessionEvent::Expired { session: epoch }).await;
    eventually("the old session's thread ends", async || client_threads() == 0).await;
    server.zookeeper().restart().unwrap();
    eventually("a new session", async || session.is_connected().await).await;
    assert_eq!(client_threads(), 1);
    session.actor.send(Shutdown).await.unwrap();
    eventually("the thread ends", async || client_threads() == 0).await;
    session.arbiter.stop();
    session.arbiter.join().unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("zookeeper connected session=1"), "{log}");
    assert!(log.contains("zookeeper session is over session=1"), "{log}");
    assert!(!log.contains("passwd"), "{log}");
    assert!(!log.contains("zookeeper_async"), "{log}");
}
