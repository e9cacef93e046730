use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const BASE: &str = "zookeeper.connect=zk/kafka\ngroup.id=g\n";

fn parsed(more: &str) -> Parsed {
    ConsumerConfig::from_properties(&format!("{BASE}{more}")).unwrap_or_else(|why| panic!("{more}: {why}"))
}

fn config(more: &str) -> ConsumerConfig {
    parsed(more).config
}

fn refusal(more: &str) -> String {
    ConsumerConfig::from_properties(&format!("{BASE}{more}")).expect_err(more).to_string()
}

fn notices(more: &str) -> Vec<String> {
    parsed(more).report.iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_those_of_the_old_consumer() {
    let config = config("");
    let ms = Duration::from_millis;
    assert_eq!(config.zookeeper_connect.to_string(), "zk:2181/kafka");
    assert_eq!(
        (config.group_id.as_str(), config.client_id.as_str(), config.consumer_id.clone()),
        ("g", "g", None)
    );
    assert_eq!((config.zookeeper_session_timeout, config.zookeeper_connection_timeout), (ms(6000), ms(6000)));
    assert_eq!((config.zookeeper_sync_time, config.rebalance_backoff), (ms(2000), ms(2000)));
    assert_eq!((config.rebalance_max_retries, config.offsets_commit_max_retries), (4, 5));
    assert_eq!((config.socket_timeout, config.refresh_leader_backoff), (ms(30_000), ms(200)));
    assert_eq!(
        (config.fetch_message_max_bytes, config.fetch_min_bytes, config.fetch_wait_max),
        (1 << 20, 1, ms(100))
    );
    assert_eq!((config.num_consumer_fetchers, config.queued_max_message_chunks), (1, 2));
    assert_eq!((config.auto_commit_enable, config.auto_commit_interval), (true, ms(60_000)));
    assert_eq!((config.auto_offset_reset, config.consumer_timeout), (OffsetReset::Largest, None));
    assert_eq!((config.offsets_storage, config.dual_commit_enabled), (OffsetsStorage::Zookeeper, false));
    assert_eq!(
        (config.offsets_channel_backoff, config.offsets_channel_socket_timeout),
        (ms(1000), ms(10_000))
    );
    assert_eq!(
        (config.exclude_internal_topics, config.partition_assignment_strategy),
        (true, AssignmentStrategy::Range)
    );
}

#[test]
fn troupes_own_defaults() {
    let config = config("");
    assert_eq!((config.queued_max_bytes, config.fetch_response_max_bytes), (16 << 20, 8 << 20));
    assert_eq!((config.fetch_message_max_bytes_limit, config.client_rack.as_deref()), (1 << 20, None));
    assert_eq!(config.drain_timeout, Duration::from_secs(4));
    assert_eq!(
        (config.new_partitions_reset, config.roundrobin_peers),
        (OffsetReset::Smallest, RoundRobinPeers::From1)
    );
    assert_eq!(config.internal_topics_peers, InternalTopicsPeers::From0_11);
    assert_eq!(config.isolation_level, IsolationLevel::ReadUncommitted);
    assert!(config.bootstrap_servers.is_empty());
}

#[test]
fn the_topics_kept_out_of_filters_are_those_of_the_generation_chosen() {
    let kept_out = |more| config(more).kept_out_topics();
    assert_eq!(kept_out(""), ["__consumer_offsets", "__transaction_state"]);
    assert_eq!(kept_out("troupe.internal.topics.peers=0.11"), kept_out(""));
    assert_eq!(kept_out("troupe.internal.topics.peers=before-0.11"), ["__consumer_offsets"]);
    assert!(kept_out("exclude.internal.topics=false").is_empty());
    let refusal = refusal("troupe.internal.topics.peers=0.10");
    assert!(refusal.contains("before-0.11, 0.11"), "{refusal}");
}

#[test]
fn some_defaults_follow_other_properties() {
    let follows = config(
        "zookeeper.session.timeout.ms=9000\nzookeeper.sync.time.ms=700\noffsets.storage=KAFKA\nfetch.message.max.bytes=50000000",
    );
    assert_eq!(follows.zookeeper_connection_timeout, Duration::from_secs(9));
    assert_eq!(follows.rebalance_backoff, Duration::from_millis(700));
    assert_eq!(follows.drain_timeout, Duration::from_millis(1600));
    assert!(follows.dual_commit_enabled);
    assert_eq!((follows.queued_max_bytes, follows.fetch_response_max_bytes), (50_000_000, 50_000_000));
    let fixed = config("offsets.storage=kafka\ndual.commit.enabled=false\nrebalance.max.retries=1");
    assert!(!fixed.dual_commit_enabled);
    assert_eq!(fixed.drain_timeout, Duration::ZERO);
}

#[test]
fn the_builder_takes_typed_values() {
    let built = ConsumerConfig::builder()
        .zookeeper_connect("zk/kafka")
        .group_id("g")
        .consumer_id("fix")
        .consumer_timeout(Duration::from_millis(1500))
        .auto_offset_reset(OffsetReset::None)
        .queued_max_message_chunks(3)
        .exclude_internal_topics(false)
        .build()
        .unwrap();
    let read = config(
        "consumer.id=fix\nconsumer.timeout.ms=1500\nauto.offset.reset=none\nqueued.max.message.chunks=3\nexclude.internal.topics=false",
    );
    assert_eq!(built, read);
    let errors = ConsumerConfig::builder().zookeeper_connect("zk:x").fetch_min_bytes(-1).build().unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.problems().len(), 3, "{text}");
    for part in ["`zookeeper.connect`", "`fetch.min.bytes`", "missing required property `group.id`"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "group.id=a/b\nauto.commit.enable=yes\nfetch.wait.max.ms=40000\nnum.consumer.fetchers=0";
    let errors = ConsumerConfig::from_properties(text).unwrap_err();
    let named: BTreeSet<_> = errors.problems().iter().filter_map(ConfigError::property).collect();
    let expected =
        ["auto.commit.enable", "fetch.wait.max.ms", "group.id", "num.consumer.fetchers", "zookeeper.connect"];
    assert_eq!(named, expected.into());
}

#[test]
fn odd_group_names_of_b27_are_refused() {
    for name in ["a/b", "..", ".", "a b", "", "data/x:y", "p_#1", "<img src=x onerror=1>", "é"] {
        let errors =
            ConsumerConfig::builder().zookeeper_connect("zk").group_id(name).build().expect_err(name);
        assert!(errors.to_string().starts_with("property `group.id`: "), "{errors}");
    }
    assert!(refusal("group.id=a/b").contains(r#"property `group.id`: "a/b" holds '/'"#));
    for name in ["a", "A.b_c-9", "...", &"x".repeat(5000)] {
        assert!(ConsumerConfig::builder().zookeeper_connect("zk").group_id(name).build().is_ok());
    }
    assert!(ConsumerConfig::builder().zookeeper_connect("zk").group_id("x".repeat(40_000)).build().is_err());
}

#[test]
fn values_are_trimmed_and_the_last_counts() {
    assert_eq!(config("group.id= h \nfetch.min.bytes=x\nfetch.min.bytes=\\ 7 \t").fetch_min_bytes, 7);
    assert!(refusal("fetch.min.bytes=7\nfetch.min.bytes=x").contains(r#""x" is not a whole number"#));
}

#[test]
fn values_out_of_bounds_name_the_property() {
    for (line, why) in [
        (
            "zookeeper.session.timeout.ms=1499",
            "`zookeeper.session.timeout.ms`: 1499 ms is less than 1500 ms, below",
        ),
        (
            "fetch.wait.max.ms=30001",
            "`fetch.wait.max.ms`: 30001 ms is more than the 30000 ms of socket.timeout.ms",
        ),
        ("queued.max.message.chunks=0", "`queued.max.message.chunks`: 0 is less than 1"),
        ("auto.commit.interval.ms=0", "`auto.commit.interval.ms`: 0 ms"),
        ("auto.commit.interval.ms=-1", "`auto.commit.interval.ms`: -1 is negative"),
        ("rebalance.max.retries=0", "`rebalance.max.retries`"),
        ("socket.timeout.ms=2147483648", "is not a whole number from"),
        (
            "auto.offset.reset=by_duration:6h",
            "`auto.offset.reset`: \"by_duration:6h\": \"6h\" is not a duration like",
        ),
        ("auto.offset.reset=Smallest", "is none of"),
        ("offsets.storage=disk", "is none of zookeeper, kafka"),
        ("partition.assignment.strategy=sticky", "is none of range, roundrobin"),
        ("exclude.internal.topics=TRUE", "is neither true nor false"),
        ("client.id=a b", "`client.id`"),
        ("consumer.id=a/b", "`consumer.id`"),
        ("zookeeper.connect=zk//a", "is not a chroot"),
        ("troupe.drain.timeout.ms=5501", "is more than 5500 ms (rebalance.backoff.ms x"),
        ("troupe.new.partitions.reset=none", "smallest, largest or a time"),
        ("troupe.queued.max.bytes=1048575", "less than the 1048576 of fetch.message.max.bytes"),
        ("troupe.fetch.response.max.bytes=1", "`troupe.fetch.response.max.bytes`"),
        ("troupe.fetch.message.max.bytes.limit=9", "`troupe.fetch.message.max.bytes.limit`"),
        ("socket.receive.buffer.bytes=big", "`socket.receive.buffer.bytes`"),
        ("kafka.csv.metrics.reporter.enabled=1", "is neither true nor false"),
        ("group.id=\\u12", "line 3 of the properties"),
    ] {
        assert!(refusal(line).contains(why), "{line}: {}", refusal(line));
    }
    let long =
        ConsumerConfig::builder().zookeeper_connect("zk").group_id("g").socket_timeout(Duration::MAX).build();
    assert!(long.unwrap_err().to_string().contains("is more than 2147483647 ms"));
}

#[test]
fn limits_themselves_are_allowed() {
    let config = config(
        "zookeeper.session.timeout.ms=1500\nfetch.wait.max.ms=30000\ntroupe.drain.timeout.ms=5500\n\
         troupe.queued.max.bytes=1048576\nfetch.min.bytes=0\nconsumer.timeout.ms=0",
    );
    assert_eq!(config.consumer_timeout, Some(Duration::ZERO));
}

#[test]
fn properties_without_effect_are_reported_by_name() {
    assert_eq!(notices("no.such=1\nexternal.key=1\nexternals=1"), ["Property no.such is not valid"]);
    assert_eq!(
        notices("groupid=g\nfetcher.backoff.ms=1"),
        [
            "Property groupid is not valid: it is a name of Kafka 0.7, use group.id",
            "Property fetcher.backoff.ms is not valid: it was of Kafka 0.7 and has no successor"
        ]
    );
    let notices = notices("fetch.max.bytes=1\nkafka.metrics.reporters=x.Y\nfetch.max.bytes=2");
    assert_eq!(notices.len(), 2);
    assert!(notices[0].starts_with("Property fetch.max.bytes is not acted on: "));
}

#[test]
fn the_time_outs_of_iterators_and_of_the_end_are_acted_on() {
    assert_eq!(notices("consumer.timeout.ms=4\ntroupe.shutdown.timeout.ms=9000"), [""; 0]);
    let given = config("consumer.timeout.ms=4\ntroupe.shutdown.timeout.ms=9000");
    assert_eq!(given.consumer_timeout, Some(Duration::from_millis(4)));
    assert_eq!(given.shutdown_timeout, Duration::from_secs(9));
    let defaults = config("");
    assert_eq!((defaults.consumer_timeout, defaults.shutdown_timeout), (None, Duration::from_secs(25)));
    assert!(refusal("troupe.shutdown.timeout.ms=0").contains("troupe.shutdown.timeout.ms"));
}

#[test]
fn strict_makes_errors_of_them() {
    let strict = |text: &str| ConsumerConfig::builder().properties(BASE).properties(text).strict().build();
    assert!(strict("external.key=1\nfetch.min.bytes=2").is_ok());
    let errors = strict("no.such=1\nfetch.max.bytes=1\ngroupid=g\nfetch.min.bytes=x").unwrap_err();
    assert_eq!(errors.problems().len(), 4, "{errors}");
    assert!(errors.to_string().contains("Property no.such is not valid"));
}

#[test]
fn pairs_do_as_well_as_text() {
    let pairs = [("zookeeper.connect", "zk/kafka"), ("group.id", "g"), ("no.such", "")];
    let parsed = ConsumerConfig::from_pairs(pairs).unwrap();
    assert_eq!(parsed.config, config(""));
    assert_eq!(parsed.report.len(), 1);
}

/// Keys of the old consumer, with the literal defaults that its documentation gives.
const OLD: [(&str, &str); 34] = [
    ("group.id", "required"),
    ("zookeeper.connect", "required"),
    ("zookeeper.session.timeout.ms", "6000"),
    ("zookeeper.connection.timeout.ms", "zookeeper.session.timeout.ms"),
    ("zookeeper.sync.time.ms", "2000"),
    ("consumer.id", "none"),
    ("client.id", "group.id"),
    ("socket.timeout.ms", "30000"),
    ("socket.receive.buffer.bytes", "65536"),
    ("fetch.message.max.bytes", "1048576"),
    ("num.consumer.fetchers", "1"),
    ("fetch.min.bytes", "1"),
    ("fetch.wait.max.ms", "100"),
    ("fetch.max.bytes", "52428800"),
    ("queued.max.message.chunks", "2"),
    ("auto.commit.enable", "true"),
    ("auto.commit.interval.ms", "60000"),
    ("rebalance.max.retries", "4"),
    ("rebalance.backoff.ms", "zookeeper.sync.time.ms"),
    ("refresh.leader.backoff.ms", "200"),
    ("auto.offset.reset", "largest"),
    ("consumer.timeout.ms", "-1"),
    ("offsets.storage", "zookeeper"),
    ("dual.commit.enabled", "true if offsets.storage is kafka"),
    ("offsets.channel.backoff.ms", "1000"),
    ("offsets.channel.socket.timeout.ms", "10000"),
    ("offsets.commit.max.retries", "5"),
    ("exclude.internal.topics", "true"),
    ("partition.assignment.strategy", "range"),
    ("kafka.metrics.reporters", "none"),
    ("kafka.metrics.polling.interval.secs", "10"),
    ("kafka.csv.metrics.reporter.enabled", "false"),
    ("kafka.csv.metrics.dir", "kafka_metrics"),
    ("isolation.level", "read_uncommitted"),
];

/// What is named as in the newer consumer.
const NEWER: [&str; 4] = ["bootstrap.servers", "check.crcs", "client.rack", "metadata.max.age.ms"];

#[test]
fn the_table_knows_every_old_key_once() {
    for (key, default) in OLD {
        let found: Vec<_> = properties().filter(|property| property.key == key).collect();
        assert_eq!(found.len(), 1, "{key}");
        assert_eq!(found[0].default, default, "{key}");
    }
    let ours = properties().filter(|property| !OLD.iter().any(|(key, _)| *key == property.key));
    for property in ours {
        assert!(property.key.starts_with("troupe.") || NEWER.contains(&property.key), "{}", property.key);
    }
    for (_, successor) in RENAMED {
        assert!(successor.is_none_or(|successor| properties().any(|property| property.key == successor)));
    }
}

#[test]
fn literal_defaults_are_valid_values() {
    for property in properties().filter(|property| {
        !property.default.contains([' ', '.']) && !["required", "none"].contains(&property.default)
    }) {
        let config =
            ConsumerConfig::builder().properties(BASE).property(property.key, property.default).build();
        assert_eq!(config, ConsumerConfig::builder().properties(BASE).build(), "{}", property.key);
    }
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_a_list_of_problems(
        lines in prop::collection::vec((prop::sample::select(OLD.map(|(key, _)| key).to_vec()), ".{0,12}"), 0..8),
    ) {
        match ConsumerConfig::from_pairs(lines) {
            Ok(parsed) => prop_assert!(!parsed.config.group_id.is_empty()),
            Err(errors) => prop_assert!(!errors.problems().is_empty()),
        }
    }

    #[test]
    fn numbers_come_back(retries in 1u32..1_000_000, timeout in 1500u64..2_147_483_647, bytes in 1u32..2_147_483_647) {
        let config = config(&format!(
            "rebalance.max.retries={retries}\nzookeeper.session.timeout.ms={timeout}\nfetch.message.max.bytes={bytes}"
        ));
        prop_assert_eq!(config.rebalance_max_retries, retries);
        prop_assert_eq!(config.zookeeper_session_timeout, Duration::from_millis(timeout));
        prop_assert_eq!(config.fetch_message_max_bytes, bytes);
    }
}
