//! The session actor against a real ZooKeeper that stops, restarts, expires and refuses.
mod zk;

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_actors::lease::SessionEpoch;
use kafka_troupe_actors::zk_session::port::{ConnectSpec, ZkConnector, ZkEvent};
use kafka_troupe_actors::zk_session::{
    Claim, CreateEphemeral, CreatePersistent, ReadChildren, ReadData, Register, SessionConfig, SessionEvent,
    SessionState, Shutdown, WaitConnected, ZkError, ZooKeeperAsync,
};
use tokio::time::{Instant, timeout};
use zk::{PATIENCE, SESSION_TIMEOUT, Session, config, eventually, freeze, zookeeper};

fn register(path: &str) -> Register {
    Register { path: path.to_owned(), data: b"{}".to_vec() }
}

fn create(session: SessionEpoch, path: &str) -> CreatePersistent {
    CreatePersistent { session, path: path.to_owned(), data: Vec::new() }
}

fn children_changed(path: &str) -> SessionEvent {
    SessionEvent::ChildrenChanged { path: path.to_owned() }
}

#[actix::test]
async fn a_change_during_a_restart_of_zookeeper_is_told() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (mut watcher, epoch) = Session::connected(&connect).await;
    let registered = watcher.ask(register("/consumers/g/ids/a")).await.unwrap();
    for path in ["/still", "/grows"] {
        watcher.ask(create(epoch, path)).await.unwrap();
        watcher.ask(ReadChildren { path: path.to_owned(), watch: true }).await.unwrap();
        watcher.ask(ReadData { path: path.to_owned(), watch: true }).await.unwrap();
    }
    let frozen = freeze(&*watcher.stash.last());
    server.zookeeper().restart().unwrap();
    let (writer, its) = Session::connected(&connect).await;
    writer.ask(create(its, "/grows/child")).await.unwrap();
    drop(frozen);
    assert_eq!(watcher.event().await, SessionEvent::Suspended);
    assert_eq!(watcher.event().await, SessionEvent::Connected { session: epoch }, "the same session");
    assert_eq!(watcher.event().await, children_changed("/grows"), "and nothing else");
    // armed again, both the changed and the unchanged one
    writer.ask(create(its, "/still/child")).await.unwrap();
    assert_eq!(watcher.event().await, children_changed("/still"));
    writer.ask(create(its, "/grows/other")).await.unwrap();
    assert_eq!(watcher.event().await, children_changed("/grows"));
    assert_eq!(watcher.ask(register("/consumers/g/ids/a")).await, Ok(registered), "our node outlived it");
    assert_eq!(watcher.status().await.reconnects, 1);
}

#[actix::test]
async fn the_lease_ends_while_zookeeper_is_silent_and_opens_again_in_the_same_session() {
    let server = zookeeper();
    let (session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    assert!(session.lease.is_live());
    server.zookeeper().pause().unwrap();
    let paused = std::time::Instant::now();
    eventually("the lease ends", async || !session.lease.is_live()).await;
    // what was answered before the pause was sent before it
    let margin = Duration::from_millis(200);
    assert!(paused.elapsed() <= SESSION_TIMEOUT * 2 / 3 + margin, "{:?}", paused.elapsed());
    assert_eq!(session.lease.remaining(), Duration::ZERO);
    server.zookeeper().resume().unwrap();
    eventually("the lease lives", async || session.lease.is_live()).await;
    assert_eq!(session.status().await.session, Some(epoch));
}

#[actix::test]
async fn a_server_silent_for_a_whole_timeout_costs_the_session() {
    let server = zookeeper();
    let (mut session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    server.zookeeper().pause().unwrap();
    session.until(&SessionEvent::Expired { session: epoch }).await;
    assert!(!session.lease.is_live());
    let planned = CreateEphemeral { session: epoch, path: "/x".to_owned(), data: vec![] };
    assert!(matches!(session.ask(planned).await, Err(ZkError::SessionMoved { .. })));
    server.zookeeper().resume().unwrap();
    let next = SessionEpoch(epoch.0 + 1);
    session.until(&SessionEvent::Connected { session: next }).await;
    assert!(session.lease.is_live());
    let registered = session.ask(register("/consumers/g/ids/a")).await.unwrap();
    assert_eq!(registered.session, next);
}

/// Its data are lost: it knows neither our session nor any of our nodes.
#[actix::test]
async fn an_ensemble_that_forgot_us_gives_a_new_session_that_registers_anew() {
    let server = zookeeper();
    let (mut session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    session.ask(register("/consumers/g/ids/a")).await.unwrap();
    let members = || ReadChildren { path: "/consumers/g/ids".to_owned(), watch: true };
    session.ask(members()).await.unwrap();
    server.zookeeper().kill().unwrap();
    std::fs::remove_dir_all(server.zookeeper().data()).unwrap();
    server.zookeeper().restart().unwrap();
    session.until(&SessionEvent::Expired { session: epoch }).await;
    let next = SessionEpoch(epoch.0 + 1);
    session.until(&SessionEvent::Connected { session: next }).await;
    assert!(session.ask(members()).await.is_err(), "nothing is there");
    let registered = session.ask(register("/consumers/g/ids/a")).await.unwrap();
    assert_eq!((registered.session, session.ask(members()).await), (next, Ok(vec!["a".to_owned()])));
    assert!(session.lease.is_live());
}

#[actix::test]
async fn a_process_stopped_past_its_session_comes_back_with_a_new_one() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (mut session, epoch) = Session::connected(&connect).await;
    let old = session.ask(register("/consumers/g/ids/a")).await.unwrap();
    let watched = ReadChildren { path: "/consumers/g/ids".to_owned(), watch: true };
    session.ask(watched).await.unwrap();
    let frozen = freeze(&*session.stash.last());
    let (observer, _) = Session::connected(&connect).await;
    eventually("the ensemble ends the session", async || {
        observer.ask(ReadData { path: "/consumers/g/ids/a".to_owned(), watch: false }).await.is_err()
    })
    .await;
    assert!(!session.lease.is_live(), "closed before the ensemble gave our nodes away");
    drop(frozen);
    session.until(&SessionEvent::Expired { session: epoch }).await;
    let next = SessionEpoch(epoch.0 + 1);
    assert_eq!(session.event().await, SessionEvent::Connected { session: next });
    assert_eq!(session.event().await, children_changed("/consumers/g/ids"), "our own node is gone");
    let new = session.ask(register("/consumers/g/ids/a")).await.unwrap();
    assert_eq!(new.session, next);
    assert_ne!(new.id, old.id);
}

#[actix::test]
async fn an_expired_client_says_so_and_never_works_in_another_session() {
    let server = zookeeper();
    let mut config = config(&server.zookeeper_connect());
    config.operation_timeout = PATIENCE;
    let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
    let spec = ConnectSpec::new(SessionEpoch(1), &config);
    let client = ZooKeeperAsync.connect(spec, Arc::new(move |event| drop(events.send(event)))).await.unwrap();
    client.create("/gone", vec![], kafka_troupe_actors::zk_session::port::NodeMode::Ephemeral).await.unwrap();
    let frozen = freeze(&*client);
    let (observer, _) = Session::connected(&server.zookeeper_connect()).await;
    eventually("the ensemble ends the session", async || {
        observer.ask(ReadData { path: "/gone".to_owned(), watch: false }).await.is_err()
    })
    .await;
    // asked while the session is over but the client does not know it yet
    let late = client.create("/late", vec![], kafka_troupe_actors::zk_session::port::NodeMode::Persistent);
    drop(frozen);
    assert!(late.await.is_err());
    while told.recv().await.expect("expiry is told") != ZkEvent::Expired {}
    assert!(matches!(client.exists("/", false).await, Err(ZkError::SessionExpired(_))));
    let read = observer.ask(ReadData { path: "/late".to_owned(), watch: false }).await;
    assert!(matches!(read, Err(ZkError::NoNode(_))), "{read:?}");
}

#[actix::test]
async fn a_restarted_actor_takes_the_session_over() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (session, epoch) = Session::connected(&connect).await;
    let registered = session.ask(register("/consumers/g/ids/a")).await.unwrap();
    let Session { actor, lease, holder, stash, arbiter, .. } = session;
    drop(actor);
    arbiter.stop();
    arbiter.join().unwrap();
    let mut again = Session::over(config(&connect), holder, lease, stash).await;
    assert_eq!(again.event().await, SessionEvent::Connected { session: epoch });
    let claim = CreateEphemeral { session: epoch, path: "/owner".to_owned(), data: vec![] };
    assert_eq!(again.ask(claim).await, Ok(Claim::Created { owner: registered.id }));
    assert!(again.lease.is_live());
}

#[actix::test]
async fn a_session_that_ended_while_no_actor_ran_is_replaced() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (session, epoch) = Session::connected(&connect).await;
    let Session { actor, lease, holder, stash, arbiter, .. } = session;
    drop(actor);
    arbiter.stop();
    arbiter.join().unwrap();
    server.zookeeper().pause().unwrap();
    // the watchdog gives the session up, and nobody hears it
    eventually("the session is given up", async || holder.is_over()).await;
    assert!(!lease.is_live());
    server.zookeeper().resume().unwrap();
    let mut again = Session::over(config(&connect), holder, lease, stash).await;
    again.until(&SessionEvent::Connected { session: SessionEpoch(epoch.0 + 1) }).await;
    assert!(again.lease.is_live());
}

#[actix::test]
async fn an_id_is_refused_while_its_holder_lives_and_free_when_it_is_dead() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (first, _) = Session::connected(&connect).await;
    let holder = first.ask(register("/consumers/g/ids/c1")).await.unwrap();
    let (second, _) = Session::connected(&connect).await;
    let begun = Instant::now();
    let refused = second.ask(register("/consumers/g/ids/c1")).await.unwrap_err();
    assert!(begun.elapsed() < SESSION_TIMEOUT * 2, "{:?}", begun.elapsed());
    assert!(refused.to_string().contains(&format!("id in use by session 0x{:x}", holder.id)), "{refused}");
    // as kill -9 would: no word to the ensemble
    first.stash.last().end();
    let begun = Instant::now();
    let registered = second.ask(register("/consumers/g/ids/c1")).await.unwrap();
    assert_ne!(registered.id, holder.id);
    assert!(begun.elapsed() < SESSION_TIMEOUT * 3 / 2, "{:?}", begun.elapsed());
}

#[actix::test]
async fn shutdown_removes_our_nodes_at_once() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let (session, _) = Session::connected(&connect).await;
    session.ask(register("/consumers/g/ids/a")).await.unwrap();
    let (observer, _) = Session::connected(&connect).await;
    session.actor.send(Shutdown).await.unwrap();
    let took = eventually("the node is gone", async || {
        observer.ask(ReadData { path: "/consumers/g/ids/a".to_owned(), watch: false }).await.is_err()
    })
    .await;
    assert!(took < SESSION_TIMEOUT / 3, "{took:?}: closed, not expired");
    assert!(!session.lease.is_live());
    eventually("the actor stops", async || !session.actor.connected()).await;
}

#[actix::test]
async fn a_missing_chroot_is_named_and_not_made() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    let mut session = Session::start(config(&format!("{connect}/nowhere/kafka"))).await;
    let why = session.ask(WaitConnected).await.unwrap_err();
    assert!(why.to_string().contains("the chroot /nowhere/kafka does not exist"), "{why}");
    assert!(why.to_string().starts_with(&format!("zookeeper.connect={connect}/nowhere/kafka: ")), "{why}");
    assert_eq!(session.event().await, SessionEvent::Failed { why: why.clone() });
    assert_eq!(session.ask(create(SessionEpoch::default(), "/x")).await, Err(why));
    let (observer, epoch) = Session::connected(&connect).await;
    let root = ReadChildren { path: "/".to_owned(), watch: false };
    assert_eq!(observer.ask(root).await, Ok(vec!["zookeeper".to_owned()]));
    observer.ask(create(epoch, "/nowhere/kafka")).await.unwrap();
    let (inside, _) = Session::connected(&format!("{connect}/nowhere/kafka/")).await;
    inside.ask(register("/consumers/g/ids/a")).await.unwrap();
    let path = "/nowhere/kafka/consumers/g/ids".to_owned();
    assert_eq!(observer.ask(ReadChildren { path, watch: false }).await, Ok(vec!["a".to_owned()]));
}

#[actix::test]
async fn an_ensemble_out_of_reach_is_named_within_the_connection_timeout() {
    let closed = format!("127.0.0.1:{}", troupe_cluster::free_port().unwrap());
    // accepts and says nothing
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (silent, address.to_string())).unwrap();
    for connect in [closed.as_str(), &silent.1, "no-such-host.invalid:2181"] {
        let mut config = config(connect);
        config.connection_timeout = Duration::from_secs(2);
        let mut session = Session::start(config).await;
        let begun = Instant::now();
        let why = session.ask(WaitConnected).await.unwrap_err().to_string();
        assert!(begun.elapsed() < Duration::from_secs(4), "{connect}: {:?}", begun.elapsed());
        assert!(why.starts_with(&format!("zookeeper.connect={connect}: ")), "{why}");
        assert!(matches!(session.event().await, SessionEvent::Failed { .. }));
        assert_eq!(session.status().await.state, SessionState::Failed);
    }
}

#[actix::test]
async fn a_session_timeout_that_cannot_work_is_refused() {
    let mut config = config("127.0.0.1:1");
    config.session_timeout = Duration::from_millis(1400);
    let session = Session::start(config).await;
    let why = session.ask(WaitConnected).await.unwrap_err().to_string();
    assert_eq!(why, "zookeeper.session.timeout.ms: 1.4s is too short; at least 1.5s");
}

#[actix::test]
async fn the_smaller_of_the_asked_and_the_granted_timeout_counts() {
    let bounds = (Duration::from_secs(2), Duration::from_secs(5));
    let server =
        troupe_cluster::Cluster::builder().brokers(0).session_timeouts(bounds.0, bounds.1).start().unwrap();
    let mut config = SessionConfig::new(server.zookeeper_connect().parse().unwrap());
    config.session_timeout = PATIENCE;
    let session = Session::start(config).await;
    session.ask(WaitConnected).await.unwrap();
    assert_eq!(session.status().await.session_timeout, Some(bounds.1));
}

#[actix::test]
async fn a_session_let_go_ends_by_itself() {
    let server = zookeeper();
    let (session, _) = Session::connected(&server.zookeeper_connect()).await;
    let Session { actor, lease, holder, stash, .. } = session;
    drop((actor, holder));
    eventually("the lease closes", async || !lease.is_live()).await;
    let answer = timeout(PATIENCE, stash.last().exists("/", false)).await.unwrap();
    assert!(matches!(answer, Err(ZkError::SessionExpired(_))), "{answer:?}");
}
