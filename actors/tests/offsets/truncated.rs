//! KIP-320: an unclean leader election takes from a log what we have read of it, and writes over it.

use kafka_troupe_proto::config::OffsetReset;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::real_logs::{Reader, eventually, produce, settings};

/// The new leader's log has grown past our position before we look: by offsets alone nothing is wrong.
#[actix::test]
async fn what_a_new_leader_wrote_over_records_that_we_had_read_is_delivered() {
    let unclean = Cluster::builder().kafka(KafkaVersion::V3_9_1).brokers(2);
    let cluster = unclean.broker_property("unclean.leader.election.enable", "true").start().unwrap();
    cluster.create_topic("t", 1, 2).unwrap();
    produce(&cluster, "both", 10);
    let leader = cluster.client().partitions("t").unwrap()[0].leader;
    let index = usize::try_from(leader).unwrap();
    let (leads, follows) = (cluster.broker(index), cluster.broker(1 - index));

    follows.kill().unwrap();
    eventually("alone in sync", || cluster.client().partitions("t").unwrap()[0].isr == [leader]);
    produce(&cluster, "lost", 5);
    // largest: a position that is made by it would pass over all
    let reader = Reader::start(&cluster, settings(OffsetReset::Largest), Some(0)).await;
    assert_eq!(reader.offsets("lost", 5).await.len(), 5);
    reader.member.commit_again().await.unwrap();
    assert_eq!(reader.other.stored(), Some((15, 1)));

    reader.stop_fetching().await;
    leads.kill().unwrap();
    follows.restart().unwrap();
    eventually("led by who knows less", || cluster.client().wait_for_leaders("t").is_ok());
    produce(&cluster, "written over", 8);
    reader.fetch();
    let offsets: Vec<_> = reader.offsets("written over", 8).await;
    assert!(offsets.iter().map(|(offset, _)| *offset).eq(10..18), "{offsets:?}");
    assert_eq!(reader.count(), 23, "each once");
    assert_eq!(
        (offsets[0].1, reader.other.stored()),
        (Some(10), Some((10, 2))),
        "stored before it is fetched"
    );
    reader.member.commit_again().await.unwrap();
    assert_eq!(reader.other.stored(), Some((18, 3)));
}
