//! Members that have given up, or that plan differently, are named by those that do their part; nothing runs in circles.

use std::time::Instant;

use kafka_troupe::proto::schemas::status::v1::{PeerFault, StatusSnapshot};
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record, TopicFilter};
use troupe_cluster::KafkaVersion;
use zookeeper_async::CreateMode;

use crate::support::by_hand::ByHand;
use crate::support::clusters::{builder, shared};
use crate::support::load::numbered;
use crate::support::scala::Scala;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    a_scala_member_that_has_given_up_is_named_until_it_is_gone,
    members_with_different_strategies_name_each_other,
);

async fn wait_for_peers(member: &ConsumerHandle, is: impl Fn(&[PeerFault]) -> bool) -> StatusSnapshot {
    until_async("report of peers", async || {
        let status = member.metrics().await.unwrap();
        let settled = status.phase == "stable" || !status.failing.is_empty();
        if settled && is(&status.peers) {
            Ok(status)
        } else {
            Err(format!("{}: {:?}", status.phase, status.peers))
        }
    })
    .await
}

/// The one fault, if it is this one of `member` and of these partitions.
fn is_about(faults: &[PeerFault], member: &str, problem: &str, partitions: &[i32]) -> bool {
    let [fault] = faults else { return false };
    (fault.member.as_str(), fault.problem.as_str()) == (member, problem)
        && fault.partitions.iter().map(|it| it.partition).eq(partitions.iter().copied())
}

/// There was a rebalance for each thing that happened, and none over again. (Other tests make topics meanwhile, which a
/// filter among the members has to look at.)
#[track_caller]
fn check_at_rest(status: &StatusSnapshot) {
    let rebalances = &status.rebalances.as_ref().unwrap().last;
    let of_others = |reasons: &[String]| reasons == ["topics_changed"];
    let own = rebalances.iter().filter(|trace| !of_others(&trace.reasons)).count();
    assert!(own < 8, "{rebalances:?}");
    let again = ["failed", "still_waiting"];
    let mut reasons = rebalances.iter().flat_map(|trace| &trace.reasons);
    assert!(reasons.all(|reason| !again.contains(&reason.as_str())), "{rebalances:?}");
}

/// A node that nobody stands behind is in its way for all of its attempts. Then it holds nothing and nobody tells it.
fn a_scala_member_that_has_given_up_is_named_until_it_is_gone(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "gave-up");
    let generation = match version {
        KafkaVersion::V1_1_1 => KafkaVersion::V1_1_1,
        _ => KafkaVersion::V0_8_2_2,
    };
    cluster.create_topic(name, 2, 1).unwrap();
    let four = "auto.offset.reset=smallest\nrebalance.max.retries=4\nrebalance.backoff.ms=500";
    run(async {
        let log = Log::default();
        let scala = Scala::join(cluster, generation, name, "m2", four);
        wait_for_owners(cluster, name, name, &["m2-0", "m2-0"]).await;
        let by_hand = ByHand::connect(cluster, name).await;
        by_hand.own(name, 2, "gave-up_x-0", CreateMode::Persistent).await;
        let handler = Recorder::factory("m1", &log, |_: &Record| Ok(()));
        let one = ConsumerSystem::builder(config(cluster, name, "m1", &[])).handle(name, 1, handler);
        let one = one.start().await.unwrap();
        wait_for_owners(cluster, name, name, &["m1-0", "m2-0", "x-0"]).await;

        // now 2 and 3 fall to it
        cluster.add_partitions(name, 4).unwrap();
        scala.wait_for_log("can't rebalance after 4 retries");
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "x-0"]).await;
        let blocked = wait_for_peers(&one, |peers| peers.len() == 2).await;
        assert!(
            blocked.peers.iter().any(|peer| peer.why.contains("no registration of it")),
            "{:?}",
            blocked.peers
        );
        by_hand.delete(&format!("owners/{name}/2")).await;

        let status = wait_for_peers(&one, |peers| is_about(peers, "gave-up_m2", "gave_up", &[2, 3])).await;
        let why = &status.peers[0].why;
        assert!(
            why.contains("gave-up_m2") && why.contains("given up") && why.contains("restart it"),
            "{why}"
        );
        assert_eq!((status.phase.as_str(), status.failing.as_str()), ("stable", ""), "we are well");
        check_at_rest(&status);
        assert_eq!(GroupHistory::of(cluster, name).children("ids"), ["gave-up_m1", "gave-up_m2"]);

        scala.leave();
        wait_for_owners(cluster, name, name, &["m1-0"; 4]).await;
        let status = wait_for_peers(&one, <[_]>::is_empty).await;
        check_at_rest(&status);
        cluster.produce(name, numbered(40)).unwrap();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        by_hand.close().await;
        log.history(name).check(&GroupHistory::of(cluster, name));
    });
}

/// One by range, one by round-robin: what only one of them gives itself is had, the rest is told by both.
fn members_with_different_strategies_name_each_other(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "disagree");
    cluster.create_topic(name, 14, 1).unwrap();
    run(async {
        let log = Log::default();
        let start = async |member: &str, strategy: &str| {
            let handler = Recorder::factory(member, &log, |_: &Record| Ok(()));
            let config = config(cluster, name, member, &[("partition.assignment.strategy", strategy)]);
            ConsumerSystem::builder(config).handle(name, 1, handler).start().await.unwrap()
        };
        let one = start("m1", "range").await;
        wait_for_owners(cluster, name, name, &["m1-0"; 14]).await;
        let (begun, two) = (Instant::now(), start("m2", "roundrobin").await);
        let range = wait_for_peers(&one, |peers| !peers.is_empty()).await;
        let round_robin = wait_for_peers(&two, |peers| !peers.is_empty()).await;
        let [not_read] = &range.peers[..] else { panic!("{:?}", range.peers) };
        assert!(not_read.why.contains("member disagree_m2 does not own"), "{}", not_read.why);
        assert_eq!((range.phase.as_str(), range.failing.as_str()), ("stable", ""), "it has what it plans");
        let holds = round_robin.peers.iter().find(|peer| peer.why.contains("disagree_m1 owns")).unwrap();
        assert!(holds.why.contains("which fall to member disagree_m2"), "{}", holds.why);
        assert!(holds.why.contains("it plans by range"), "{}", holds.why);
        assert!(round_robin.failing.contains("disagree_m1-0"), "{}", round_robin.failing);
        // it goes on trying, a backoff of a second apart
        let now = two.metrics().await.unwrap();
        assert!(
            now.generation <= 5 + begun.elapsed().as_secs(),
            "{} in {:?}",
            now.generation,
            begun.elapsed()
        );
        assert_eq!(one.metrics().await.unwrap().generation, range.generation);

        two.shutdown().await;
        wait_for_owners(cluster, name, name, &["m1-0"; 14]).await;
        wait_for_peers(&one, <[_]>::is_empty).await;
        one.shutdown().await;
    });
}

/// It wants the same topics of all members. Ours does not refuse, so it is the one to say why the other holds nothing.
#[test]
fn a_scala_member_that_refuses_round_robin_is_named_with_the_reason() {
    let (cluster, name) = (shared(KafkaVersion::V1_1_1), "refuses");
    for topic in [name, "refuses-not"] {
        cluster.create_topic(topic, 2, 1).unwrap();
        cluster.produce(topic, numbered(20)).unwrap();
    }
    let round_robin = "auto.offset.reset=smallest\nrebalance.max.retries=4\nrebalance.backoff.ms=500\n\
                       partition.assignment.strategy=roundrobin";
    run(async {
        let log = Log::default();
        let scala = Scala::join(cluster, KafkaVersion::V0_8_2_2, name, "m2", round_robin);
        wait_for_owners(cluster, name, name, &["m2-0", "m2-0"]).await;
        let properties =
            [("partition.assignment.strategy", "roundrobin"), ("troupe.roundrobin.peers", "before-1.0")];
        let handler = || Recorder::factory("m1", &log, |_: &Record| Ok(()));
        let one = ConsumerSystem::builder(config(cluster, name, "m1", &properties));
        let one = one.handle(name, 1, handler()).handle("refuses-not", 1, handler());
        let one = one.start().await.unwrap();
        scala.wait_for_log("can't rebalance after 4 retries");
        let status = wait_for_peers(&one, |peers| peers.len() == 1).await;
        let why = &status.peers[0].why;
        assert!(why.contains("refuses_m2") && why.contains("before 0.10.2 refuses roundrobin"), "{why}");
        assert_eq!((status.phase.as_str(), status.failing.as_str()), ("stable", ""), "we are well");
        check_at_rest(&status);
        scala.leave();
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0"]).await;
        wait_for_peers(&one, <[_]>::is_empty).await;
        one.shutdown().await;
    });
}

/// To one of 0.8.2 a filter may take in `__transaction_state`, to ours only if it is told to be in step with that.
#[test]
fn what_is_internal_to_members_before_0_11_is_told_by_a_setting() {
    // with fewer partitions than it is configured to have, no transaction begins at its brokers any more
    let cluster = &builder(KafkaVersion::V1_1_1).start().unwrap();
    let (name, internal) = ("state", "__transaction_state");
    for topic in [name, internal] {
        cluster.create_topic(topic, 2, 1).unwrap();
    }
    let filter = "state|__transaction_state";
    run(async {
        let log = Log::default();
        let smallest = "auto.offset.reset=smallest";
        let scala = Scala::join_matching(cluster, KafkaVersion::V0_8_2_2, name, filter, "m2", smallest);
        wait_for_owners(cluster, name, internal, &["m2-0", "m2-0"]).await;
        let start = async |properties: &[(&str, &str)]| {
            let handler = Recorder::factory("m1", &log, |_: &Record| Ok(()));
            let builder = ConsumerSystem::builder(config(cluster, name, "m1", properties));
            let filter = TopicFilter::white_list(filter).unwrap();
            builder.handle_matching(filter, 1, handler).start().await.unwrap()
        };
        let later = start(&[]).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m2-0"]).await;
        let status = wait_for_peers(&later, |peers| is_about(peers, "state_m2", "holds", &[1])).await;
        let why = &status.peers[0].why;
        assert!(
            why.contains("__transaction_state-1") && why.contains("troupe.internal.topics.peers=before-0.11"),
            "{why}"
        );
        check_at_rest(&status);
        later.shutdown().await;
        wait_for_owners(cluster, name, internal, &["m2-0", "m2-0"]).await;

        let in_step = start(&[("troupe.internal.topics.peers", "before-0.11")]).await;
        for topic in [name, internal] {
            wait_for_owners(cluster, name, topic, &["m1-0", "m2-0"]).await;
        }
        let status = wait_for_peers(&in_step, <[_]>::is_empty).await;
        assert_eq!(status.failing, "");
        in_step.shutdown().await;
        scala.leave();
    });
}
