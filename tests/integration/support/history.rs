//! What was delivered to whom, in the order in which it happened, held against who owned what.

use std::collections::{BTreeMap, BTreeSet};

use super::zk_log::{GroupHistory, Tenure};

/// One record in a member's hand.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The `consumer.id` of the member.
    pub member: String,
    pub partition: i32,
    pub offset: i64,
    /// Epoch milliseconds; none where only the order is known.
    pub at: Option<i64>,
}

/// All deliveries of one topic to the members of one group.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub topic: String,
    pub deliveries: Vec<Delivery>,
}

impl History {
    /// Whether every record below these ends, by partition, was delivered; what is missing if not.
    pub fn covers(&self, ends: &[i64]) -> Result<(), String> {
        let seen: BTreeSet<_> = self.deliveries.iter().map(|it| (it.partition, it.offset)).collect();
        for (partition, end) in (0..).zip(ends) {
            if let Some(offset) = (0..*end).find(|offset| !seen.contains(&(partition, *offset))) {
                let count = self.deliveries.len();
                return Err(format!(
                    "{}-{partition}@{offset} is missing of {ends:?}; {count} deliveries",
                    self.topic
                ));
            }
        }
        Ok(())
    }

    /// Deliveries beyond the first of each record.
    pub fn duplicates(&self) -> usize {
        let distinct: BTreeSet<_> = self.deliveries.iter().map(|it| (it.partition, it.offset)).collect();
        self.deliveries.len() - distinct.len()
    }

    /// Of one partition, in order.
    pub fn of(&self, partition: i32) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(move |delivery| delivery.partition == partition)
    }

    /// Takes out, and counts, what a member was about to print when it was stopped and printed when it went on: the
    /// record after its last, though another had begun. No lease can call back what is in a hand.
    pub fn forgive_in_hand(&mut self, member: &str) -> usize {
        // by partition: the member that delivered last, and where ours goes on
        let mut last: BTreeMap<i32, (String, i64)> = BTreeMap::new();
        let before = self.deliveries.len();
        self.deliveries.retain(|delivery| {
            let (holder, next) = last.entry(delivery.partition).or_insert((String::new(), -1));
            let late = delivery.member == member && *holder != member && delivery.offset == *next;
            if !late {
                holder.clone_from(&delivery.member);
            }
            if delivery.member == member {
                *next = delivery.offset + 1;
            }
            !late
        });
        before - self.deliveries.len()
    }

    /// What must hold in every run, whatever happens: records are never skipped, deliveries of two members never
    /// mix, each member delivers only what it owns, and each begins where the one before it committed.
    #[track_caller]
    pub fn check(&self, zookeeper: &GroupHistory) {
        self.check_nothing_is_skipped();
        for partition in self.partitions() {
            self.check_one_at_a_time(partition, zookeeper);
        }
        self.check_times(zookeeper);
        zookeeper.check_commits_only_grow();
    }

    /// No record is delivered before all that come before it in its partition were, from the first on.
    #[track_caller]
    pub fn check_nothing_is_skipped(&self) {
        let mut next = BTreeMap::new();
        for delivery in &self.deliveries {
            let next = next.entry(delivery.partition).or_insert(delivery.offset);
            assert!(delivery.offset <= *next, "{delivery:?} was delivered before offset {next}");
            *next = (*next).max(delivery.offset + 1);
        }
    }

    /// The members that delivered a partition, one after the other, and each began where the group has committed.
    #[track_caller]
    fn check_one_at_a_time(&self, partition: i32, zookeeper: &GroupHistory) {
        for (first, tenure) in self.turns(partition, zookeeper, |_| true) {
            let committed = zookeeper.committed_before(tenure.from.1, &self.topic, partition);
            assert_eq!(first.offset, committed, "{first:?} does not begin where its group has committed");
        }
    }

    /// The first delivery of each run of one member's, with the tenure that it was in: the members that delivered a
    /// partition, one after the other, must be found in this order among its owners; but for those that own nothing there.
    #[track_caller]
    pub fn turns<'a>(
        &'a self,
        partition: i32,
        zookeeper: &'a GroupHistory,
        owns: impl Fn(&str) -> bool,
    ) -> Vec<(&'a Delivery, &'a Tenure)> {
        let mut runs: Vec<&Delivery> = self.of(partition).collect();
        runs.dedup_by(|next, last| next.member == last.member);
        let tenures: Vec<_> = self.tenures(zookeeper, partition).collect();
        let mut left = tenures.iter();
        let mut turn = |first: &'a Delivery| {
            let its = left.find(|(member, _)| *member == first.member);
            let (_, tenure) =
                its.unwrap_or_else(|| panic!("{first:?} is out of turn: {runs:?}; owners: {tenures:?}"));
            (first, *tenure)
        };
        runs.iter().filter(|first| owns(&first.member)).map(|first| turn(first)).collect()
    }

    /// The numbers of those with deliveries.
    pub fn partitions(&self) -> BTreeSet<i32> {
        self.deliveries.iter().map(|delivery| delivery.partition).collect()
    }

    /// Where times are known: each delivery within a tenure of its member.
    #[track_caller]
    pub fn check_times(&self, zookeeper: &GroupHistory) {
        let mut tenures: BTreeMap<(i32, String), Vec<&Tenure>> = BTreeMap::new();
        for tenure in zookeeper.tenures.iter().filter(|tenure| tenure.topic == self.topic) {
            tenures.entry((tenure.partition, member_of(zookeeper, tenure))).or_default().push(tenure);
        }
        for delivery in &self.deliveries {
            let Some(at) = delivery.at else { continue };
            let its = tenures.get(&(delivery.partition, delivery.member.clone()));
            let within = |tenure: &&Tenure| tenure.from.0 <= at && tenure.to.is_none_or(|to| at <= to);
            let owned = its.is_some_and(|its| its.iter().any(within));
            assert!(owned, "{delivery:?} was not owned then: {its:?}");
        }
    }

    fn tenures<'a>(
        &self,
        zookeeper: &'a GroupHistory,
        partition: i32,
    ) -> impl Iterator<Item = (String, &'a Tenure)> + use<'a> {
        let topic = self.topic.clone();
        let its = move |tenure: &&Tenure| tenure.topic == topic && tenure.partition == partition;
        zookeeper.tenures.iter().filter(its).map(|tenure| (member_of(zookeeper, tenure), tenure))
    }
}

/// The `consumer.id` of an owner.
fn member_of(zookeeper: &GroupHistory, tenure: &Tenure) -> String {
    let thread = zookeeper.short(&tenure.thread);
    thread.rsplit_once('-').map_or(thread.clone(), |(member, _)| member.to_owned())
}
