//! Reads owner nodes when [`PeerCheck`] wants to see them, and reports what it made of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::{StreamExt, TryStreamExt, stream};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::assignor::Plan;
use kafka_troupe_proto::group::peers::{Look, Owners, PeerFault};
use kafka_troupe_proto::group::{GroupSnapshot, PeerCheck, Settings};

use super::{RebalanceCoordinator, Znodes};
use crate::zk_session::ZkError;

/// Reads in flight: few, for nothing waits for them.
const READS: usize = 4;

/// The check, and when it wants to look next.
pub(super) struct Peers {
    check: PeerCheck,
    timer: Option<SpawnHandle>,
}

impl Peers {
    /// The others may learn of changed topics that much later.
    pub(super) fn new(settings: Settings, late: Duration) -> Self {
        let late = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
        Self { check: PeerCheck::new(settings).learning_late(late), timer: None }
    }

    /// What the whole group is to own.
    pub(super) fn plan(&self) -> &Arc<Plan> {
        self.check.plan()
    }

    pub(super) fn faults(&self) -> &[PeerFault] {
        self.check.faults()
    }
}

impl RebalanceCoordinator {
    /// The group was read: from now on others are held against this.
    pub(super) fn expect_of_peers(&mut self, snapshot: &GroupSnapshot, ctx: &mut Context<Self>) {
        self.peers.check.group_read(self.now(), snapshot);
        self.plan_look(ctx);
    }

    fn plan_look(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.peers.timer.take() {
            ctx.cancel_future(timer);
        }
        if let Some(due) = self.peers.check.due() {
            let delay = Duration::from_millis(due.saturating_sub(self.now()));
            self.peers.timer = Some(ctx.run_later(delay, Self::look_at_peers));
        }
    }

    fn look_at_peers(&mut self, ctx: &mut Context<Self>) {
        self.peers.timer = None;
        let Some((asked, look)) = self.peers.check.look(self.now()) else { return };
        // those that run here are watched, one by one
        let ours = self.machine.running().map(|(tp, _)| tp.clone()).collect();
        let io = owners(self.znodes.clone(), self.peers.check.clone(), look, ours);
        ctx.spawn(io.into_actor(self).map(move |outcome, this, ctx| {
            let outcome =
                outcome.inspect_err(|error| tracing::debug!(%error, "owners of others cannot be read"));
            let before = this.peers.faults().to_vec();
            if this.peers.check.owners_read(this.now(), asked, outcome) {
                tell(&before, this.peers.faults());
            }
            this.plan_look(ctx);
        }));
    }
}

/// Each once.
fn tell(before: &[PeerFault], faults: &[PeerFault]) {
    for fault in faults.iter().filter(|fault| !before.contains(fault)) {
        tracing::error!(member = fault.member, why = %fault, "a member of the group does not do its part");
    }
    if faults.is_empty() {
        tracing::info!("all members of the group do their part again");
    }
}

async fn owners(
    znodes: Znodes,
    check: PeerCheck,
    look: Look,
    ours: BTreeSet<TopicPartition>,
) -> Result<Owners, ZkError> {
    let mut wanted = match look {
        Look::These(partitions) => partitions,
        Look::All => znodes.owned(|topic| check.concerns(topic)).await?,
    };
    wanted.retain(|tp| !ours.contains(tp));
    let znodes = &znodes;
    let reads = wanted.into_iter().map(async |tp| {
        let owner = znodes.owner(&tp, false).await?;
        Ok(owner.map(|owner| (tp, owner)))
    });
    let found = stream::iter(reads).buffer_unordered(READS);
    found.try_filter_map(async |owner| Ok(owner)).try_collect().await
}
