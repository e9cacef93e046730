//! One partition on its way to a fetcher: where it stands, and what may be wrong with its position.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Assigned;
use super::placements::Found;
use super::truncation::is_new_leader;
use crate::registry::{NO_EPOCH, NO_OFFSET, OwnedPartition};

/// So long metadata must tell a lower epoch than ours, each lookup at another broker, while nothing can be fetched,
/// before it is believed: one that is only behind is passed over by then.
pub(super) const LOWER_EPOCH_COUNTS_AFTER: Duration = Duration::from_secs(5);

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its leader is to be looked up, not before then.
    Leaderless { not_before: Instant },
    /// Its position is being made at this leader.
    Resolving { broker: i32 },
    /// It is in this broker's fetcher.
    Fetching { broker: i32 },
    /// It is in the fetcher of a broker that follows its leader, until then.
    Following { broker: i32, until: Instant },
    /// It has failed for good.
    Failed,
}

/// One partition.
pub(super) struct Placed {
    pub(super) assigned: Assigned,
    pub(super) place: Place,
    /// Its offset is not in the log.
    pub(super) out_of_range: bool,
    /// Its leader's epoch, as it was found last.
    pub(super) epoch: Option<i32>,
    /// Since when metadata has told a lower epoch than ours, and what was fetched then.
    pub(super) behind: Option<(Instant, i64)>,
    /// A replica could not be read from: until then it is read from its leader.
    pub(super) led_until: Option<Instant>,
    /// The replica that it was read from last.
    pub(super) replica: Option<i32>,
    /// Its topic was made again while its position was being made.
    pub(super) remade_meanwhile: bool,
    /// The last that went wrong.
    pub(super) why: Option<String>,
}

/// What is wrong with a position, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// There is none.
    Missing,
    /// It is not in the log.
    OutOfRange,
    /// It is one in an earlier topic of that name.
    TopicRemade,
    /// It was read under another leader: this one's log may end before it, or have ended.
    NewLeader,
}

/// A claim whose position is to be made, or looked at.
#[derive(Clone)]
pub(super) struct InDoubt {
    pub(super) partition: Arc<OwnedPartition>,
    pub(super) doubt: Doubt,
    /// The leader's, if metadata told it.
    pub(super) epoch: Option<i32>,
}

/// Who leads a partition, and since which election, if metadata told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    pub(crate) broker: i32,
    pub(crate) epoch: Option<i32>,
}

impl Placed {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self.place, Place::Leaderless { not_before } if not_before <= now)
    }

    /// A fetcher does not say how it has what it gives back.
    pub(super) fn is_at(&self, at: &Place) -> bool {
        self.place == *at || matches!(*at, Place::Fetching { broker } if self.fetching_at() == Some(broker))
    }

    pub(super) fn fetching_at(&self) -> Option<i32> {
        match self.place {
            Place::Fetching { broker } | Place::Following { broker, .. } => Some(broker),
            Place::Leaderless { .. } | Place::Resolving { .. } | Place::Failed => None,
        }
    }

    pub(super) fn wait(&mut self, not_before: Instant, why: String) {
        self.place = Place::Leaderless { not_before };
        self.assigned.partition.set_unfetched(&why);
        self.why = Some(why);
    }

    pub(super) fn remade(&mut self, not_before: Instant) {
        self.remade_meanwhile = false;
        self.assigned.partition.topic_remade();
        // not to be taken for where a leader is known that is the earlier topic's
        self.wait(not_before, "its topic was deleted and made again".to_owned());
    }

    pub(super) fn doubt(&self) -> Option<Doubt> {
        let partition = &self.assigned.partition;
        match () {
            () if partition.is_of_earlier_topic() => Some(Doubt::TopicRemade),
            () if partition.fetched() == NO_OFFSET => Some(Doubt::Missing),
            () if self.out_of_range => Some(Doubt::OutOfRange),
            () if is_new_leader(partition, self.epoch) => Some(Doubt::NewLeader),
            () => None,
        }
    }

    /// The replica that it is read from does not do.
    pub(super) fn keep_to_leader(&mut self, until: Instant) {
        if matches!(self.place, Place::Following { .. }) {
            self.led_until = Some(until);
        }
    }

    /// Brokers refuse a request with a later epoch than theirs. So one that is never heard of again (the topic was made
    /// anew; or the broker that told it was cut off) is forgotten, and what was read is held against the present
    /// leader.
    fn weigh(&mut self, epoch: Option<i32>, now: Instant, found: &mut Found) {
        let partition = &self.assigned.partition;
        if epoch.is_none_or(|epoch| epoch >= partition.leader_epoch()) {
            self.behind = None;
            return;
        }
        let fetched = partition.fetched();
        found.is_behind = true;
        match self.behind.filter(|(_, at)| *at == fetched) {
            None => {
                self.behind = Some((now, fetched));
                found.newly_behind.push(partition.topic_partition.clone());
            }
            Some((since, _)) if now.saturating_duration_since(since) >= LOWER_EPOCH_COUNTS_AFTER => {
                self.behind = None;
                partition.set_leader_epoch(NO_EPOCH);
            }
            Some(_) => {}
        }
    }

    pub(super) fn move_to(&mut self, Led { broker, epoch }: Led, now: Instant, found: &mut Found) {
        self.weigh(epoch, now, found);
        self.epoch = epoch;
        match self.doubt() {
            Some(doubt) => {
                let partition = Arc::clone(&self.assigned.partition);
                found.resolve.entry(broker).or_default().push(InDoubt { partition, doubt, epoch });
                self.place = Place::Resolving { broker };
            }
            None => {
                let assigned = self.fetch_at(broker);
                found.fetch.entry(broker).or_default().push(assigned);
            }
        }
    }

    /// Its position is good under the leader that was found last.
    pub(super) fn fetch_at(&mut self, broker: i32) -> Assigned {
        let partition = &self.assigned.partition;
        // metadata that is older than what we know changes nothing
        if let Some(epoch) = self.epoch.filter(|epoch| *epoch > partition.leader_epoch()) {
            partition.set_leader_epoch(epoch);
        }
        self.place = Place::Fetching { broker };
        self.assigned.clone()
    }
}
