//! Deleting groups, while members come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kafka_troupe_actors::admin::AdminError;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

use super::admin;

const NODES: [&str; 6] = ["ids", "owners/t", "owners/u", "offsets/t/0", "offsets/u/0", "topics/t"];

fn group() -> MemoryZooKeeper {
    let zookeeper = MemoryZooKeeper::default();
    for node in NODES {
        zookeeper.put(&format!("/consumers/g/{node}"), b"1");
    }
    zookeeper.put("/consumers/other/offsets/t/0", b"1");
    zookeeper
}

fn joins(zookeeper: &MemoryZooKeeper) {
    zookeeper.put("/consumers/g/ids", b"");
    zookeeper.put_ephemeral("/consumers/g/ids/g_m", b"{}", 77);
}

#[actix::test]
async fn an_idle_group_goes_whole_and_no_other() {
    let zookeeper = group();
    let admin = admin(&zookeeper).await;
    admin.delete_group("g").await.unwrap();
    assert_eq!(zookeeper.children("/consumers"), ["other"]);
    assert!(zookeeper.node("/consumers/other/offsets/t/0").is_some());
    let gone = admin.delete_group("g").await.unwrap_err();
    assert!(matches!(gone, AdminError::NoSuchGroup { .. }), "{gone}");
}

#[actix::test]
async fn an_active_group_is_refused_with_who_is_there_and_stays_whole() {
    let zookeeper = group();
    joins(&zookeeper);
    let admin = admin(&zookeeper).await;
    for refused in [admin.delete_group("g").await, admin.delete_group_topic("g", "t").await] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, AdminError::Active { .. }) && refused.to_string().contains("g_m"),
            "{refused}"
        );
    }
    assert!(NODES.iter().all(|node| zookeeper.node(&format!("/consumers/g/{node}")).is_some()));
}

/// What `then` does to the group once `path` is gone.
fn once_gone(
    zookeeper: &MemoryZooKeeper,
    path: &'static str,
    then: impl Fn() + Send + Sync + 'static,
) -> Arc<AtomicBool> {
    let seen = Arc::new(AtomicBool::new(false));
    let told = seen.clone();
    let (told_by, mut heard) = tokio::sync::mpsc::unbounded_channel();
    zookeeper.observe(move |at, node| {
        if at == path && node.is_none() && !told.swap(true, Ordering::AcqRel) {
            let _ = told_by.send(());
        }
    });
    actix::spawn(async move {
        if heard.recv().await.is_some() {
            then();
        }
    });
    seen
}

#[actix::test]
async fn what_a_member_writes_that_comes_meanwhile_is_never_deleted() {
    let zookeeper = group();
    let comes = zookeeper.clone();
    let seen = once_gone(&zookeeper, "/consumers/g/ids", move || {
        joins(&comes);
        comes.put("/consumers/g/offsets/t/0", b"5");
    });
    let admin = admin(&zookeeper).await;
    let refused = admin.delete_group("g").await.unwrap_err();
    assert!(seen.load(Ordering::Acquire) && matches!(refused, AdminError::Used { .. }), "{refused}");
    assert_eq!(zookeeper.node("/consumers/g/offsets/t/0").map(|node| node.data), Some(b"5".to_vec()));
    assert!(zookeeper.node("/consumers/g/ids/g_m").is_some());
}

#[actix::test]
async fn one_topic_goes_and_with_the_last_one_the_group() {
    let zookeeper = group();
    let admin = admin(&zookeeper).await;
    admin.delete_group_topic("g", "t").await.unwrap();
    assert_eq!(zookeeper.children("/consumers/g/offsets"), ["u"]);
    assert_eq!(zookeeper.children("/consumers/g/owners"), ["u"]);
    assert!(zookeeper.children("/consumers/g/topics").is_empty());
    admin.delete_group_topic("g", "u").await.unwrap();
    assert_eq!(zookeeper.children("/consumers"), ["other"]);
}

#[actix::test]
async fn a_topic_of_which_the_group_has_nothing_deletes_nothing() {
    let zookeeper = group();
    zookeeper.put("/consumers/bare/ids", b"");
    zookeeper.put("/consumers/bare/settings", b"kept");
    let admin = admin(&zookeeper).await;
    for group in ["g", "bare"] {
        let refused = admin.delete_group_topic(group, "tpyo").await.unwrap_err();
        assert!(matches!(refused, AdminError::NothingOfTopic { .. }), "{refused}");
        assert_eq!(refused.to_string(), format!("the group {group:?} has nothing of topic tpyo"));
    }
    assert!(NODES.iter().all(|node| zookeeper.node(&format!("/consumers/g/{node}")).is_some()));
    assert!(zookeeper.node("/consumers/bare/settings").is_some(), "a group without topics stays");
}
