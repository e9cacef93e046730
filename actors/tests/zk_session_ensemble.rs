//! The session actor against an ensemble of three real ZooKeeper servers, one of which is cut off or dies.
mod zk;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kafka_troupe_actors::lease::SessionEpoch;
use kafka_troupe_actors::zk_session::port::{ConnectSpec, EventSink, ZkClient, ZkConnector};
use kafka_troupe_actors::zk_session::{
    CreatePersistent, ReadChildren, ReadData, Register, Registered, SessionEvent, Shutdown, WaitConnected,
    ZkError, ZooKeeperAsync,
};
use troupe_cluster::{Cluster, Ensemble, ZooKeeper, ZooKeeperVersion};
use zk::{Session, config, eventually, freeze};

const IDS: &str = "/consumers/g/ids/a";
/// As long as a follower goes on without its leader; its clients' lease ends two seconds earlier.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

fn three(version: ZooKeeperVersion) -> Cluster {
    Cluster::builder().zookeeper(version).zookeepers(3).brokers(0).start().expect("three servers")
}

async fn connected(connect: &str, session_timeout: Duration) -> (Session, SessionEpoch) {
    let mut config = config(connect);
    config.session_timeout = session_timeout;
    let session = Session::start(config).await;
    let epoch = session.ask(WaitConnected).await.expect("a session");
    (session, epoch)
}

fn register() -> Register {
    Register { path: IDS.to_owned(), data: b"{}".to_vec() }
}

async fn the_lease_ends_behind_a_cut_off_follower(version: ZooKeeperVersion) {
    let cluster = three(version);
    let ensemble = cluster.ensemble();
    let follower = (ensemble.leader().unwrap() + 1) % 3;
    let server = &ensemble.servers()[follower];
    let (mut session, epoch) = connected(&server.connect(), SESSION_TIMEOUT).await;
    let registered = session.ask(register()).await.unwrap();
    session.until(&SessionEvent::Connected { session: epoch }).await;
    let witness = reader(&server.connect()).await;
    let cut = Instant::now();
    ensemble.cut_off(follower);
    eventually("the lease ends", async || !session.lease.is_live()).await;
    let margin = Duration::from_millis(250);
    assert!(cut.elapsed() <= SESSION_TIMEOUT * 2 / 3 + margin, "{:?}", cut.elapsed());
    assert_eq!(server.mode().as_deref(), Some("follower"), "it knows of nothing");
    // before that the reads of all wait behind the heartbeat, which is a write
    if version == ZooKeeperVersion::V3_8_4 {
        assert_eq!(witness.data(IDS, false).await.unwrap().1.ephemeral_owner, registered.id);
    }
    // what was held up is answered, and the session is as good as before
    ensemble.join_again(follower);
    eventually("the lease lives", async || session.lease.is_live()).await;
    assert_eq!(session.status().await.session, Some(epoch));
    assert_eq!(session.ask(register()).await, Ok(registered));
    assert!(session.events.try_recv().is_err(), "nobody was told anything");
}

/// A leader hears of a follower's clients with the follower's answers to its pings only, and not by what they write.
async fn an_answer_after_a_pause_proves_no_whole_lease(version: ZooKeeperVersion) {
    let cluster = three(version);
    let ensemble = cluster.ensemble();
    let leader = ensemble.leader().unwrap();
    let follower = (leader + 1) % 3;
    let (session, _) = connected(&ensemble.servers()[follower].connect(), SESSION_TIMEOUT).await;
    let (observer, _) = connected(&ensemble.servers()[leader].connect(), Duration::from_secs(20)).await;
    session.ask(register()).await.unwrap();
    let frozen = freeze(&*session.stash.last());
    eventually("the lease ends", async || !session.lease.is_live()).await;
    drop(frozen);
    eventually("the lease lives", async || session.lease.is_live()).await;
    ensemble.cut_off(follower);
    let registration = || ReadData { path: IDS.to_owned(), watch: false };
    eventually("the session ends", async || observer.ask(registration()).await.is_err()).await;
    assert!(!session.lease.is_live(), "{:?} are left when others may claim", session.lease.remaining());
}

#[actix::test]
async fn an_answer_of_3_8_4_after_a_pause_proves_no_whole_lease() {
    an_answer_after_a_pause_proves_no_whole_lease(ZooKeeperVersion::V3_8_4).await;
}

#[actix::test]
async fn an_answer_of_3_4_10_after_a_pause_proves_no_whole_lease() {
    an_answer_after_a_pause_proves_no_whole_lease(ZooKeeperVersion::V3_4_10).await;
}

/// A client that only reads, in a session of its own.
async fn reader(connect: &str) -> Arc<dyn ZkClient> {
    let mut config = config(connect);
    config.session_timeout = Duration::from_secs(20);
    let events: EventSink = Arc::new(|_| ());
    ZooKeeperAsync.connect(ConnectSpec::new(SessionEpoch(1), &config), events).await.expect("a session")
}

#[actix::test]
async fn the_lease_ends_behind_a_cut_off_follower_of_3_8_4() {
    the_lease_ends_behind_a_cut_off_follower(ZooKeeperVersion::V3_8_4).await;
}

#[actix::test]
async fn the_lease_ends_behind_a_cut_off_follower_of_3_4_10() {
    the_lease_ends_behind_a_cut_off_follower(ZooKeeperVersion::V3_4_10).await;
}

/// Whether the server has the connection of a session.
fn has(server: &ZooKeeper, session: i64) -> bool {
    let its = format!("sid=0x{session:x},");
    server.command("cons").is_ok_and(|connections| connections.contains(&its))
}

/// A session that knows all servers and is connected to the leader, or not.
async fn connected_to(ensemble: &Ensemble, leader: bool, timeout: Duration) -> (Session, Registered) {
    let server = &ensemble.servers()[ensemble.leader().unwrap()];
    loop {
        let (session, _) = connected(&ensemble.connect(), timeout).await;
        let registered = session.ask(register()).await.unwrap();
        if has(server, registered.id) == leader {
            return (session, registered);
        }
        session.actor.send(Shutdown).await.unwrap();
    }
}

/// What befalls the server does not interrupt its session, which goes on with a peer.
async fn is_left_for_its_peers(ensemble: &Ensemble, its: (Session, Registered), befall: impl Fn(usize)) {
    let (session, registered) = its;
    let server = (0..3).find(|index| has(&ensemble.servers()[*index], registered.id)).unwrap();
    befall(server);
    let peers = || (0..3).filter(|index| *index != server).map(|index| &ensemble.servers()[index]);
    eventually("a peer has the session", async || {
        assert!(session.lease.is_live());
        peers().any(|peer| has(peer, registered.id)) && session.is_connected().await
    })
    .await;
    assert!(session.lease.is_live());
    assert_eq!(session.status().await.session, Some(registered.session));
    assert_eq!(session.ask(register()).await, Ok(registered), "our node outlived it");
}

#[actix::test]
async fn a_cut_off_follower_is_left_for_its_peers() {
    let cluster = three(ZooKeeperVersion::V3_8_4);
    let ensemble = cluster.ensemble();
    let its = connected_to(ensemble, false, SESSION_TIMEOUT).await;
    is_left_for_its_peers(ensemble, its, |server| ensemble.cut_off(server)).await;
}

#[actix::test]
async fn a_follower_that_stands_still_is_left_for_its_peers() {
    let cluster = three(ZooKeeperVersion::V3_8_4);
    let ensemble = cluster.ensemble();
    let its = connected_to(ensemble, false, SESSION_TIMEOUT).await;
    is_left_for_its_peers(ensemble, its, |server| ensemble.servers()[server].pause().unwrap()).await;
}

#[actix::test]
async fn a_leader_that_stands_still_is_left_for_its_peers() {
    let cluster = three(ZooKeeperVersion::V3_8_4);
    let ensemble = cluster.ensemble();
    // the followers need six seconds to notice
    let its = connected_to(ensemble, true, Duration::from_secs(20)).await;
    is_left_for_its_peers(ensemble, its, |server| ensemble.servers()[server].pause().unwrap()).await;
}

#[actix::test]
async fn a_leader_that_dies_costs_no_session_and_no_change() {
    let cluster = three(ZooKeeperVersion::V3_8_4);
    let ensemble = cluster.ensemble();
    let timeout = Duration::from_secs(20);
    let (mut watcher, epoch) = connected(&ensemble.connect(), timeout).await;
    let (writer, its) = connected(&ensemble.connect(), timeout).await;
    let registered = watcher.ask(register()).await.unwrap();
    let root = CreatePersistent { session: its, path: "/watched".to_owned(), data: Vec::new() };
    let child = CreatePersistent { path: "/watched/child".to_owned(), ..root.clone() };
    writer.ask(root).await.unwrap();
    watcher.ask(ReadChildren { path: "/watched".to_owned(), watch: true }).await.unwrap();
    ensemble.servers()[ensemble.leader().unwrap()].kill().unwrap();
    // its own, when the answer to an earlier try was lost
    let made = |answer| matches!(answer, Ok(()) | Err(ZkError::NodeExists(_)));
    eventually("a write passes", async || made(writer.ask(child.clone()).await)).await;
    watcher.until(&SessionEvent::ChildrenChanged { path: "/watched".to_owned() }).await;
    assert_eq!(watcher.status().await.session, Some(epoch));
    assert_eq!(watcher.ask(register()).await, Ok(registered), "our node outlived it");
}
