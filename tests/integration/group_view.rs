//! The view of a whole group, a Scala member and what others left behind among it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kafka_troupe::{ConsumerHandle, ConsumerSystem, GroupView};
use troupe_cluster::KafkaVersion;
use zookeeper_async::CreateMode;

use crate::support::by_hand::ByHand;
use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::placed;
use crate::support::scala::Scala;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;

async fn view_with(handle: &ConsumerHandle, is_it: impl Fn(&GroupView) -> bool) -> GroupView {
    until_async("such a view", async || match handle.group().await {
        Ok(view) if is_it(&view) => Ok(view),
        other => Err(format!("{other:#?}")),
    })
    .await
}

#[test]
fn a_mixed_group_is_shown_whole_and_what_is_left_of_others_is_flagged() {
    let (name, cluster) = ("shown", shared(KafkaVersion::V1_1_1));
    let group = Group::new(cluster, name, 4);
    let partitions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(4));
    cluster.produce(name, placed(10, partitions)()).unwrap();
    let scala = Scala::join(cluster, KafkaVersion::V1_1_1, name, "a", "auto.offset.reset=smallest");
    group.wait_for_owners(&["a-0"; 4]);
    run(async {
        let log = Log::default();
        let ours = ConsumerSystem::builder(config(cluster, name, "b", &[]));
        let ours = ours.handle(name, 1, Recorder::factory("b", &log, |_| Ok(()))).start().await.unwrap();
        wait_for_owners(cluster, name, name, &["a-0", "a-0", "b-0", "b-0"]).await;
        let by_hand = ByHand::connect(cluster, name).await;
        by_hand.own("forgotten", 3, "shown_ghost-0", CreateMode::Persistent).await;
        let view = view_with(&ours, |view| {
            let all_read =
                view.partitions.iter().filter(|it| it.exists == Some(true)).all(|it| it.lag == Some(0));
            view.partitions.len() == 5 && view.errors.is_empty() && all_read
        })
        .await;
        check(&view, cluster.log_end_offsets(name).unwrap(), &ours).await;
        by_hand.close().await;
        ours.shutdown().await;
    });
    scala.leave();
}

async fn check(view: &GroupView, ends: Vec<i64>, ours: &ConsumerHandle) {
    let [a, b] = &view.members[..] else { panic!("{view:#?}") };
    assert_eq!((a.id.as_str(), a.is_own, a.owned, a.streams), ("shown_a", false, 2, 1));
    assert_eq!(
        (a.pattern.as_str(), a.subscription.as_str()),
        ("white_list", "shown"),
        "as the console registers"
    );
    assert_eq!((b.id.as_str(), b.is_own, b.owned), ("shown_b", true, 2));
    assert_eq!((b.pattern.as_str(), b.subscription.as_str()), ("static", "shown (1)"));
    let session = ours.metrics().await.unwrap().session.unwrap().id;
    assert!(b.session_id == session && a.session_id != session && a.session_id != 0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let lately = |since: i64| {
        let ago = now.as_millis() as i64 - since;
        assert!((0..Duration::from_secs(600).as_millis() as i64).contains(&ago), "{ago} ms ago");
    };
    let mut shown = Vec::new();
    for it in view.partitions.iter().filter(|it| it.exists == Some(true)) {
        let owner = view.members.iter().find(|member| member.id == it.owner_member).unwrap();
        assert_eq!((it.session_id, it.is_own), (owner.session_id, owner.is_own));
        assert_eq!(it.owner_thread, Some(format!("{}-0", owner.id)));
        assert!(!it.owner_is_missing && !it.session_differs && it.error.is_empty());
        lately(it.since_ms.unwrap());
        assert!(it.since_ms.unwrap() >= owner.since_ms && it.thread_since_ms == it.since_ms);
        assert_eq!((it.committed_zookeeper, it.committed_kafka), (it.log_end, None));
        shown.push(it.log_end.unwrap());
    }
    assert_eq!(shown, ends);
    let left = view.partitions.iter().find(|it| it.topic == "forgotten").unwrap();
    assert_eq!((left.partition, left.owner_thread.as_deref()), (3, Some("shown_ghost-0")));
    assert_eq!(
        (left.owner_is_missing, left.session_id, left.exists),
        (true, 0, Some(false)),
        "it never goes by itself"
    );
    assert!(left.owner_member.is_empty() && left.log_end.is_none());
}
