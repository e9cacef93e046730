//! What every client behind the port must do alike: the library's adapter on a real server, and the one in memory.
//! Then the session actor over the one in memory, where a test steers what happens when.
mod zk;

use std::sync::Arc;
use std::time::Instant;

use actix::prelude::*;
use kafka_troupe_actors::lease::{Lease, SessionEpoch};
use kafka_troupe_actors::testkit::MemoryZooKeeper;
use kafka_troupe_actors::zk_session::port::{
    ConnectSpec, NodeChange, NodeMode, ZkClient, ZkConnector, ZkEvent,
};
use kafka_troupe_actors::zk_session::{
    Claim, ClientHolder, CreateEphemeral, CreatePersistent, Delete, ReadChildren, Register, SessionEvent,
    SetData, Shutdown, WaitConnected, ZkError, ZkSession, ZooKeeperAsync,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use zk::{PATIENCE, SESSION_TIMEOUT, Session, config, zookeeper};

struct Client {
    client: Arc<dyn ZkClient>,
    events: UnboundedReceiver<ZkEvent>,
}

impl Client {
    async fn open(connector: &dyn ZkConnector, connect: &str) -> Self {
        let (told, events) = unbounded_channel();
        let spec = ConnectSpec::new(SessionEpoch(1), &config(connect));
        let client = connector.connect(spec, Arc::new(move |event| drop(told.send(event)))).await.unwrap();
        let mut opened = Self { client, events };
        assert_eq!(opened.event().await, ZkEvent::Connected);
        opened
    }

    async fn event(&mut self) -> ZkEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("an event in time").expect("the client lives")
    }

    async fn fired(&mut self, path: &str, change: NodeChange) {
        assert_eq!(self.event().await, ZkEvent::Fired { path: path.to_owned(), change });
    }
}

#[actix::test]
async fn the_library_conforms() {
    let server = zookeeper();
    conforms(&ZooKeeperAsync, &server.zookeeper_connect()).await;
}

#[actix::test]
async fn the_one_in_memory_conforms() {
    conforms(&MemoryZooKeeper::default(), "memory").await;
}

async fn conforms(connector: &dyn ZkConnector, connect: &str) {
    let maker = Client::open(connector, connect).await;
    maker.client.create("/chroot", vec![], NodeMode::Persistent).await.unwrap();
    let rooted = format!("{connect}/chroot");
    let (mut us, mut them) = (Client::open(connector, &rooted).await, Client::open(connector, &rooted).await);
    nodes_are_made_set_and_deleted(&*us.client).await;
    watches_fire_once(&mut us, &mut them).await;
    heartbeats_leave_no_trace(&mut us, &mut them).await;
    ephemeral_nodes_go_with_their_session(&mut us, them).await;
    a_client_that_ends_without_a_word_expires(&mut us, Client::open(connector, &rooted).await).await;
    us.client.end();
    assert!(matches!(us.client.exists("/", false).await, Err(ZkError::SessionExpired(_))));
    let missing = ConnectSpec::new(SessionEpoch(1), &config(&format!("{connect}/nowhere")));
    let refused = connector.connect(missing, Arc::new(|_| {})).await.map(drop).unwrap_err();
    assert!(matches!(refused, ZkError::NoChroot { .. }), "{refused}");
    assert_eq!(maker.client.children("/chroot", false).await, Ok(vec!["parent".to_owned()]));
}

async fn nodes_are_made_set_and_deleted(client: &dyn ZkClient) {
    let make = |path| client.create(path, b"1".to_vec(), NodeMode::Persistent);
    assert!(matches!(make("/parent/child").await, Err(ZkError::NoNode(_))));
    make("/parent").await.unwrap();
    make("/parent/b").await.unwrap();
    make("/parent/a").await.unwrap();
    assert!(matches!(make("/parent").await, Err(ZkError::NodeExists(_))));
    assert_eq!(client.children("/parent", false).await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert!(matches!(client.children("/none", true).await, Err(ZkError::NoNode(_))));
    let set = |path, version| client.set_data(path, b"2".to_vec(), version);
    assert!(matches!(set("/parent", Some(1)).await, Err(ZkError::BadVersion(_))));
    assert!(matches!(set("/none", None).await, Err(ZkError::NoNode(_))));
    assert_eq!(set("/parent", Some(0)).await.unwrap().version, 1);
    assert_eq!(set("/parent", None).await.unwrap().version, 2);
    let (data, stat) = client.data("/parent", false).await.unwrap();
    assert_eq!((data.as_slice(), stat.version, stat.ephemeral_owner), (b"2".as_slice(), 2, 0));
    assert!(stat.mzxid > stat.czxid);
    assert_eq!(client.exists("/parent", false).await.unwrap().map(|stat| stat.czxid), Some(stat.czxid));
    assert_eq!(client.exists("/none", false).await, Ok(None));
    assert!(matches!(client.delete("/parent", None).await, Err(ZkError::NotEmpty(_))));
    assert!(matches!(client.delete("/parent/a", Some(1)).await, Err(ZkError::BadVersion(_))));
    client.delete("/parent/a", Some(0)).await.unwrap();
    assert!(matches!(client.delete("/parent/a", None).await, Err(ZkError::NoNode(_))));
    client.delete("/parent/b", None).await.unwrap();
}

async fn watches_fire_once(us: &mut Client, them: &mut Client) {
    let make = |path| them.client.create(path, vec![], NodeMode::Persistent);
    us.client.exists("/parent/x", true).await.unwrap();
    us.client.children("/parent", true).await.unwrap();
    make("/parent/x").await.unwrap();
    us.fired("/parent/x", NodeChange::Created).await;
    us.fired("/parent", NodeChange::Children).await;
    // not armed any more; data does not concern a watch on children
    make("/parent/y").await.unwrap();
    us.client.data("/parent", true).await.unwrap();
    us.client.children("/parent", true).await.unwrap();
    us.client.children("/parent/x", true).await.unwrap();
    them.client.set_data("/parent", vec![], None).await.unwrap();
    us.fired("/parent", NodeChange::Data).await;
    them.client.delete("/parent/x", None).await.unwrap();
    us.fired("/parent/x", NodeChange::Deleted).await;
    us.fired("/parent", NodeChange::Children).await;
    them.client.delete("/parent/y", None).await.unwrap();
}

async fn heartbeats_leave_no_trace(us: &mut Client, them: &mut Client) {
    us.client.data("/parent", true).await.unwrap();
    let before = us.client.exists("/parent", true).await.unwrap();
    assert!(matches!(them.client.beat("/parent").await, Err(ZkError::BadVersion(_))));
    assert!(matches!(them.client.beat("/").await, Err(ZkError::BadVersion(_))));
    assert!(matches!(them.client.beat("/none").await, Err(ZkError::NoNode(_))));
    assert_eq!(us.client.exists("/parent", true).await.unwrap(), before);
    // the next event is that of a real change
    them.client.set_data("/parent", vec![], None).await.unwrap();
    us.fired("/parent", NodeChange::Data).await;
}

async fn ephemeral_nodes_go_with_their_session(us: &mut Client, them: Client) {
    them.client.create("/parent/theirs", vec![], NodeMode::Ephemeral).await.unwrap();
    us.client.create("/parent/ours", vec![], NodeMode::Ephemeral).await.unwrap();
    let owner = async |path| us.client.data(path, false).await.unwrap().1.ephemeral_owner;
    assert_ne!(owner("/parent/theirs").await, 0);
    assert_ne!(owner("/parent/theirs").await, owner("/parent/ours").await);
    us.client.children("/parent", true).await.unwrap();
    them.client.close().await.unwrap();
    us.fired("/parent", NodeChange::Children).await;
    assert_eq!(us.client.children("/parent", false).await, Ok(vec!["ours".to_owned()]));
    them.client.end();
}

async fn a_client_that_ends_without_a_word_expires(us: &mut Client, silent: Client) {
    silent.client.create("/parent/silent", vec![], NodeMode::Ephemeral).await.unwrap();
    us.client.data("/parent/silent", true).await.unwrap();
    let begun = Instant::now();
    silent.client.end();
    us.fired("/parent/silent", NodeChange::Deleted).await;
    // a server heard of it last some time before its end
    assert!(begun.elapsed() > SESSION_TIMEOUT / 3, "it was gone after {:?}", begun.elapsed());
}

#[actix::test]
async fn a_server_that_lags_answers_reads_from_what_it_has_and_writes_when_it_has_caught_up() {
    let ensemble = MemoryZooKeeper::default();
    let (us, them) = (Client::open(&ensemble, "memory").await, Client::open(&ensemble, "memory").await);
    let (client, mut events) = (us.client, us.events);
    client.create("/a", b"1".to_vec(), NodeMode::Persistent).await.unwrap();
    ensemble.lag(ensemble.sessions()[0]);
    them.client.set_data("/a", b"2".to_vec(), None).await.unwrap();
    them.client.create("/a/b", vec![], NodeMode::Persistent).await.unwrap();
    assert_eq!(client.data("/a", true).await.unwrap().0, b"1");
    assert_eq!(client.children("/a", true).await.unwrap(), Vec::<String>::new());
    assert_eq!(client.exists("/a/b", true).await, Ok(None));
    assert!(events.try_recv().is_err());
    let (beat, read) = (client.beat("/a"), client.data("/a", false));
    let (caught_up, (beat, read)) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            ensemble.catch_up(ensemble.sessions()[0]);
        },
        async {
            let beat = beat.await;
            // what it missed is told before the answer
            assert_eq!(
                std::iter::from_fn(|| events.try_recv().ok()).collect::<Vec<_>>(),
                [("/a", NodeChange::Data), ("/a/b", NodeChange::Created), ("/a", NodeChange::Children)]
                    .map(|(path, change)| ZkEvent::Fired { path: path.to_owned(), change })
            );
            (beat, read.await)
        }
    );
    let () = caught_up;
    assert!(matches!(beat, Err(ZkError::BadVersion(_))));
    assert_eq!(read.unwrap().0, b"2");
}

#[actix::test]
async fn a_server_that_is_cut_off_does_not_keep_the_session_alive() {
    let ensemble = MemoryZooKeeper::default();
    let (mut us, them) = (Client::open(&ensemble, "memory").await, Client::open(&ensemble, "memory").await);
    us.client.create("/ours", vec![], NodeMode::Ephemeral).await.unwrap();
    let id = ensemble.sessions()[0];
    ensemble.cut_off(id);
    them.client.exists("/ours", true).await.unwrap();
    let mut them = them;
    them.fired("/ours", NodeChange::Deleted).await;
    assert!(us.client.exists("/ours", false).await.unwrap().is_some(), "it knows nothing of that");
    ensemble.catch_up(id);
    assert_eq!(us.event().await, ZkEvent::Expired);
    assert!(matches!(us.client.exists("/ours", false).await, Err(ZkError::SessionExpired(_))));
}

const IDS: &str = "/consumers/g/ids/a";
const OWNER: &str = "/consumers/g/owners/t/0";

async fn over(ensemble: &MemoryZooKeeper) -> Session<MemoryZooKeeper> {
    let lease = Arc::new(Lease::new());
    let holder = ClientHolder::new(lease.clone());
    let mut session = Session::over(config("memory"), holder, lease, ensemble.clone()).await;
    session.ask(WaitConnected).await.unwrap();
    assert!(matches!(session.event().await, SessionEvent::Connected { .. }));
    session
}

fn register() -> Register {
    Register { path: IDS.to_owned(), data: b"{}".to_vec() }
}

#[actix::test]
async fn lost_replies_are_settled_whichever_it_is() {
    let ensemble = MemoryZooKeeper::default();
    let mut session = over(&ensemble).await;
    let id = ensemble.sessions()[0];
    ensemble.lose_reply(id);
    let registered = session.ask(register()).await.unwrap();
    assert_eq!(registered.id, id);
    let claim =
        || CreateEphemeral { session: registered.session, path: OWNER.to_owned(), data: b"a-0".to_vec() };
    ensemble.lose_reply(id);
    assert_eq!(session.ask(claim()).await, Ok(Claim::Created { owner: id }));
    ensemble.lose_reply(id);
    assert_eq!(session.ask(claim()).await, Ok(Claim::Created { owner: id }));
    ensemble.lose_reply(id);
    assert_eq!(
        session.ask(Delete { session: registered.session, path: OWNER.to_owned(), version: None }).await,
        Ok(())
    );
    // a node that was in the way is watched
    assert_eq!(session.event().await, SessionEvent::Deleted { path: OWNER.to_owned() });
    assert!(session.events.try_recv().is_err());
}

#[actix::test]
async fn a_new_session_takes_nothing_over() {
    let ensemble = MemoryZooKeeper::default();
    let mut session = over(&ensemble).await;
    let old = session.ask(register()).await.unwrap();
    session.ask(ReadChildren { path: "/consumers/g/ids".to_owned(), watch: true }).await.unwrap();
    ensemble.expire(old.id);
    assert!(!session.lease.is_live(), "at once, before any mailbox");
    // the watch of the old session may have told of our own node before the end
    session.until(&SessionEvent::Expired { session: old.session }).await;
    let next = SessionEpoch(old.session.0 + 1);
    assert_eq!(session.event().await, SessionEvent::Connected { session: next });
    // what was planned for a node of then could meet another's, at the same version
    let (session_of_then, path) = (old.session, OWNER.to_owned());
    let planned = CreateEphemeral { session: session_of_then, path: path.clone(), data: vec![] };
    assert!(matches!(session.ask(planned).await, Err(ZkError::SessionMoved { .. })));
    let planned = CreatePersistent { session: session_of_then, path: path.clone(), data: vec![] };
    assert!(matches!(session.ask(planned).await, Err(ZkError::SessionMoved { .. })));
    ensemble.put(OWNER, b"another's");
    let planned = SetData { session: session_of_then, path: path.clone(), data: vec![], version: 0 };
    assert!(matches!(session.ask(planned).await, Err(ZkError::SessionMoved { .. })));
    let planned = Delete { session: session_of_then, path, version: Some(0) };
    assert!(matches!(session.ask(planned).await, Err(ZkError::SessionMoved { .. })));
    assert_eq!(ensemble.node(OWNER).unwrap().data, b"another's");
    let new = session.ask(register()).await.unwrap();
    assert_eq!((new.session, ensemble.sessions()), (next, vec![new.id]));
}

#[actix::test]
async fn a_change_while_suspended_is_told_once_connected() {
    let ensemble = MemoryZooKeeper::default();
    let mut session = over(&ensemble).await;
    let registered = session.ask(register()).await.unwrap();
    session.ask(ReadChildren { path: "/consumers/g/ids".to_owned(), watch: true }).await.unwrap();
    ensemble.suspend(registered.id);
    assert_eq!(session.event().await, SessionEvent::Suspended);
    let other = over(&ensemble).await;
    other.ask(Register { path: "/consumers/g/ids/b".to_owned(), data: vec![] }).await.unwrap();
    ensemble.reconnect(registered.id);
    assert_eq!(session.event().await, SessionEvent::Connected { session: registered.session });
    assert_eq!(session.event().await, SessionEvent::ChildrenChanged { path: "/consumers/g/ids".to_owned() });
    other.actor.send(Shutdown).await.unwrap();
    assert_eq!(ensemble.sessions(), [registered.id]);
    assert_eq!(session.event().await, SessionEvent::ChildrenChanged { path: "/consumers/g/ids".to_owned() });
}

#[actix::test]
async fn whoever_subscribes_after_a_restart_is_told_of_each_watch() {
    let ensemble = MemoryZooKeeper::default();
    let first = over(&ensemble).await;
    let epoch = first.ask(WaitConnected).await.unwrap();
    let read = ReadChildren { path: "/t".to_owned(), watch: true };
    assert!(matches!(first.ask(read).await, Err(ZkError::NoNode(_))));
    // what the first actor was told or had read may not have reached this one
    let (config, holder, lease) = (config("memory"), first.holder.clone(), first.lease.clone());
    let mut second = Session::over(config, holder, lease, first.stash.clone()).await;
    assert_eq!(second.event().await, SessionEvent::Connected { session: epoch });
    assert_eq!(second.event().await, SessionEvent::ChildrenChanged { path: "/t".to_owned() });
}

#[actix::test]
async fn a_registration_that_another_replaced_is_missed() {
    let ensemble = MemoryZooKeeper::default();
    let mut session = over(&ensemble).await;
    let registered = session.ask(register()).await.unwrap();
    let other = Client::open(&ensemble, "memory").await;
    ensemble.suspend(registered.id);
    assert_eq!(session.event().await, SessionEvent::Suspended);
    other.client.delete(IDS, None).await.unwrap();
    other.client.create(IDS, vec![], NodeMode::Ephemeral).await.unwrap();
    ensemble.reconnect(registered.id);
    assert_eq!(session.event().await, SessionEvent::Connected { session: registered.session });
    assert_eq!(session.event().await, SessionEvent::RegistrationMissing);
    assert!(Addr::<ZkSession>::connected(&session.actor));
}
