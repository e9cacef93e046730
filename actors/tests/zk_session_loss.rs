//! The session actor over a way to ZooKeeper that loses replies and connections.
mod zk;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use kafka_troupe_actors::lease::SessionEpoch;
use kafka_troupe_actors::zk_session::port::{ConnectSpec, ZkConnector};
use kafka_troupe_actors::zk_session::{
    Claim, CreateEphemeral, CreatePersistent, Delete, ReadData, Register, Registered, SessionEvent,
    ZkSession, ZooKeeperAsync,
};
use tokio::time::sleep;
use troupe_cluster::Proxy;
use zk::{PATIENCE, Session, config, eventually, zookeeper};

const IDS: &str = "/consumers/g/ids/a";
const OWNER: &str = "/consumers/g/owners/t/0";

async fn exists(observer: &Session, path: &str) -> bool {
    observer.ask(ReadData { path: path.to_owned(), watch: false }).await.is_ok()
}

fn register() -> Register {
    Register { path: IDS.to_owned(), data: b"{}".to_vec() }
}

fn claim(registered: &Registered) -> CreateEphemeral {
    CreateEphemeral { session: registered.session, path: OWNER.to_owned(), data: b"a-0".to_vec() }
}

/// Sends `message`, whose reply is lost, waits until the observer sees its effect, and cuts the connection.
async fn lose_reply<M>(
    proxy: &Proxy,
    session: &Session,
    message: M,
    effect: impl AsyncFnMut() -> bool,
) -> M::Result
where
    M: actix::Message + Send + 'static,
    M::Result: Send,
    ZkSession: actix::Handler<M>,
{
    proxy.delay(PATIENCE);
    let answer = session.actor.send(message);
    let cut = async {
        eventually("the server has done it", effect).await;
        proxy.reset();
        proxy.heal();
    };
    let (answer, ()) = tokio::join!(answer, cut);
    answer.expect("the actor runs")
}

#[actix::test]
async fn a_lost_reply_is_settled() {
    let server = zookeeper();
    let proxy = Proxy::start(server.zookeeper_connect()).unwrap();
    let (session, epoch) = Session::connected(&proxy.address()).await;
    let (observer, its) = Session::connected(&server.zookeeper_connect()).await;
    // parents first: only the node itself is to be seen
    for path in ["/consumers/g/ids", "/consumers/g/owners/t"] {
        let make = CreatePersistent { session: its, path: path.to_owned(), data: vec![] };
        observer.ask(make).await.unwrap();
    }
    // while the session's id is unknown
    let registered = lose_reply(&proxy, &session, register(), async || exists(&observer, IDS).await).await;
    let registered = registered.unwrap();
    assert_eq!(registered.session, epoch);
    let created =
        lose_reply(&proxy, &session, claim(&registered), async || exists(&observer, OWNER).await).await;
    assert_eq!(created, Ok(Claim::Created { owner: registered.id }));
    let delete = Delete { session: epoch, path: OWNER.to_owned(), version: None };
    let deleted = lose_reply(&proxy, &session, delete, async || !exists(&observer, OWNER).await).await;
    assert_eq!(deleted, Ok(()));
    let status = session.status().await;
    assert_eq!((status.session, status.id), (Some(epoch), Some(registered.id)), "one session all along");
}

#[actix::test]
async fn a_cut_connection_is_the_same_session_again() {
    let server = zookeeper();
    let proxy = Proxy::start(server.zookeeper_connect()).unwrap();
    let (mut session, epoch) = Session::connected(&proxy.address()).await;
    let registered = session.ask(register()).await.unwrap();
    for _ in 0..3 {
        proxy.reset();
        assert_eq!(session.event().await, SessionEvent::Suspended);
        assert_eq!(session.event().await, SessionEvent::Connected { session: epoch });
        assert!(session.lease.is_live());
    }
    assert_eq!(session.ask(register()).await, Ok(registered));
}

/// Behind its address may be another server by now, as with a load balancer, or its way back is lost.
#[actix::test]
async fn a_silent_only_address_is_connected_to_again_in_the_same_session() {
    let server = zookeeper();
    let proxy = Proxy::start(server.zookeeper_connect()).unwrap();
    let (mut session, epoch) = Session::connected(&proxy.address()).await;
    let registered = session.ask(register()).await.unwrap();
    proxy.freeze();
    assert_eq!(session.event().await, SessionEvent::Suspended);
    proxy.heal();
    assert_eq!(session.event().await, SessionEvent::Connected { session: epoch });
    assert_eq!(session.ask(register()).await, Ok(registered));
}

/// Grants one session after the probe's, then cuts it and closes every new connection at once, as a server without
/// a quorum does. Counts those.
fn revolving_door(cut: Receiver<()>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    std::thread::spawn(move || {
        let mut granted = Vec::new();
        for mut client in listener.incoming().flatten().take(2) {
            client.read_exact(&mut [0; 49]).unwrap();
            let mut reply = [0; 41];
            reply[3] = 37; // length
            reply[8..12].copy_from_slice(&10_000_i32.to_be_bytes());
            reply[19] = 1; // session
            reply[23] = 16; // length of the password
            client.write_all(&reply).unwrap();
            granted.push(client);
        }
        cut.recv().unwrap();
        drop(granted);
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, refused)
}

#[actix::test]
async fn a_server_that_closes_at_once_is_not_stormed() {
    let (cut, to_be_cut) = channel();
    let (address, refused) = revolving_door(to_be_cut);
    let spec = ConnectSpec::new(SessionEpoch(1), &config(&address));
    let client = ZooKeeperAsync.connect(spec, Arc::new(|_| {})).await.unwrap();
    cut.send(()).unwrap();
    eventually("it tries again", async || refused.load(Ordering::SeqCst) > 0).await;
    sleep(Duration::from_secs(1)).await;
    let tries = refused.load(Ordering::SeqCst);
    assert!(tries <= 50, "{tries} tries in a second");
    client.end();
}

#[actix::test]
async fn many_operations_at_once_delay_no_heartbeat() {
    let server = zookeeper();
    let (mut session, _) = Session::connected(&server.zookeeper_connect()).await;
    session.ask(register()).await.unwrap();
    let reads = (0..5_000).map(|_| session.ask(ReadData { path: IDS.to_owned(), watch: true }));
    let answers = futures_util::future::join_all(reads);
    let watch_lease = async {
        let mut most = 0;
        while most < 32 {
            most = most.max(session.status().await.in_flight);
            assert!(session.lease.is_live());
        }
        most
    };
    let (answers, most) = tokio::join!(answers, watch_lease);
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(most, 32, "the bound is kept and used");
    assert!(session.lease.is_live());
    assert!(session.events.try_recv().is_err());
}

#[actix::test]
async fn one_server_that_works_is_enough() {
    let server = zookeeper();
    let closed = troupe_cluster::free_port().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = (silent.local_addr().unwrap(), silent);
    let working = server.zookeeper_connect();
    let connect = format!("127.0.0.1:{closed}, {}, no-such-host.invalid, {working}", silent.0);
    let (session, _) = Session::connected(&connect).await;
    session.ask(register()).await.unwrap();
}

#[actix::test]
async fn a_server_that_hangs_up_while_it_starts_is_asked_again() {
    let server = zookeeper();
    let proxy = Proxy::start(server.zookeeper_connect()).unwrap();
    proxy.lose_reply(1);
    let (session, _) = Session::connected(&proxy.address()).await;
    session.ask(register()).await.unwrap();
}
