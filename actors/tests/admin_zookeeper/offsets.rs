//! Reading and writing offsets of a group.

use std::time::Duration;

use kafka_troupe_actors::admin::AdminError;
use kafka_troupe_actors::testkit::{MemoryZooKeeper, clock::on_paused_clock};

use super::{admin, key};

fn stored(zookeeper: &MemoryZooKeeper, partition: &str) -> Option<String> {
    let node = zookeeper.node(&format!("/consumers/g/offsets/{partition}"))?;
    Some(String::from_utf8_lossy(&node.data).into_owned())
}

#[actix::test]
async fn offsets_are_told_by_topic_and_number_with_what_cannot_be_read() {
    let zookeeper = MemoryZooKeeper::default();
    for (node, data) in [("t/10", "7"), ("t/2", "-1"), ("s/0", "1.5"), ("t/leader", "1")] {
        zookeeper.put(&format!("/consumers/g/offsets/{node}"), data.as_bytes());
    }
    zookeeper.put("/consumers/g/offsets/t/10", b"8");
    let admin = admin(&zookeeper).await;
    let told = admin.offsets("g").await.unwrap();
    let keys: Vec<_> = told.iter().map(|it| (it.key.to_string(), it.version)).collect();
    assert_eq!(keys, [("s-0".to_owned(), 0), ("t-2".to_owned(), 0), ("t-10".to_owned(), 1)]);
    assert!(told[0].offset.as_ref().is_err_and(|why| why.contains("/consumers/g/offsets/s/0")));
    assert_eq!((told[1].offset.clone(), told[2].offset.clone()), (Ok(-1), Ok(8)));
    assert_eq!(admin.offsets("nobody").await.unwrap(), []);
}

#[actix::test]
async fn an_offset_is_set_only_over_the_version_that_was_read() {
    let zookeeper = MemoryZooKeeper::default();
    let admin = admin(&zookeeper).await;
    let t0 = key("t", 0);
    admin.set_offset("g", &t0, 5, None).await.unwrap();
    assert_eq!(stored(&zookeeper, "t/0").as_deref(), Some("5"));
    let again = admin.set_offset("g", &t0, 6, None).await.unwrap_err();
    assert!(matches!(again, AdminError::Changed { .. }), "{again}");
    admin.set_offset("g", &t0, 3, Some(0)).await.unwrap();
    let late = admin.set_offset("g", &t0, 9, Some(0)).await.unwrap_err();
    assert!(late.to_string().contains("t-0 in group \"g\" has changed"), "{late}");
    let gone = admin.set_offset("g", &key("t", 1), 9, Some(0)).await.unwrap_err();
    assert!(matches!(gone, AdminError::Changed { .. }), "{gone}");
    assert_eq!((stored(&zookeeper, "t/0").as_deref(), stored(&zookeeper, "t/1")), (Some("3"), None));
}

#[actix::test]
async fn an_import_writes_whatever_is_there() {
    let zookeeper = MemoryZooKeeper::default();
    zookeeper.put("/consumers/g/offsets/t/0", b"nonsense");
    let admin = admin(&zookeeper).await;
    admin.put_offset("g", &key("t", 0), 4).await.unwrap();
    admin.put_offset("g", &key("t", 1), 0).await.unwrap();
    assert_eq!(
        (stored(&zookeeper, "t/0").as_deref(), stored(&zookeeper, "t/1").as_deref()),
        (Some("4"), Some("0"))
    );
}

#[test]
fn a_lost_connection_is_waited_for() {
    on_paused_clock(async {
        let zookeeper = MemoryZooKeeper::default();
        let admin = admin(&zookeeper).await;
        let [session] = zookeeper.sessions()[..] else { panic!("one session") };
        zookeeper.suspend(session);
        let t0 = key("t", 0);
        let (wrote, ()) = futures_util::join!(admin.put_offset("g", &t0, 4), async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            assert_eq!(stored(&zookeeper, "t/0"), None);
            zookeeper.reconnect(session);
        });
        wrote.expect("it is written when the connection is back");
        assert_eq!(stored(&zookeeper, "t/0").as_deref(), Some("4"));
    });
}
