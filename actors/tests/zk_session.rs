//! The session actor against a real ZooKeeper: what it reads, writes and watches.
mod zk;

use std::time::Duration;

use kafka_troupe_actors::lease::SessionEpoch;
use kafka_troupe_actors::zk_session::{
    Claim, CreateEphemeral, CreatePersistent, Delete, ReadChildren, ReadData, Register, SessionEvent,
    SetData, Shutdown, Unwatch, ZkError,
};
use tokio::time::timeout;
use zk::{PATIENCE, SESSION_TIMEOUT, Session, eventually, zookeeper};
use zookeeper_async::{Acl, CreateMode, Permission, ZooKeeper};

fn children(path: &str) -> ReadChildren {
    ReadChildren { path: path.to_owned(), watch: true }
}

fn data(path: &str) -> ReadData {
    ReadData { path: path.to_owned(), watch: true }
}

fn register(path: &str, data: &[u8]) -> Register {
    Register { path: path.to_owned(), data: data.to_vec() }
}

fn create(session: SessionEpoch, path: &str, data: &[u8]) -> CreatePersistent {
    CreatePersistent { session, path: path.to_owned(), data: data.to_vec() }
}

fn set(session: SessionEpoch, path: &str, data: &[u8], version: i32) -> SetData {
    SetData { session, path: path.to_owned(), data: data.to_vec(), version }
}

fn children_changed(path: &str) -> SessionEvent {
    SessionEvent::ChildrenChanged { path: path.to_owned() }
}

fn data_changed(path: &str) -> SessionEvent {
    SessionEvent::DataChanged { path: path.to_owned() }
}

#[actix::test]
async fn persistent_nodes_are_made_with_parents_and_set_by_version() {
    let server = zookeeper();
    let (session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    let path = "/consumers/g/offsets/t/0";
    assert!(matches!(session.ask(set(epoch, path, b"1", 0)).await, Err(ZkError::NoNode(_))));
    assert_eq!(session.ask(create(epoch, path, b"1")).await, Ok(()));
    assert_eq!(session.ask(set(epoch, path, b"2", 0)).await.unwrap().version, 1);
    let stale = session.ask(set(epoch, path, b"3", 0)).await.unwrap_err();
    assert!(matches!(&stale, ZkError::BadVersion(call) if call.path == path), "{stale}");
    let (data, stat) = session.ask(ReadData { path: path.to_owned(), watch: false }).await.unwrap();
    assert_eq!((data.as_slice(), stat.version, stat.ephemeral_owner), (b"2".as_slice(), 1, 0));
    assert!(matches!(session.ask(create(epoch, path, b"")).await, Err(ZkError::NodeExists(_))));
    let parent = Delete { session: epoch, path: "/consumers/g/offsets/t".to_owned(), version: None };
    assert!(matches!(session.ask(parent).await, Err(ZkError::NotEmpty(_))));
    let delete = Delete { session: epoch, path: path.to_owned(), version: None };
    assert_eq!(session.ask(delete.clone()).await, Ok(()));
    assert_eq!(session.ask(delete).await, Ok(()), "gone is as good");
}

#[actix::test]
async fn ephemeral_nodes_are_the_sessions_or_name_their_holder() {
    let server = zookeeper();
    let (first, epoch) = Session::connected(&server.zookeeper_connect()).await;
    let (mut second, other) = Session::connected(&server.zookeeper_connect()).await;
    let registered = first.ask(register("/consumers/g/ids/a", b"{}")).await.unwrap();
    assert_eq!(registered.session, epoch);
    let claim = |session, text: &str| CreateEphemeral {
        session,
        path: "/consumers/g/owners/t/0".to_owned(),
        data: text.as_bytes().to_vec(),
    };
    let created = Claim::Created { owner: registered.id };
    assert_eq!(first.ask(claim(epoch, "a-0")).await, Ok(created.clone()));
    assert_eq!(first.ask(claim(epoch, "a-0")).await, Ok(created), "it still is ours");
    match first.ask(claim(epoch, "a-1")).await.unwrap() {
        Claim::Exists { data, stat } => {
            assert_eq!((data, stat.ephemeral_owner), (b"a-0".to_vec(), registered.id));
        }
        Claim::Created { .. } => panic!("another thread's node is not this thread's"),
    }
    match second.ask(claim(other, "a-0")).await.unwrap() {
        Claim::Exists { stat, .. } => assert_eq!(stat.ephemeral_owner, registered.id),
        Claim::Created { .. } => panic!("another session's node, with our data, is not ours"),
    }
    // whoever waits for it is told, without having read it again
    let path = claim(epoch, "").path;
    assert_eq!(first.ask(Delete { session: epoch, path: path.clone(), version: None }).await, Ok(()));
    assert_eq!(second.event().await, SessionEvent::Deleted { path });
    let mut later = epoch;
    later.0 += 1;
    assert!(matches!(first.ask(claim(later, "a-0")).await, Err(ZkError::SessionMoved { .. })));
}

#[actix::test]
async fn watches_tell_every_change_until_unwatched() {
    let server = zookeeper();
    let (mut watcher, _) = Session::connected(&server.zookeeper_connect()).await;
    let (writer, epoch) = Session::connected(&server.zookeeper_connect()).await;
    // what does not exist yet is watched all the same
    assert!(matches!(watcher.ask(children("/t")).await, Err(ZkError::NoNode(_))));
    assert!(matches!(watcher.ask(data("/t")).await, Err(ZkError::NoNode(_))));
    writer.ask(create(epoch, "/t", b"1")).await.unwrap();
    assert_eq!(watcher.event().await, children_changed("/t"));
    assert_eq!(watcher.event().await, data_changed("/t"));
    assert_eq!(watcher.ask(children("/t")).await, Ok(vec![]));
    assert_eq!(watcher.ask(data("/t")).await.unwrap().0, b"1");
    writer.ask(create(epoch, "/t/b", b"")).await.unwrap();
    assert_eq!(watcher.event().await, children_changed("/t"));
    writer.ask(create(epoch, "/t/a", b"")).await.unwrap();
    assert_eq!(watcher.ask(children("/t")).await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    writer.ask(set(epoch, "/t", b"2", 0)).await.unwrap();
    assert_eq!(watcher.event().await, data_changed("/t"));
    watcher.actor.send(Unwatch { path: "/t".to_owned() }).await.unwrap();
    assert_eq!(
        watcher.ask(data("/u")).await.unwrap_err().to_string(),
        "zookeeper get data of /u: no such node"
    );
    writer.ask(create(epoch, "/t/c", b"")).await.unwrap();
    writer.ask(create(epoch, "/u", b"")).await.unwrap();
    assert_eq!(watcher.event().await, data_changed("/u"), "nothing more of /t");
}

#[actix::test]
async fn the_heartbeat_changes_no_version_and_fires_no_watch() {
    let server = zookeeper();
    let (mut session, _) = Session::connected(&server.zookeeper_connect()).await;
    let (mut other, epoch) = Session::connected(&server.zookeeper_connect()).await;
    let path = "/consumers/g/ids/a";
    let registered = session.ask(register(path, b"{}")).await.unwrap();
    other.ask(data(path)).await.unwrap();
    session.ask(data(path)).await.unwrap();
    // several heartbeats long nothing is told
    assert!(timeout(SESSION_TIMEOUT, session.events.recv()).await.is_err());
    assert!(other.events.try_recv().is_err());
    assert!(session.lease.remaining() > SESSION_TIMEOUT / 3, "heartbeats were answered");
    let (record, stat) = other.ask(data(path)).await.unwrap();
    assert_eq!((record.as_slice(), stat.version, stat.ephemeral_owner), (b"{}".as_slice(), 0, registered.id));
    assert_eq!(stat.czxid, stat.mzxid);
    // and it notices when the node is gone
    other.ask(Delete { session: epoch, path: path.to_owned(), version: None }).await.unwrap();
    session.until(&SessionEvent::RegistrationMissing).await;
    session.ask(register(path, b"{}")).await.unwrap();
}

#[actix::test]
async fn the_zookeeper_of_the_old_consumers_time_serves_as_well() {
    let version = troupe_cluster::ZooKeeperVersion::V3_4_10;
    let server = troupe_cluster::Cluster::builder().brokers(0).zookeeper(version).start().unwrap();
    let (mut session, epoch) = Session::connected(&server.zookeeper_connect()).await;
    let registered = session.ask(register("/consumers/g/ids/a", b"{}")).await.unwrap();
    let claim = CreateEphemeral { session: epoch, path: "/consumers/g/owners/t/0".to_owned(), data: vec![] };
    assert_eq!(session.ask(claim).await, Ok(Claim::Created { owner: registered.id }));
    session.ask(children("/consumers/g/ids")).await.unwrap();
    server.zookeeper().restart().unwrap();
    session.until(&SessionEvent::Connected { session: epoch }).await;
    let (other, _) = Session::connected(&server.zookeeper_connect()).await;
    other.ask(register("/consumers/g/ids/b", b"{}")).await.unwrap();
    assert_eq!(session.event().await, children_changed("/consumers/g/ids"));
    assert!(session.lease.is_live());
    other.actor.send(Shutdown).await.unwrap();
    eventually("the other's node goes", async || {
        session.ask(children("/consumers/g/ids")).await == Ok(vec!["a".to_owned()])
    })
    .await;
}

/// Gives everyone `rights` on `path`, and creates it if it is not there.
async fn restrict(connect: &str, path: &str, rights: Permission) {
    let watcher = |_| {};
    let pause = Duration::from_millis(50);
    let admin = ZooKeeper::connect_with_retry_time(connect, PATIENCE, watcher, pause).await.unwrap();
    if admin.exists(path, false).await.unwrap().is_none() {
        admin.create(path, vec![], Acl::open_unsafe().clone(), CreateMode::Persistent).await.unwrap();
    }
    admin.set_acl(path, vec![Acl::new(rights, "world", "anyone")], None).await.unwrap();
    admin.close().await.unwrap();
}

#[actix::test]
async fn rights_are_needed_only_where_something_is_made() {
    let server = zookeeper();
    let connect = server.zookeeper_connect();
    restrict(&connect, "/consumers", Permission::ALL).await;
    restrict(&connect, "/consumers/ours", Permission::ALL).await;
    restrict(&connect, "/consumers/theirs", Permission::READ).await;
    restrict(&connect, "/consumers", Permission::READ).await;
    restrict(&connect, "/", Permission::READ).await;
    // the heartbeat is answered although it may not write to the root
    let (session, _) = Session::connected(&connect).await;
    session.ask(register("/consumers/ours/ids/a", b"{}")).await.unwrap();
    let refused = session.ask(register("/consumers/theirs/ids/a", b"{}")).await.unwrap_err();
    assert!(matches!(&refused, ZkError::NoAuth(call) if call.path == "/consumers/theirs/ids"), "{refused}");
    assert!(session.lease.is_live());
}
