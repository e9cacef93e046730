//! What a restarted coordinator finds of its earlier life.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use std::time::Duration;

use futures_util::future::join_all;

use super::{CoordinatorParts, Znodes};
use crate::fetcher_manager::StopFetching;
use crate::offset_committer::FlushGeneration;
use crate::zk_session;

/// Owner nodes that are our session's, with nothing delivered from them.
pub(super) struct Found {
    pub(super) session: SessionNumber,
    pub(super) generation: Generation,
    pub(super) nodes: Vec<(TopicPartition, ConsumerThreadId)>,
}

/// Stops whatever still runs, and reads which owner nodes are ours. None on a first start.
pub(super) fn recover(
    parts: &CoordinatorParts,
    znodes: Znodes,
) -> impl Future<Output = Option<Found>> + use<> {
    let (session, committer, fetchers) =
        (parts.session.clone(), parts.committer.clone(), parts.fetchers.clone());
    let (registry, consumer) = (parts.registry.clone(), parts.consumer_id.as_str().to_owned());
    let limit: Duration = parts.config.drain_timeout;
    async move {
        let left = registry.all();
        let generation = left.iter().map(|partition| partition.generation).max().unwrap_or_default();
        for partition in &left {
            partition.close();
            registry.remove(&partition.topic_partition);
        }
        if !left.is_empty() {
            fetchers.do_send(StopFetching(
                left.iter().map(|partition| partition.topic_partition.clone()).collect(),
            ));
            join_all(left.iter().map(|partition| super::effects::drain(partition, limit))).await;
            // what is not committed is delivered again
            let _ = committer.send(FlushGeneration(left)).await;
        }
        let status = session.send(zk_session::Describe).await.ok()?;
        let session = SessionNumber(status.id?);
        let nodes = owned_nodes(&znodes, session, &consumer).await;
        Some(Found { session, generation, nodes })
    }
}

async fn owned_nodes(
    znodes: &Znodes,
    session: SessionNumber,
    consumer: &str,
) -> Vec<(TopicPartition, ConsumerThreadId)> {
    let mut nodes = Vec::new();
    for topic in znodes.children(&znodes.paths.owners(), false).await.unwrap_or_default() {
        let partitions = znodes.children(&znodes.paths.owner_topic(&topic), false).await.unwrap_or_default();
        for partition in partitions.iter().filter_map(|name| name.parse().ok()) {
            let tp = TopicPartition::new(topic.as_str(), partition);
            // watched, so that a change between this and the next rebalance is noticed
            let Ok(Some(owner)) = znodes.owner(&tp, true).await else { continue };
            let thread = ConsumerThreadId::parse(&owner.thread).ok();
            if let Some(thread) =
                thread.filter(|thread| owner.session == session && thread.consumer() == consumer)
            {
                nodes.push((tp, thread));
            }
        }
    }
    nodes
}
