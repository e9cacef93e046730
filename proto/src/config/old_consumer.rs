//! What there was before: the keys of the old consumer and how Troupe differs, and keys of other consumers that are
//! found in the same files.

/// A key of the old consumer (`kafka.consumer.ConsumerConfig` of 0.8.2 to 1.1).
pub(super) struct OldKey {
    pub key: &'static str,
    /// Its default there, as in this table of properties.
    pub default: &'static str,
    /// How Troupe differs in what it does with it.
    pub differs: Option<&'static str>,
}

const fn same(key: &'static str, default: &'static str) -> OldKey {
    OldKey { key, default, differs: None }
}

const fn differs(key: &'static str, default: &'static str, how: &'static str) -> OldKey {
    OldKey { key, default, differs: Some(how) }
}

/// Every key that the old consumer reads, of all its versions.
pub(super) const OLD_KEYS: &[OldKey] = &[
    differs("group.id", "required", "a name that is empty, `.` or `..` is refused"),
    differs(
        "zookeeper.connect",
        "required",
        "spaces, a slash at the end and a chroot after each host are understood; a chroot that does not exist is an error, \
         and never made",
    ),
    differs(
        "zookeeper.session.timeout.ms",
        "6000",
        "at least 1500; and without an answer from ZooKeeper for two thirds of it, nothing is delivered any more, so that \
         no other member has the partition yet",
    ),
    same("zookeeper.connection.timeout.ms", "zookeeper.session.timeout.ms"),
    same("zookeeper.sync.time.ms", "2000"),
    same("consumer.id", "none"),
    same("client.id", "group.id"),
    same("socket.timeout.ms", "30000"),
    same("socket.receive.buffer.bytes", "65536"),
    differs(
        "fetch.message.max.bytes",
        "1048576",
        "a larger message does not end the stream: brokers from 0.10.1 send it all the same; from older ones see \
         troupe.fetch.message.max.bytes.limit",
    ),
    same("num.consumer.fetchers", "1"),
    same("fetch.min.bytes", "1"),
    same("fetch.wait.max.ms", "100"),
    same("fetch.max.bytes", "52428800"),
    differs(
        "queued.max.message.chunks",
        "2",
        "a full queue does not hold up other streams, and troupe.queued.max.bytes bounds it as well",
    ),
    differs("auto.commit.enable", "true", "what is committed is what was handled, not what was handed out"),
    same("auto.commit.interval.ms", "60000"),
    differs(
        "rebalance.max.retries",
        "4",
        "after so many attempts Troupe says that it is failing, and goes on trying",
    ),
    differs(
        "rebalance.backoff.ms",
        "zookeeper.sync.time.ms",
        "between attempts that failed only: a partition that another member still owns is waited for, and claimed when it \
         is free",
    ),
    same("refresh.leader.backoff.ms", "200"),
    differs(
        "auto.offset.reset",
        "largest",
        "earliest, latest, none and times are understood too; where it starts is committed before the first record; \
         partitions that appear under a running group start by troupe.new.partitions.reset",
    ),
    differs("consumer.timeout.ms", "-1", "for blocking iterators only; one that has timed out may go on"),
    differs(
        "offsets.storage",
        "zookeeper",
        "in ZooKeeper a member that has lost a partition cannot commit it any more",
    ),
    differs("dual.commit.enabled", "true if offsets.storage is kafka", "ZooKeeper is written first"),
    same("offsets.channel.backoff.ms", "1000"),
    differs(
        "offsets.channel.socket.timeout.ms",
        "10000",
        "a commit has no longer than the session's lease: two thirds of zookeeper.session.timeout.ms",
    ),
    same("offsets.commit.max.retries", "5"),
    differs(
        "exclude.internal.topics",
        "true",
        "which topics are internal is chosen by troupe.internal.topics.peers, for groups with members before 0.11",
    ),
    differs(
        "partition.assignment.strategy",
        "range",
        "roundrobin in a group with members before 1.0 needs troupe.roundrobin.peers=before-1.0",
    ),
    same("kafka.metrics.reporters", "none"),
    same("kafka.metrics.polling.interval.secs", "10"),
    same("kafka.csv.metrics.reporter.enabled", "false"),
    same("kafka.csv.metrics.dir", "kafka_metrics"),
];

/// Keys that are found in such files and that the old consumer never acted on, and what to do.
pub(super) const NEVER_ACTED_ON: &[(&str, &str)] = &[
    ("mirror.topics.whitelist", "the old consumer has the name and does not use it; it was MirrorMaker's"),
    ("mirror.topics.blacklist", "the old consumer has the name and does not use it; it was MirrorMaker's"),
    ("mirror.consumer.numthreads", "the old consumer has the name and does not use it; it was MirrorMaker's"),
    ("enable.auto.commit", "it is the Java consumer's: use auto.commit.enable"),
    ("session.timeout.ms", "it is the Java consumer's: use zookeeper.session.timeout.ms"),
    ("heartbeat.interval.ms", "it is the Java consumer's: ZooKeeper's session is kept alive by itself"),
    (
        "max.poll.records",
        "it is the Java consumer's: handlers are given records, or batches of the size they name",
    ),
    (
        "max.poll.interval.ms",
        "it is the Java consumer's: a handler that takes long is reported after troupe.handler.stuck.ms",
    ),
    ("max.partition.fetch.bytes", "it is the Java consumer's: use fetch.message.max.bytes"),
    ("fetch.max.wait.ms", "it is the Java consumer's: use fetch.wait.max.ms"),
    ("receive.buffer.bytes", "it is the Java consumer's: the operating system sizes the receive buffer"),
    ("request.timeout.ms", "it is the Java consumer's: use socket.timeout.ms"),
    ("key.deserializer", "it is the Java consumer's: a subscription has its decoder"),
    ("value.deserializer", "it is the Java consumer's: a subscription has its decoder"),
    (
        "retry.backoff.ms",
        "it is the Java consumer's: use refresh.leader.backoff.ms, or offsets.channel.backoff.ms for commits",
    ),
    ("group.instance.id", "it is the Java consumer's: use consumer.id"),
    ("security.protocol", "it is the Java consumer's: brokers are talked to without TLS and SASL"),
];
