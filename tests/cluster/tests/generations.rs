//! Every release of Kafka: that it starts, takes topics and records, keeps them over a restart, and lets topics go; and
//! Kafka's own clients, which judge what ours write.

use std::time::Instant;
use troupe_cluster::{Cluster, ClusterError, JavaRecord, KafkaVersion, ProduceRecord, entries};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What the tests ask of every release.
fn does_all(version: KafkaVersion) -> Result {
    let begun = Instant::now();
    let cluster = Cluster::start(version, 1)?;
    println!("{version} started within {:?}", begun.elapsed());
    takes_topics_and_records(&cluster)?;
    records_of_both_producers_are_read(&cluster)?;
    if version >= KafkaVersion::V3_9_1 {
        keeps_headers_timestamps_and_transactions(&cluster)?;
    }
    println!("{version} done within {:?}", begun.elapsed());
    Ok(())
}

fn takes_topics_and_records(cluster: &Cluster) -> Result {
    cluster.create_topic_with("orders", 3, 1, &[("retention.ms", "3600000")])?;
    let again = cluster.create_topic("orders", 3, 1);
    assert!(matches!(again, Err(ClusterError::Kafka { code: 36, .. })), "{again:?}");
    let records = (0..1_000).map(|number: u32| {
        let key = Some(number.to_string().into_bytes());
        ProduceRecord { key, ..ProduceRecord::value(format!("order {number}")) }
    });
    assert_eq!(cluster.produce("orders", records)?, 1_000);
    cluster.add_partitions("orders", 5)?;
    let again = cluster.add_partitions("orders", 5);
    assert!(matches!(again, Err(ClusterError::Kafka { code: 37, .. })), "{again:?}");
    let ends = cluster.log_end_offsets("orders")?;
    assert_eq!((ends.len(), ends.iter().sum::<i64>()), (5, 1_000), "{ends:?}");
    assert!(ends[..3].iter().all(|end| *end > 250), "{ends:?}");

    let broker = cluster.broker(0);
    let (pid, port) = (broker.pid(), broker.port());
    broker.kill()?;
    assert_eq!(broker.pid(), None);
    // a restart that has to be told to clients too
    broker.restart_on_new_port()?;
    assert!(broker.pid() != pid && broker.port() != port);
    cluster.wait_for_leaders("orders")?;
    assert_eq!(cluster.log_end_offsets("orders")?, ends);

    cluster.delete_topic("orders")?;
    assert!(!cluster.client().topics()?.contains(&"orders".to_owned()));
    let again = cluster.delete_topic("orders");
    assert!(matches!(again, Err(ClusterError::Kafka { code: 3, .. })), "{again:?}");
    cluster.create_topic("orders", 1, 1)?;
    assert_eq!(cluster.log_end_offsets("orders")?, [0]);
    Ok(())
}

fn record(partition: i32, key: Option<&[u8]>, value: Option<&[u8]>) -> JavaRecord {
    JavaRecord {
        partition,
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        ..JavaRecord::default()
    }
}

/// Partition, offset, key and value.
type Seen = (i32, i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// Ours and the Java producer of the brokers' release write, with each codec of the release; a Java consumer reads.
fn records_of_both_producers_are_read(cluster: &Cluster) -> Result {
    let version = cluster.broker(0).version();
    let codecs = match version {
        zstd if zstd >= KafkaVersion::V2_8_2 => &["none", "gzip", "snappy", "lz4", "zstd"][..],
        _ => &["none", "gzip", "snappy", "lz4"],
    };
    cluster.create_topic("judged", 4, 1)?;
    let mut expected = write_by_java(cluster, codecs)?;
    expected.extend(write_ours(cluster)?);
    let seen = cluster.java_consume("judged", &[])?;
    if version >= KafkaVersion::V0_10_2_2 {
        let timed = |it: &JavaRecord| it.timestamp > Some(0) && it.timestamp_type == "CreateTime";
        assert!(seen.iter().all(timed), "{version}: the times");
    }
    let seen: Vec<Seen> = seen.into_iter().map(|it| (it.partition, it.offset, it.key, it.value)).collect();
    // some are too long to be printed
    assert!(seen == expected, "{version}: other records than were written");
    let log = cluster.broker(0).data().join("judged-0/00000000000000000000.log");
    let mut ids: Vec<u8> = entries(&std::fs::read(log)?).into_iter().map(|(_, codec)| codec).collect();
    ids.dedup();
    assert!(ids.iter().copied().eq((0..).take(codecs.len())), "{ids:?} in the log, of {codecs:?}");
    Ok(())
}

/// To partition 0.
fn write_by_java(cluster: &Cluster, codecs: &[&str]) -> Result<Vec<Seen>> {
    let sent = [
        record(0, None, Some(b"no key")),
        record(0, Some(b""), Some(b"")),
        record(0, Some(b"gone"), None),
        record(0, Some(b"big"), Some(&[b'x'; 100_000])),
    ];
    let mut producer = cluster.java_producer(cluster.broker(0).version(), &[("acks", "all")])?;
    for codec in codecs {
        let linger =
            [("acks", "all"), ("compression.type", *codec), ("linger.ms", "100"), ("batch.size", "200000")];
        producer.configure(&linger)?;
        sent.iter().try_for_each(|record| producer.send("judged", record))?;
        assert_eq!(producer.flush()?, 4, "{codec}");
    }
    let repeated = codecs.iter().flat_map(|_| &sent).zip(0..);
    Ok(repeated.map(|(sent, offset)| (0, offset, sent.key.clone(), sent.value.clone())).collect())
}

/// To the other partitions: named, large, and chosen by the key.
fn write_ours(cluster: &Cluster) -> Result<[Seen; 4]> {
    let (named, keyed, large) = (Some(b"key".to_vec()), Some(b"abc".to_vec()), vec![b'x'; 500_000]);
    let placed = ProduceRecord { partition: Some(2), ..ProduceRecord::value(large.clone()) };
    let ours = [
        ProduceRecord { partition: Some(1), key: named.clone(), ..ProduceRecord::value("ours") },
        placed.clone(),
        placed,
        ProduceRecord { key: keyed.clone(), ..ProduceRecord::value("x") },
    ];
    assert_eq!(cluster.produce("judged", ours)?, 4);
    Ok([
        (1, 0, named, Some(b"ours".to_vec())),
        (2, 0, None, Some(large.clone())),
        (2, 1, None, Some(large)),
        (3, 0, keyed, Some(b"x".to_vec())),
    ])
}

fn keeps_headers_timestamps_and_transactions(cluster: &Cluster) -> Result {
    // the records are older than what a broker keeps
    cluster.create_topic_with("transactional", 1, 1, &[("retention.ms", "-1")])?;
    let headers =
        vec![("a".to_owned(), Some(b"1".to_vec())), ("a".to_owned(), None), (String::new(), Some(vec![]))];
    let sent = |value: &str| JavaRecord {
        timestamp: Some(1_234),
        headers: headers.clone(),
        ..record(0, Some(b"key"), Some(value.as_bytes()))
    };
    let mut producer = cluster.java_producer(cluster.broker(0).version(), &[("transactional.id", "one")])?;
    producer.begin()?;
    producer.send("transactional", &sent("committed"))?;
    assert_eq!(producer.commit()?, 1);
    producer.begin()?;
    producer.send("transactional", &sent("aborted"))?;
    assert_eq!(producer.flush()?, 1);
    producer.abort()?;
    producer.configure(&[("compression.type", "zstd"), ("max.block.ms", "3000")])?;
    producer.send("transactional", &sent("plain"))?;
    assert_eq!(producer.flush()?, 1);

    let expected =
        |offset, value: &str| JavaRecord { offset, timestamp_type: "CreateTime".to_owned(), ..sent(value) };
    let committed = cluster.java_consume("transactional", &[("isolation.level", "read_committed")])?;
    assert_eq!(committed, [expected(0, "committed"), expected(4, "plain")]);
    let all = cluster.java_consume("transactional", &[("isolation.level", "read_uncommitted")])?;
    assert_eq!(all, [expected(0, "committed"), expected(2, "aborted"), expected(4, "plain")]);

    producer.send("missing", &sent("nowhere"))?;
    let refused = producer.flush().map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|error| error.contains("missing")), "{refused:?}");
    Ok(())
}

/// Topics that are made in ZooKeeper have the replicas that Kafka's tools would give them.
#[test]
fn brokers_of_0_8_2_2_replicate_and_one_leads_on_for_another() -> Result {
    let cluster = Cluster::builder().kafka(KafkaVersion::V0_8_2_2).brokers(2).chroot("/kafka").start()?;
    let few = cluster.create_topic("orders", 1, 3);
    assert!(matches!(few, Err(ClusterError::Kafka { code: 38, .. })), "{few:?}");
    cluster.create_topic("orders", 2, 2)?;
    cluster.add_partitions("orders", 4)?;
    let seen = cluster.client().partitions("orders")?;
    assert_eq!(seen.iter().map(|it| &it.replicas[..]).collect::<Vec<_>>(), [[0, 1], [1, 0], [0, 1], [1, 0]]);
    assert_eq!(cluster.client().brokers()?.len(), 2);

    cluster.broker(0).kill()?;
    cluster.wait_for_leaders("orders")?;
    cluster.produce("orders", (0..100).map(|_| ProduceRecord::value("x")))?;
    // the same batch may have been sent again while its leader waited for the replica that is gone
    let ends = cluster.log_end_offsets("orders")?;
    assert!(ends.iter().all(|end| *end > 0 && end % 25 == 0), "{ends:?}");
    cluster.broker(0).restart()?;
    cluster.wait_for_leaders("orders")?;
    Ok(())
}

macro_rules! each_release {
    ($($name:ident: $version:ident,)*) => {
        $(#[test]
        fn $name() -> Result {
            does_all(KafkaVersion::$version)
        })*

        #[test]
        fn no_release_is_left_out() {
            assert_eq!(KafkaVersion::ALL, [$(KafkaVersion::$version),*]);
        }
    };
}

each_release! {
    kafka_0_8_2_2: V0_8_2_2,
    kafka_0_9_0_1: V0_9_0_1,
    kafka_0_10_2_2: V0_10_2_2,
    kafka_0_11_0_3: V0_11_0_3,
    kafka_1_1_1: V1_1_1,
    kafka_2_8_2: V2_8_2,
    kafka_3_9_1: V3_9_1,
    kafka_4_1_1: V4_1_1,
    kafka_4_4_0: V4_4_0,
}
