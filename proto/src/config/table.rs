//! The table of properties: the one place where each is declared.

use std::fmt::Display;
use std::time::Duration;

use super::checks;
use super::choices::{
    AssignmentStrategy, InternalTopicsPeers, IsolationLevel, OffsetsStorage, RoundRobinPeers,
};
use super::declare::{declare, default, describe, first};
use super::errors::{ConfigError, PropertyNotice};
use super::offset_reset::OffsetReset;
use super::property::{Effect, Property, PropertyValue, REQUIRED, given, parse_default};
use super::servers::BootstrapServers;
use crate::zk::connect_string::ConnectString;

declare! {
    acted_on {
        zookeeper_connect: ConnectString {
            "zookeeper.connect", "host:port,host:port/chroot", default "required" => parse_default("localhost");
            "The ZooKeeper ensemble of the Kafka cluster. The chroot must exist; it is never made."
        }
        group_id: String {
            "group.id", "name", default "required" => String::new(), check checks::group_id;
            "The consumer group. Its members share the partitions of the topics that they subscribe to."
        }
        consumer_id: Option<String>, set by String {
            "consumer.id", "name", default "none" => None, check checks::consumer_id;
            "Replaces the host, time and random part of the member's id. Two members with one id keep each other out; without, a member that comes back is a new one."
        }
        client_id: String {
            "client.id", "name", default "group.id" => group_id.clone(), check checks::client_id;
            "Names this client in requests, for the brokers' logs, metrics and quotas. May be empty."
        }
        zookeeper_session_timeout: Duration {
            "zookeeper.session.timeout.ms", "milliseconds", default "6000", check checks::session_timeout;
            "How long a silent member keeps its partitions. Short: partitions of a dead member move soon. Long: pauses and cut networks are survived. At least 1500; the server may grant another."
        }
        zookeeper_connection_timeout: Duration {
            "zookeeper.connection.timeout.ms", "milliseconds", default "zookeeper.session.timeout.ms" => zookeeper_session_timeout,
            check checks::millis::<1>;
            "How long the first connection to ZooKeeper may take before starting fails."
        }
        zookeeper_sync_time: Duration {
            "zookeeper.sync.time.ms", "milliseconds", default "2000", check checks::millis::<0>;
            "How far a ZooKeeper follower may be behind; used only as the default of rebalance.backoff.ms."
        }
        auto_offset_reset: OffsetReset {
            "auto.offset.reset", "smallest, largest, none, by_duration:PnDTnHnMnS or to_time:milliseconds-since-1970", default "largest";
            "Where a partition starts that has no committed offset, one that is no longer stored, or one of an earlier topic of that name. `largest` misses what was written before, and logs how much; `smallest` may deliver much again; `none` reports an error; `by_duration:PT6H` (six hours ago, KIP-1106) and `to_time` start at the first record of that time or younger, else at the end. On brokers from 0.10.1 the topic must have message format 0.10 or later; older brokers give the start of a log segment before it."
        }
        offsets_storage: OffsetsStorage {
            "offsets.storage", "zookeeper or kafka", default "zookeeper";
            "Where offsets are committed. Only in ZooKeeper are commits fenced against a member that lost the partition. Kafka takes many commits more cheaply, and is told all of them each time, for brokers drop what was not committed for offsets.retention.minutes. It needs brokers from 0.8.2 (from 0.9 where members of the old consumer from 0.9 are in the group)."
        }
        dual_commit_enabled: bool {
            "dual.commit.enabled", "true or false", default "true if offsets.storage is kafka" => offsets_storage == OffsetsStorage::Kafka;
            "With offsets.storage=kafka, commits to ZooKeeper as well, for members that still read there, and reads the larger of both. ZooKeeper goes first: who finds there that it has lost a partition commits it nowhere (what ZooKeeper has already is not written there, and refreshed in Kafka unchecked). Ignored with offsets.storage=zookeeper."
        }
        auto_commit_enable: bool {
            "auto.commit.enable", "true or false", default "true";
            "Commits acknowledged offsets from time to time, when a partition is released, and at the end. If false, only your own commits and those of Builder::commit_after."
        }
        auto_commit_interval: Duration {
            "auto.commit.interval.ms", "milliseconds", default "60000", check checks::millis::<1>;
            "Time between automatic commits. Short: less is delivered again after a crash. Long: fewer writes."
        }
        offsets_commit_max_retries: u32 {
            "offsets.commit.max.retries", "count", default "5", check checks::at_least::<0>;
            "With offsets.storage=kafka, how often a commit, or a read of committed offsets, that failed is tried again before it is reported as failed; the next one tries anew. While a partition is released, until troupe.drain.timeout.ms is over. ZooKeeper's are tried again by the next commit."
        }
        offsets_channel_backoff: Duration {
            "offsets.channel.backoff.ms", "milliseconds", default "1000", check checks::millis::<1>;
            "With offsets.storage=kafka, the pause before a commit, or a read of committed offsets, is tried again, and before the group's coordinator is looked up again."
        }
        offsets_channel_socket_timeout: Duration {
            "offsets.channel.socket.timeout.ms", "milliseconds", default "10000", check checks::millis::<1>;
            "With offsets.storage=kafka, how long connecting to the group's coordinator, and its answer, may take. A commit has no longer than the session's lease (at most two thirds of zookeeper.session.timeout.ms), for afterwards the partition may be another member's. A release waits that long for the answer to a commit that is under way: short, where others should not wait."
        }
        partition_assignment_strategy: AssignmentStrategy {
            "partition.assignment.strategy", "range or roundrobin", default "range";
            "How partitions are dealt out. Not recorded in ZooKeeper: members that differ never settle."
        }
        roundrobin_peers: RoundRobinPeers {
            "troupe.roundrobin.peers", "before-1.0 or 1.0", default "1.0";
            "With roundrobin, which members to be in step with: Kafka 1.0 changed the order of partitions."
        }
        exclude_internal_topics: bool {
            "exclude.internal.topics", "true or false", default "true";
            "Keeps Kafka's own topics out of white and black lists. Topics subscribed to by name are not concerned."
        }
        internal_topics_peers: InternalTopicsPeers {
            "troupe.internal.topics.peers", "before-0.11 or 0.11", default "0.11";
            "With exclude.internal.topics, which members to be in step with: before Kafka 0.11 `__transaction_state` is not internal, so a filter such as `.*` takes it in."
        }
        rebalance_max_retries: u32 {
            "rebalance.max.retries", "count", default "4", check checks::at_least::<1>;
            "Attempts at a rebalance. The old consumer gives up after them; Troupe reports that it is failing, and goes on."
        }
        rebalance_backoff: Duration {
            "rebalance.backoff.ms", "milliseconds", default "zookeeper.sync.time.ms" => zookeeper_sync_time,
            check checks::millis::<1>;
            "Pause between attempts at a rebalance. Short: settles sooner. Long: fewer reads of ZooKeeper, and more time for the old owner to finish."
        }
        drain_timeout: Duration {
            "troupe.drain.timeout.ms", "milliseconds",
            default "min(4000, rebalance.backoff.ms x (rebalance.max.retries - 1) - 500)"
                => checks::default_drain(rebalance_backoff, rebalance_max_retries),
            check checks::millis::<0>;
            "How long handlers may go on with the records of a partition that moves away. What is not finished then is handled again by the next owner. Bounded by what a Scala member waits. With a rebalance listener they have three quarters of it, and the listener the rest."
        }
        shutdown_timeout: Duration {
            "troupe.shutdown.timeout.ms", "milliseconds", default "25000", check checks::millis::<1>;
            "How long the end of the process waits for this member to leave its group, when it is told to by SIGTERM or its actix System ends first. Longer than troupe.drain.timeout.ms, so that there is time for the last commit; shorter than what ends the process by force (Kubernetes: 30 s)."
        }
        handler_stuck: Duration {
            "troupe.handler.stuck.ms", "milliseconds", default "30000", check checks::millis::<0>;
            "How long a handler may take for one record (or batch) before it is reported as stuck, with partition, offset and time; it is left alone. Looked at once a second. Short: noticed sooner, and slow ones as well. 0: never."
        }
        new_partitions_reset: OffsetReset {
            "troupe.new.partitions.reset", "smallest, largest, by_duration:PnDTnHnMnS or to_time:milliseconds-since-1970", default "smallest", check checks::new_partitions_reset;
            "Where partitions start that appear under a running group, also those of a topic that was deleted and made again. `smallest` misses nothing; the old consumer goes by auto.offset.reset. `largest` passes over what was written before the partition was noticed, and logs how much (`skipped`)."
        }
        consumer_timeout: Option<Duration>, set by Duration {
            "consumer.timeout.ms", "milliseconds, negative for none", default "-1", check checks::optional_millis;
            "How long a blocking iterator (KafkaStream::blocking) waits for a record before it reports a time-out, after which it may go on. Asynchronous streams wait without end: put a time-out of your own around them."
        }
        isolation_level: IsolationLevel {
            "isolation.level", "read_uncommitted or read_committed", default "read_uncommitted";
            "Which records of transactions are delivered: all, as the old consumer does, or those that are committed; then nothing after the first open transaction is read. Transaction markers are never delivered. Brokers before 0.11 have no transactions."
        }
        check_crcs: bool {
            "check.crcs", "true or false", default "true";
            "Checks the checksum of every batch (or message), as the old consumer always does. `false` saves some processor time, and takes damaged data for good."
        }
        decompressed_batch_max_bytes: u32 {
            "troupe.decompressed.batch.max.bytes", "bytes", default "67108864", check checks::at_least::<1>;
            "Bytes that one compressed batch may come to. Bounds what a small batch can take in memory; a larger one is reported as unreadable."
        }
        bootstrap_servers: BootstrapServers {
            "bootstrap.servers", "host:port,host:port", default "none" => BootstrapServers::default();
            "Brokers to ask for topics, partitions and brokers. Set it where Kafka has no ZooKeeper (4.0 and later, or KRaft): zookeeper.connect is then an ensemble for the group alone. Leave it empty where `/brokers` stands in ZooKeeper, where changes are seen at once: with it a member may learn of new partitions after metadata.max.age.ms only, and members of the old consumer may give up waiting for it."
        }
        metadata_max_age: Duration {
            "metadata.max.age.ms", "milliseconds", default "5000", check checks::millis::<1>;
            "With bootstrap.servers, the time between two looks at topics and brokers: so late may new partitions be read, and members differ in what they know. The Java consumer's default is 300000; here it takes the place of ZooKeeper's watches."
        }
        client_rack: Option<String>, set by String {
            "client.rack", "name", default "none" => None, check checks::client_rack;
            "Where this client runs. Brokers of 2.4 and later with a replica selector then tell us to read from a replica in that rack, which may lag behind the leader. Troupe's own, the old consumer does not know it."
        }
        socket_timeout: Duration {
            "socket.timeout.ms", "milliseconds", default "30000", check checks::millis::<1>;
            "How long connecting to a broker, and its answer, may take. Must not be less than fetch.wait.max.ms."
        }
        num_consumer_fetchers: u32 {
            "num.consumer.fetchers", "count", default "1", check checks::at_least::<1>;
            "Connections to fetch by, per broker; each has its share of the partitions, the same as the old consumer's. More may use a fast network better, at the price of more requests."
        }
        fetch_message_max_bytes: u32 {
            "fetch.message.max.bytes", "bytes", default "1048576", check checks::at_least::<1>;
            "Bytes to fetch per partition and request. Must hold the largest message where brokers are older than 0.10.1; more means fewer requests and more memory."
        }
        fetch_message_max_bytes_limit: u32 {
            "troupe.fetch.message.max.bytes.limit", "bytes", default "fetch.message.max.bytes" => fetch_message_max_bytes,
            check checks::at_least::<1>;
            "With brokers older than 0.10.1, how far the fetch of a partition may grow for a message larger than fetch.message.max.bytes, for that message only. By default it does not: such a message is reported, and its partition waits until it is gone or the limit is raised."
        }
        fetch_response_max_bytes: u32 {
            "troupe.fetch.response.max.bytes", "bytes", default "8388608, at least fetch.message.max.bytes"
                => fetch_message_max_bytes.max(8 << 20),
            check checks::at_least::<1>;
            "Bytes to fetch per request, over all its partitions, from brokers of 0.10.1 and later. Bounds what a broker's answer takes in memory."
        }
        fetch_min_bytes: u32 {
            "fetch.min.bytes", "bytes", default "1", check checks::at_least::<0>;
            "Bytes that a broker waits for, at most fetch.wait.max.ms, before it answers. More means fewer requests and more delay."
        }
        fetch_wait_max: Duration {
            "fetch.wait.max.ms", "milliseconds", default "100", check checks::millis::<0>;
            "How long a broker waits for fetch.min.bytes. Long: fewer requests to idle brokers."
        }
        refresh_leader_backoff: Duration {
            "refresh.leader.backoff.ms", "milliseconds", default "200", check checks::millis::<1>;
            "Pause before leaders of partitions are looked up again, and before a failed fetch is repeated."
        }
        queued_max_message_chunks: u32 {
            "queued.max.message.chunks", "count", default "2", check checks::at_least::<1>;
            "Fetched chunks that wait in a stream's queue. More evens out bursts, for up to fetch.message.max.bytes each."
        }
        queued_max_bytes: u32 {
            "troupe.queued.max.bytes", "bytes", default "16777216, at least fetch.message.max.bytes"
                => fetch_message_max_bytes.max(16 << 20),
            check checks::at_least::<1>;
            "Bytes that wait in a stream's queue. Bounds memory where queued.max.message.chunks does not."
        }
    }
    not_acted_on {
        "socket.receive.buffer.bytes": i32, "bytes", default "65536"; "the operating system sizes the receive buffer"
        "fetch.max.bytes": i32, "bytes", default "52428800"; "the old consumer did not use it either; see troupe.fetch.response.max.bytes"
        "kafka.metrics.reporters": String, "classes", default "none"; "there are no Java classes to load; read the metrics of the system instead"
        "kafka.metrics.polling.interval.secs": i32, "seconds", default "10"; "there are no metrics reporters; read the metrics of the system instead"
        "kafka.csv.metrics.reporter.enabled": bool, "true or false", default "false"; "there are no metrics reporters; read the metrics of the system instead"
        "kafka.csv.metrics.dir": String, "path", default "kafka_metrics"; "there are no metrics reporters; read the metrics of the system instead"
    }
}
