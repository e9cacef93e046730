//! Interleavings that went wrong in the field, forced one by one.

use std::time::{Duration, Instant};

use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record};
use troupe_cluster::{Cluster, KafkaVersion, Proxy};
use zookeeper_async::CreateMode;

use crate::support::by_hand::ByHand;
use crate::support::clusters::{CHROOT, shared};
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    b06_a_claim_is_given_up_for_who_joins_while_another_claim_is_refused,
    b06_who_registers_while_a_rebalance_runs_causes_another,
);

async fn start(
    cluster: &Cluster,
    name: &str,
    member: &str,
    log: &Log,
    more: &[(&str, &str)],
) -> ConsumerHandle {
    let handler = Recorder::factory(member, log, |_: &Record| Ok(()));
    let config = config(cluster, name, member, more);
    ConsumerSystem::builder(config).handle(name, 1, handler).start().await.unwrap()
}

async fn wait_for_phase(member: &ConsumerHandle, phase: &str) {
    until_async(&format!("phase {phase}"), async || {
        let now = member.metrics().await.unwrap().phase;
        if now == phase { Ok(()) } else { Err(now) }
    })
    .await;
}

/// What each fetches is what the owner nodes say, and none of it waits.
async fn check_owned_is_fetched(cluster: &Cluster, name: &str, members: &[(&str, &ConsumerHandle)]) {
    until_async("all that is owned is fetched", async || {
        let owners = GroupHistory::of(cluster, name).owners(name);
        for (id, member) in members {
            let status = member.metrics().await.unwrap();
            let owned = owners.iter().filter(|(_, thread)| **thread == format!("{id}-0"));
            let owned: Vec<i32> = owned.map(|(partition, _)| *partition).collect();
            let fetched: Vec<i32> = status.partitions.iter().map(|its| its.partition).collect();
            if owned != fetched || !status.waiting.is_empty() || !status.failing.is_empty() {
                return Err(format!("{id}: {owned:?} of {status:?}"));
            }
        }
        Ok(())
    })
    .await;
}

/// The first has claimed 3 and is refused 4 when the second registers, to whom both fall. No time-out helps.
fn b06_a_claim_is_given_up_for_who_joins_while_another_claim_is_refused(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "refused");
    cluster.create_topic(name, 6, 1).unwrap();
    cluster.produce(name, numbered(60)).unwrap();
    let patient = [("rebalance.backoff.ms", "40000")];
    run(async {
        let log = Log::default();
        let by_hand = ByHand::connect(cluster, name).await;
        by_hand.own(name, 4, "refused_x-0", CreateMode::Ephemeral).await;
        let one = start(cluster, name, "m1", &log, &patient).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-0", "m1-0", "x-0", "m1-0"]).await;
        wait_for_phase(&one, "claiming").await;

        let begun = Instant::now();
        let two = start(cluster, name, "m2", &log, &patient).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-0", "m2-0", "x-0", "m2-0"]).await;
        wait_for_phase(&one, "stable").await;
        wait_for_phase(&two, "claiming").await;
        by_hand.delete(&format!("owners/{name}/4")).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-0", "m2-0", "m2-0", "m2-0"]).await;
        wait_for_phase(&two, "stable").await;
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        check_owned_is_fetched(cluster, name, &[("m1", &one), ("m2", &two)]).await;

        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        two.shutdown().await;
        by_hand.close().await;
        let zookeeper = GroupHistory::of(cluster, name);
        let of = |partition: i32| {
            let its = zookeeper.tenures.iter().filter(|tenure| tenure.partition == partition);
            its.map(|tenure| zookeeper.short(&tenure.thread)).collect::<Vec<_>>()
        };
        assert_eq!((of(3), of(4)), (vec!["m1-0".into(), "m2-0".into()], vec!["x-0".into(), "m2-0".into()]));
        let history = log.history(name);
        history.check(&zookeeper);
        assert_eq!(history.duplicates(), 0);
    });
}

/// Each of ZooKeeper's replies takes its time, so the rebalance for the first who registers is caught in this phase by
/// the second. Those two are names only: what falls to them is nobody's.
fn b06_who_registers_while_a_rebalance_runs_causes_another(version: KafkaVersion) {
    for phase in ["reading", "revoking"] {
        let (cluster, name) = (shared(version), format!("during-{phase}"));
        cluster.create_topic(&name, 6, 1).unwrap();
        cluster.produce(&name, numbered(60)).unwrap();
        let proxy = Proxy::start(cluster.zookeeper().connect()).unwrap();
        let connect = proxy.address() + CHROOT;
        run(async {
            let log = Log::default();
            let by_hand = ByHand::connect(cluster, &name).await;
            // no session ends because of the delay
            let slow = [("zookeeper.connect", connect.as_str()), ("zookeeper.session.timeout.ms", "20000")];
            let one = start(cluster, &name, "m1", &log, &slow).await;
            wait_for_owners(cluster, &name, &name, &["m1-0"; 6]).await;
            wait_for_phase(&one, "stable").await;
            log.wait_for_all(cluster, &name).await;

            proxy.delay(Duration::from_millis(300));
            by_hand.register(&format!("{name}_y"), &name).await;
            wait_for_phase(&one, phase).await;
            if phase == "revoking" {
                // the first of three nodes is deleted: the answers to the other two come after the news
                until_async("a release", async || {
                    let owners = GroupHistory::of(cluster, &name).owners(&name);
                    if owners.len() < 6 { Ok(()) } else { Err(format!("{owners:?}")) }
                })
                .await;
            }
            by_hand.register(&format!("{name}_z"), &name).await;
            assert_eq!(one.metrics().await.unwrap().phase, phase, "it was forced");
            wait_for_owners(cluster, &name, &name, &["m1-0"; 2]).await;
            wait_for_phase(&one, "stable").await;
            check_owned_is_fetched(cluster, &name, &[("m1", &one)]).await;

            proxy.heal();
            by_hand.delete(&format!("ids/{name}_y")).await;
            by_hand.delete(&format!("ids/{name}_z")).await;
            wait_for_owners(cluster, &name, &name, &["m1-0"; 6]).await;
            check_owned_is_fetched(cluster, &name, &[("m1", &one)]).await;
            cluster.produce(&name, numbered(60)).unwrap();
            log.wait_for_all(cluster, &name).await;
            one.shutdown().await;
            by_hand.close().await;
            let history = log.history(&name);
            history.check(&GroupHistory::of(cluster, &name));
            assert_eq!(history.duplicates(), 0);
        });
    }
}
