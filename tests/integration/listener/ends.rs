//! What was started is ended: lost, or released by a coordinator that was started anew.

use std::collections::BTreeMap;

use kafka_troupe::ReleaseReason;
use kafka_troupe::actors::chaos::CrashChild;
use troupe_cluster::{KafkaVersion, Proxy};

use super::{MORE, owners, start, wait_for_event, wait_for_flow, wait_for_started};
use crate::bad_input::zookeeper_shell;
use crate::support::clusters::{CHROOT, shared};
use crate::support::listener::{Answer, Events, What};
use crate::support::load::Load;
use crate::support::system::{Log, run};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    partitions_lost_by_expiry_are_told_and_not_released,
    a_partition_whose_owner_node_is_deleted_is_told_as_lost,
    a_restarted_coordinator_releases_what_it_started,
);

fn partitions_lost_by_expiry_are_told_and_not_released(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "expired");
    cluster.create_topic(name, 2, 1).unwrap();
    let load = Load::start(cluster, name);
    let proxy = Proxy::start(cluster.zookeeper().connect()).unwrap();
    let connect = proxy.address() + CHROOT;
    run(async {
        let (log, events) = (Log::default(), Events::default());
        let cut_off = [("zookeeper.connect", connect.as_str()), ("zookeeper.session.timeout.ms", "3000")];
        let one = start(cluster, name, "m1", &cut_off, (&log, &events), |_: &What| Answer::AtOnce).await;
        owners(cluster, name, &["m1-0"; 2]).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        wait_for_started(&events, &[0, 1]).await;
        proxy.freeze();
        until_async("its session's end", async || {
            let owners = GroupHistory::of(cluster, name).owners(name);
            if owners.is_empty() { Ok(()) } else { Err(format!("{owners:?}")) }
        })
        .await;
        proxy.heal();
        owners(cluster, name, &["m1-0"; 2]).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let lost = wait_for_event(&events, What::Lost("session expired".to_owned())).await;
        assert_eq!(lost.positions.keys().copied().collect::<Vec<_>>(), [0, 1]);
        wait_for_started(&events, &[0, 0, 1, 1]).await;
        let whats: Vec<_> = events.all().into_iter().map(|event| event.what).collect();
        assert!(whats.iter().all(|what| matches!(what, What::Starting | What::Lost(_))), "{whats:?}");
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        log.history(name).check(&GroupHistory::of(cluster, name));
    });
}

/// By somebody else.
fn a_partition_whose_owner_node_is_deleted_is_told_as_lost(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "robbed");
    cluster.create_topic(name, 2, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let (log, events) = (Log::default(), Events::default());
        let one = start(cluster, name, "m1", &MORE, (&log, &events), |_: &What| Answer::AtOnce).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        wait_for_started(&events, &[0, 1]).await;
        zookeeper_shell(cluster, version, "delete", "/consumers/robbed/owners/robbed/1", &[]);
        let lost = wait_for_event(&events, What::Lost("owner node of robbed-1 was deleted".to_owned())).await;
        assert_eq!(lost.positions.keys().copied().collect::<Vec<_>>(), [1]);
        wait_for_started(&events, &[0, 1, 1]).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        let whats: Vec<_> = events.all().into_iter().map(|event| event.what).collect();
        assert_eq!(whats.last(), Some(&What::Releasing(ReleaseReason::Shutdown)), "{whats:?}");
        assert_eq!(whats.iter().filter(|what| matches!(what, What::Releasing(_))).count(), 1);
    });
}

fn a_restarted_coordinator_releases_what_it_started(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "relistened");
    cluster.create_topic(name, 2, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let (log, events) = (Log::default(), Events::default());
        let one = start(cluster, name, "m1", &MORE, (&log, &events), |_: &What| Answer::AtOnce).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        wait_for_started(&events, &[0, 1]).await;
        one.address().send(CrashChild("rebalance-coordinator".to_owned())).await.unwrap();
        let released = wait_for_event(&events, What::Releasing(ReleaseReason::Restarted)).await;
        wait_for_started(&events, &[0, 0, 1, 1]).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let again =
            events.all().into_iter().filter(|it| it.what == What::Starting && it.told >= released.told);
        let again: BTreeMap<_, _> = again.flat_map(|event| event.positions).collect();
        assert_eq!(again, released.positions);
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}
