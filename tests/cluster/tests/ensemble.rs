//! Three ZooKeeper servers: that they elect a leader, and what a follower does without one.

use std::{
    thread,
    time::{Duration, Instant},
};
use troupe_cluster::{Cluster, Ensemble, ZooKeeperVersion};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn three(version: ZooKeeperVersion) -> Result<Cluster> {
    Ok(Cluster::builder().zookeeper(version).zookeepers(3).brokers(0).start()?)
}

fn wait_for_mode(ensemble: &Ensemble, index: usize, mode: Option<&str>) {
    let begun = Instant::now();
    while ensemble.servers()[index].mode().as_deref() != mode {
        assert!(begun.elapsed() < Duration::from_secs(60), "server {index} is not {mode:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn survives_its_leader_and_a_cut(version: ZooKeeperVersion) -> Result {
    let cluster = three(version)?;
    let ensemble = cluster.ensemble();
    assert_eq!(ensemble.connect().split(',').count(), 3);

    let first = ensemble.leader()?;
    ensemble.servers()[first].kill()?;
    let second = ensemble.leader()?;
    assert_ne!(first, second);
    ensemble.start_missing()?;
    wait_for_mode(ensemble, first, Some("follower"));
    assert_eq!(ensemble.leader()?, second);

    let cut = Instant::now();
    ensemble.cut_off(first);
    wait_for_mode(ensemble, first, None);
    // until then it has answered as if nothing were
    assert!(cut.elapsed() > Duration::from_secs(4), "after {:?}", cut.elapsed());
    assert_eq!(ensemble.leader()?, second);
    ensemble.join_again(first);
    wait_for_mode(ensemble, first, Some("follower"));

    ensemble.kill_all()?;
    ensemble.start_missing()?;
    ensemble.leader()?;
    Ok(())
}

#[test]
fn an_ensemble_of_3_8_4_survives_its_leader_and_a_cut() -> Result {
    survives_its_leader_and_a_cut(ZooKeeperVersion::V3_8_4)
}

#[test]
fn an_ensemble_of_3_4_10_survives_its_leader_and_a_cut() -> Result {
    survives_its_leader_and_a_cut(ZooKeeperVersion::V3_4_10)
}
