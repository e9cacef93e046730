//! The names of all series, and what they say.

/// What a number does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only goes up while the member runs.
    Counter,
    /// It may go down.
    Gauge,
}

use Kind::{Counter, Gauge};

/// Name, kind, labels besides `group` and `consumer_id`, and what it says. The table in `series.md` is this one.
pub(super) const FAMILIES: &[(&str, Kind, &str, &str)] = &[
    ("troupe_member_info", Gauge, "client_id, version", "1: which client.id and version of Troupe this is"),
    (
        "troupe_health",
        Gauge,
        "state",
        "1 for the state that it is in of healthy, rebalancing, suspended and failing, 0 for the others",
    ),
    ("troupe_records_total", Counter, "", "Records handed over"),
    ("troupe_record_bytes_total", Counter, "", "Bytes of keys and values handed over"),
    ("troupe_owned_partitions", Gauge, "topic", "Partitions owned"),
    ("troupe_waiting_partitions", Gauge, "", "Owned partitions that no broker is asked for now"),
    (
        "troupe_session_state",
        Gauge,
        "state",
        "1 for the state that the ZooKeeper session is in of connecting, connected, suspended and expired",
    ),
    ("troupe_session_timeout_seconds", Gauge, "", "The session timeout that ZooKeeper granted"),
    (
        "troupe_session_lease_seconds",
        Gauge,
        "",
        "How long records may still be handed over without another heartbeat answered; 0: none are",
    ),
    ("troupe_rebalances_total", Counter, "", "Rebalances carried through"),
    (
        "troupe_rebalance_spent_seconds",
        Gauge,
        "",
        "Time that rebalances took in all, with those that failed and pauses between",
    ),
    ("troupe_last_rebalance_seconds", Gauge, "", "How long the last rebalance took"),
    ("troupe_last_rebalance_timestamp_seconds", Gauge, "", "When the last rebalance began"),
    (
        "troupe_peer_fault_partitions",
        Gauge,
        "member, problem",
        "Partitions of which another member does not do what the plan says",
    ),
    (
        "troupe_partition_lag_records",
        Gauge,
        "topic, partition",
        "Records from the acknowledged position to the end of the partition",
    ),
    (
        "troupe_partition_fetch_lag_records",
        Gauge,
        "topic, partition",
        "Records from the fetcher's position to the end of the partition",
    ),
    ("troupe_partition_fetched_offset", Gauge, "topic, partition", "The next offset to fetch"),
    ("troupe_partition_delivered_offset", Gauge, "topic, partition", "The next offset to hand over"),
    ("troupe_partition_acked_offset", Gauge, "topic, partition", "The next offset to be handled"),
    ("troupe_partition_committed_offset", Gauge, "topic, partition", "The offset that is stored"),
    ("troupe_partition_end_offset", Gauge, "topic, partition", "The end of the partition at the last fetch"),
    ("troupe_partition_owned_timestamp_seconds", Gauge, "topic, partition", "Since when it is owned"),
    (
        "troupe_partition_commit_timestamp_seconds",
        Gauge,
        "topic, partition",
        "When its commit succeeded last, also one that had nothing new to store",
    ),
    (
        "troupe_partition_commit_failing_seconds",
        Gauge,
        "topic, partition",
        "Since how long its commits fail; 0: the last succeeded",
    ),
    (
        "troupe_partition_unfetched_seconds",
        Gauge,
        "topic, partition",
        "Since how long it cannot be fetched; 0: it can",
    ),
    (
        "troupe_partition_halted",
        Gauge,
        "topic, partition, reason",
        "1: it is owned and not handed over, for this reason: paused, topic_paused, failed or unreadable",
    ),
    (
        "troupe_partition_stuck_seconds",
        Gauge,
        "topic, partition",
        "Since how long its handler does not get on with a record, once that is troupe.handler.stuck.ms; 0: it does",
    ),
    (
        "troupe_partition_records_total",
        Counter,
        "topic, partition",
        "Records handed over, under this claim and earlier ones",
    ),
    (
        "troupe_partition_record_bytes_total",
        Counter,
        "topic, partition",
        "Bytes of keys and values handed over, under this claim and earlier ones",
    ),
    (
        "troupe_stream_queued_chunks",
        Gauge,
        "stream",
        "Chunks queued or being handled, up to queued.max.message.chunks",
    ),
    ("troupe_stream_queued_bytes", Gauge, "stream", "Their bytes, up to troupe.queued.max.bytes"),
    (
        "troupe_stream_in_flight",
        Gauge,
        "stream",
        "Records with its handler now; where it takes batches, or is pulled, partitions of which some are",
    ),
    ("troupe_stream_chunks_total", Counter, "stream", "Chunks received"),
    (
        "troupe_stream_handler_restarts_total",
        Counter,
        "stream",
        "How often its handler ended and was made anew",
    ),
    ("troupe_stream_skipped_total", Counter, "stream", "Records that its failure policy has skipped"),
    (
        "troupe_stream_dead_letters_total",
        Counter,
        "stream",
        "Records that its failure policy has written to a dead-letter topic",
    ),
    ("troupe_stream_stopped", Gauge, "stream", "1: its failure policy has stopped it"),
    ("troupe_dead_letters_written_total", Counter, "", "Dead letters written, by all in-sync replicas"),
    ("troupe_dead_letter_failures_total", Counter, "", "Tries to write a dead letter that failed"),
    ("troupe_commits_total", Counter, "store", "Offsets written to zookeeper and to kafka"),
    ("troupe_commit_failures_total", Counter, "", "Commits of a partition that failed"),
    ("troupe_fetch_requests_total", Counter, "broker, fetcher, address", "Fetch requests answered"),
    (
        "troupe_fetch_errors_total",
        Counter,
        "broker, fetcher, address",
        "Fetch requests and connections that failed",
    ),
    ("troupe_fetch_bytes_total", Counter, "broker, fetcher, address", "Bytes of record batches received"),
    (
        "troupe_fetch_spent_seconds",
        Gauge,
        "broker, fetcher, address",
        "Time from fetch requests to their answers in all, with the wait for data",
    ),
    ("troupe_fetch_connected", Gauge, "broker, fetcher, address", "1: the last request was answered"),
    ("troupe_fetch_partitions", Gauge, "broker, fetcher, address", "Partitions fetched from it"),
    ("troupe_actor_messages_total", Counter, "actor", "Messages that it has handled"),
    ("troupe_actor_restarts_total", Counter, "actor", "How often it was restarted"),
    (
        "troupe_actor_answer_seconds",
        Gauge,
        "actor",
        "How long it took to answer for this picture, after what waits in its mailbox; missing when it did not within a second",
    ),
    ("troupe_listener_asked_total", Counter, "", "How often the rebalance listener was asked"),
    ("troupe_listener_late_total", Counter, "", "How often it did not answer in time"),
    ("troupe_listener_failed_total", Counter, "", "How often it had panicked or stopped"),
    ("troupe_topic_metadata_polls_total", Counter, "", "Polls of bootstrap.servers that were answered"),
    ("troupe_topic_metadata_age_seconds", Gauge, "", "How old what they told is"),
];

/// Tells the current recorder.
pub(super) fn describe() {
    for &(name, kind, _, help) in FAMILIES {
        match kind {
            Counter => ::metrics::describe_counter!(name, help),
            Gauge => ::metrics::describe_gauge!(name, help),
        }
    }
}
