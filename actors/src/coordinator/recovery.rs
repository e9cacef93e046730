//! What a restarted coordinator finds of its earlier life.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, Owner, SessionNumber};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::{CoordinatorParts, Znodes};
use crate::fetcher_manager::StopFetching;
use crate::offset_committer::FlushGeneration;
use crate::rebalance_listener::{Occasion, ReleaseQuestion, ReleaseReason};
use crate::supervise::Slot;
use crate::zk_session::{self, SessionEpoch, ZkError, ZkSession};

/// Owner nodes that are our session's, with nothing delivered from them.
pub(super) struct Found {
    pub(super) session: SessionNumber,
    pub(super) epoch: SessionEpoch,
    pub(super) generation: Generation,
    pub(super) nodes: Nodes,
}

type Nodes = Vec<(TopicPartition, Owner)>;

/// Pause before the nodes are read again.
const RETRY: Duration = Duration::from_millis(200);

/// Stops whatever still runs, and reads which owner nodes are ours. None on a first start.
pub(super) fn recover(
    parts: &CoordinatorParts,
    znodes: Znodes,
) -> impl Future<Output = Option<Found>> + use<> {
    let (session, committer, fetchers) =
        (parts.session.clone(), parts.committer.clone(), parts.fetchers.clone());
    let (registry, consumer) = (parts.registry.clone(), parts.consumer_id.as_str().to_owned());
    let limit: Duration = parts.config.drain_timeout;
    let listener = parts.listener.clone();
    async move {
        let left = registry.committable();
        let generation = left.iter().map(|partition| partition.generation).max().unwrap_or_default();
        let end = Instant::now() + limit;
        let question =
            ReleaseQuestion::about_all(listener, Occasion { consumer_id: consumer.clone(), generation });
        for partition in &left {
            partition.close();
            registry.retire(&partition.topic_partition);
        }
        if !left.is_empty() {
            fetchers.do_send(StopFetching(
                left.iter().map(|partition| partition.topic_partition.clone()).collect(),
            ));
            let share = question.share_of_handlers(limit);
            join_all(left.iter().map(|partition| super::effects::drain(partition, share))).await;
        }
        question.ask(&left, ReleaseReason::Restarted, end.saturating_duration_since(Instant::now())).await;
        // also without any: the flush of the last coordinator may still wait for its turn, and must not come after the
        // read of where it stopped. What is not committed is delivered again
        let _ = committer.send(FlushGeneration { partitions: registry.settle(left), until: end }).await;
        let found = find_all(&session, &znodes).await;
        found.map(|(session, epoch, nodes)| Found { session, epoch, generation, nodes })
    }
}

/// Tries until it can be told: a node of ours that is missed now is held until the session ends, and those who wait for
/// it wait as long.
async fn find_all(
    session: &Slot<ZkSession>,
    znodes: &Znodes,
) -> Option<(SessionNumber, SessionEpoch, Nodes)> {
    loop {
        match find(session, znodes).await {
            Ok(found) => return found,
            Err(why) => {
                tracing::warn!(why, "cannot read which owner nodes are ours; trying again");
                sleep(RETRY).await;
            }
        }
    }
}

/// Our session, if it has nodes, and which owner nodes are its.
async fn find(
    session: &Slot<ZkSession>,
    znodes: &Znodes,
) -> Result<Option<(SessionNumber, SessionEpoch, Nodes)>, String> {
    let status = session.send(zk_session::Describe).await;
    let status = status.map_err(|_| "the session actor is not running".to_owned())?;
    // one that lost its connection is sent again later, after what we read now
    if status.claims > 0 {
        return Err(format!("{} claims or releases of an earlier life are under way", status.claims));
    }
    let (Some(id), Some(epoch)) = (status.id.map(SessionNumber), status.session) else { return Ok(None) };
    match owned_nodes(znodes, id).await {
        Ok(nodes) => Ok(Some((id, epoch, nodes))),
        Err(error) => Err(error.to_string()),
    }
}

async fn owned_nodes(znodes: &Znodes, session: SessionNumber) -> Result<Nodes, ZkError> {
    let mut nodes = Vec::new();
    for tp in znodes.owned(|_| true).await? {
        let is_ours = |owner: &Owner| owner.session == session;
        if !znodes.owner(&tp, false).await?.is_some_and(|owner| is_ours(&owner)) {
            continue;
        }
        // ours are watched, so that a change between this and the next rebalance is noticed
        if let Some(owner) = znodes.owner(&tp, true).await?.filter(is_ours) {
            nodes.push((tp, owner));
        }
    }
    Ok(nodes)
}
