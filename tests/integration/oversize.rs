//! Messages that are larger than the fetch size (B12).

use std::time::{Duration, Instant};

use kafka_troupe::StatusSnapshot;
use tokio::time::sleep;
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::numbered;
use crate::support::records::Reading;
use crate::support::rounds;
use crate::support::system::run;
use crate::support::wait::until;

const OLD: KafkaVersion = KafkaVersion::V0_8_2_2;
/// Brokers answer once a second when there is nothing new.
const SMALL: [(&str, &str); 2] = [("fetch.message.max.bytes", "1000"), ("fetch.wait.max.ms", "1000")];

/// Partition 0 has four small messages, a large one at offset 4 and five small ones; partition 1 only small ones.
fn produce(cluster: &Cluster, topic: &str) {
    let sizes = [[300; 4].as_slice(), &[5000], &[300; 5]].concat();
    let record = |size: usize| ProduceRecord { partition: Some(0), ..ProduceRecord::value(vec![b'v'; size]) };
    cluster.produce(topic, sizes.into_iter().map(record)).unwrap();
    produce_beside(cluster, topic);
}

fn produce_beside(cluster: &Cluster, topic: &str) {
    let small = numbered(100).map(|record| ProduceRecord { partition: Some(1), ..record });
    cluster.produce(topic, small).unwrap();
}

#[test]
fn b12_a_message_beyond_the_fetch_size_is_one_error_that_names_it() {
    let (cluster, name) = (shared(OLD), "b12-error");
    let group = Group::new(cluster, name, 2);
    produce(cluster, name);
    let began = Instant::now();
    let member = group.join("m", 1, &["fetch.message.max.bytes=1000"]);
    member.wait_for_log(&[
        "ERROR",
        "b12-error-0",
        "offset 4,",
        "5026 bytes",
        "fetch.message.max.bytes (1000)",
    ]);
    println!("it is reported {:?} after the member's start", began.elapsed());
    // on a machine under load it takes longer
    let limit = Duration::from_secs(if rounds().is_some() { 5 } else { 15 });
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    for count in [100, 200, 300] {
        produce_beside(cluster, name);
        until("what the other partition has", || match group.history().of(1).count() {
            enough if enough > count => Ok(()),
            less => Err(format!("{less}")),
        });
    }
    let log = member.leave();
    assert_eq!(log.lines().filter(|line| line.contains("ERROR")).count(), 1, "{log}");
    let history = group.history();
    assert!(history.of(0).map(|delivery| delivery.offset).eq(0..4), "{history:?}");
    assert_eq!(history.duplicates(), 0);
}

/// Why partition 0 waits.
fn too_large(status: &StatusSnapshot) -> Option<String> {
    let its = status.waiting.iter().find(|waiting| waiting.partition == 0);
    its.map(|waiting| waiting.why.clone()).filter(|why| why.contains("offset 4, of 5026 bytes"))
}

#[test]
fn b12_a_message_beyond_the_fetch_size_is_asked_for_now_and_then_until_the_limit_allows_it() {
    let (cluster, name) = (shared(OLD), "b12-limit");
    cluster.create_topic(name, 2, 1).unwrap();
    produce(cluster, name);
    run(async {
        let stuck = Reading::start(cluster, name, "m1", &SMALL).await;
        stuck.wait_for_status("the reason", too_large).await;
        stuck.kept.wait_for(name, 1, 100).await;
        let before = stuck.requests().await;
        let began = Instant::now();
        // this is what is measured; the partition is tried again meanwhile
        sleep(Duration::from_secs(6)).await;
        let more = stuck.requests().await - before;
        println!("{more} requests in {:?}", began.elapsed());
        assert!(more <= 2 * began.elapsed().as_secs(), "{more} requests in {:?}", began.elapsed());
        stuck.wait_for_status("the same reason", too_large).await;
        produce_beside(cluster, name);
        stuck.kept.wait_for(name, 1, 200).await;
        assert_eq!(stuck.kept.of(name, 0).len(), 4);
        stuck.member.shutdown().await;

        let grows = [("troupe.fetch.message.max.bytes.limit", "1048576")];
        let able = Reading::start(cluster, name, "m2", &[&SMALL[..], &grows].concat()).await;
        let records = able.kept.wait_for(name, 0, 6).await;
        check_rest(records.iter().map(|record| (record.offset, record.value.as_ref().unwrap().len())));
        assert_eq!(able.status().await.waiting, []);
        able.member.shutdown().await;
        assert!(able.kept.of(name, 1).is_empty(), "nothing comes twice");
    });
}

/// From the large one on.
fn check_rest(got: impl Iterator<Item = (i64, usize)>) {
    let sizes = [5000, 300, 300, 300, 300, 300];
    assert_eq!(got.collect::<Vec<_>>(), (4..).zip(sizes).collect::<Vec<_>>());
}

#[test]
fn b12_later_brokers_return_a_message_beyond_the_fetch_size() {
    let (cluster, name) = (shared(KafkaVersion::V1_1_1), "b12-later");
    cluster.create_topic(name, 2, 1).unwrap();
    produce(cluster, name);
    run(async {
        let member = Reading::start(cluster, name, "m", &SMALL).await;
        let records = member.kept.wait_for(name, 0, 10).await;
        check_rest(records[4..].iter().map(|record| (record.offset, record.value.as_ref().unwrap().len())));
        member.kept.wait_for(name, 1, 100).await;
        member.member.shutdown().await;
    });
}
