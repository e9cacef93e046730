//! Metrics as Prometheus text, and to a recorder of the [`metrics`](::metrics) crate. Feature `metrics`.
//!
//! ```no_run
//! # async fn route(system: kafka_troupe::ConsumerHandle) -> String {
//! // the body of GET /metrics, with the type CONTENT_TYPE
//! kafka_troupe::metrics::scrape([&system]).await
//! # }
//! ```
//!
//! [`scrape`] asks systems for their [`StatusSnapshot`] and [`render`]s it. Each text is made from nothing but the
//! snapshots at hand: what a member does not own any more, and a system that has shut down, have no series in the next
//! one. [`emit`] gives a snapshot to the recorder that the application has installed; that one keeps what it was given
//! once, so have it forget what is idle (`PrometheusBuilder::idle_timeout`), and emit more often than that.
//!
//! # Series
//! All have the labels `group` and `consumer_id`; names of topics, streams and so on stand in labels exactly as they
//! are. What is not known has no series; no number stands for it. Members that were
//! [added](crate::ConsumerHandle::subscribe) have series of their own.
//!
#![doc = include_str!("series.md")]
//!
//! Times that add up are gauges, because counters of the `metrics` crate are whole numbers; `rate()` and `increase()`
//! work on them all the same.
//!
//! # From the old consumer's metrics
//! | MBean of the old consumer | here |
//! |---|---|
//! | `kafka.consumer:type=ConsumerFetcherManager,name=MaxLag,clientId=` | `max by (group, consumer_id) (troupe_partition_fetch_lag_records)` |
//! | `kafka.consumer:type=ConsumerFetcherManager,name=MinFetchRate,clientId=` | `min by (group, consumer_id) (rate(troupe_fetch_requests_total[1m]))`; 0 when a fetcher hangs, as there; what it was used for is better seen in `troupe_partition_unfetched_seconds` |
//! | `kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=,topic=,partition=` | `troupe_partition_fetch_lag_records`, from the fetcher's position as there; `troupe_partition_lag_records` is from what was handled. Never -1 or below |
//! | `kafka.server:type=FetcherStats,name=RequestsPerSec,clientId=,brokerHost=,brokerPort=` | `rate(troupe_fetch_requests_total[1m])`; those that failed are in `troupe_fetch_errors_total` |
//! | `kafka.server:type=FetcherStats,name=BytesPerSec,...` | `rate(troupe_fetch_bytes_total[1m])` |
//! | `kafka.consumer:type=ConsumerTopicMetrics,name=MessagesPerSec,clientId=[,topic=]` | `rate(troupe_records_total[1m])`; by topic `sum by (topic) (rate(troupe_partition_records_total[1m]))` |
//! | `kafka.consumer:type=ConsumerTopicMetrics,name=BytesPerSec,...` | `rate(troupe_record_bytes_total[1m])` and `troupe_partition_record_bytes_total`: keys and values handed over; the old one counted what was fetched, which is `troupe_fetch_bytes_total` |
//! | `kafka.consumer:type=FetchRequestAndResponseMetrics,name=FetchRequestRateAndTimeMs,clientId=[,brokerHost=,brokerPort=]` | rate: `troupe_fetch_requests_total`; mean time: `rate(troupe_fetch_spent_seconds[1m]) / rate(troupe_fetch_requests_total[1m])` |
//! | `kafka.consumer:type=FetchRequestAndResponseMetrics,name=FetchResponseSize,...` | mean: `rate(troupe_fetch_bytes_total[1m]) / rate(troupe_fetch_requests_total[1m])`; no percentiles |
//! | `kafka.consumer:type=FetchRequestAndResponseMetrics,name=FetchRequestThrottleRateAndTimeMs,...` | none: a throttled fetch is late, which shows in `troupe_fetch_spent_seconds`; the quota's own metrics are the broker's |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=KafkaCommitsPerSec,clientId=` | `rate(troupe_commits_total{store="kafka"}[1m])` |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=ZooKeeperCommitsPerSec,clientId=` | `rate(troupe_commits_total{store="zookeeper"}[1m])` |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=RebalanceRateAndTime,clientId=` | `rate(troupe_rebalances_total[5m])`, `troupe_rebalance_spent_seconds`, `troupe_last_rebalance_seconds` |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=OwnedPartitionsCount,clientId=,groupId=[,topic=]` | `troupe_owned_partitions`, by topic |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=FetchQueueSize,clientId=,topic=,threadId=` | `troupe_stream_queued_chunks`; its `stream` is topic and thread index |
//! | `kafka.consumer:type=ZookeeperConsumerConnector,name=yammer-metrics-count` | none: there is no registry that could leak |
//! | `kafka.producer:type=ProducerRequestMetrics,name=ProducerRequestRateAndTimeMs`, `ProducerRequestSize`, `ProducerRequestThrottleRateAndTimeMs` | none: it was the old consumer's way of asking for metadata; of `bootstrap.servers`, `troupe_topic_metadata_polls_total` |
//! | `kafka.common:type=AppInfo,name=Version`, `CommitID` | `troupe_member_info{version=}` |
//! | the label `clientId` | `troupe_member_info{client_id=}`, to be joined on `consumer_id` |

mod emitter;
mod families;
mod member;

use std::borrow::Cow;

use futures_util::future::join_all;
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::{ConsumerHandle, StatusSnapshot};
use emitter::Emitter;

/// The `Content-Type` of [`render`]'s text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Asks these systems how they stand, and writes it as Prometheus text. One that has shut down has no series.
pub async fn scrape(systems: impl IntoIterator<Item = &ConsumerHandle>) -> String {
    let answers = join_all(systems.into_iter().map(ConsumerHandle::metrics)).await;
    render(&answers.into_iter().flatten().collect::<Vec<_>>())
}

/// Snapshots, and those of the members added to them, as Prometheus text (version 0.0.4).
pub fn render(snapshots: &[StatusSnapshot]) -> String {
    // one that is kept would keep the series of what is gone
    let recorder = PrometheusBuilder::new().build_recorder();
    ::metrics::with_local_recorder(&recorder, || {
        families::describe();
        snapshots.iter().for_each(|snapshot| emit_as(snapshot, escaped));
    });
    recorder.handle().render()
}

/// Gives a snapshot, and those of the members added to it, to the current recorder of the [`metrics`] crate.
pub fn emit(snapshot: &StatusSnapshot) {
    families::describe();
    emit_as(snapshot, |label| Cow::Borrowed(label));
}

fn emit_as(snapshot: &StatusSnapshot, label: fn(&str) -> Cow<'_, str>) {
    member::emit(snapshot, &Emitter::new(snapshot, label));
    snapshot.added.iter().for_each(|added| emit_as(added, label));
}

/// The exporter escapes quotes and line ends, but takes two backslashes for one that is escaped already, and one before
/// a quote for nothing; given doubled ones, it writes what was meant.
/// (`labels_come_back_exactly_whatever_is_in_them`)
fn escaped(label: &str) -> Cow<'_, str> {
    if label.contains('\\') { Cow::Owned(label.replace('\\', "\\\\")) } else { Cow::Borrowed(label) }
}
