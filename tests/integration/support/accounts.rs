//! Who has handled what again after whom, where members are not all ours.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Delivery, History};
use super::zk_log::GroupHistory;

/// Whose consumer a member runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Commits all that it has handled before it lets go, and reads after it has claimed.
    Ours,
    /// Reads before it claims, and may have one record of a stream in its hand when it lets go.
    Scala,
    /// Kafka's own, which owns nothing in ZooKeeper: the group is its alone.
    Java,
}

/// All that members have handled, with what the group has stored meanwhile.
pub struct Accounts<'a> {
    pub history: History,
    pub zookeeper: &'a GroupHistory,
    /// What was stored in Kafka, in order.
    pub kafka: &'a [(i32, Option<i64>)],
    pub side: fn(&str) -> Side,
}

impl Accounts<'_> {
    /// Nothing is skipped; deliveries of two members never mix, and are in turn with what they own, but for a record in
    /// a Scala member's hand; ours begin where the one before has ended, a Scala member where the group has stored.
    #[track_caller]
    pub fn check(&self) {
        let mut in_turn = self.history.clone();
        let members: BTreeSet<String> =
            self.history.deliveries.iter().map(|delivery| delivery.member.clone()).collect();
        for member in members.iter().filter(|member| (self.side)(member) == Side::Scala) {
            in_turn.forgive_in_hand(member);
        }
        for partition in in_turn.partitions() {
            in_turn.turns(partition, self.zookeeper, |member| (self.side)(member) != Side::Java);
            self.check_beginnings(partition, &in_turn.of(partition).collect::<Vec<_>>());
        }
        self.zookeeper.check_commits_only_grow();
    }

    /// Each delivery follows the one before it, or goes back as far as it may.
    #[track_caller]
    fn check_beginnings(&self, partition: i32, deliveries: &[&Delivery]) {
        let stored = self.stored(partition);
        let mut next = 0;
        let mut last = None;
        for delivery in deliveries {
            let (offset, side) = (delivery.offset, (self.side)(&delivery.member));
            assert!(offset <= next, "{delivery:?} was delivered before offset {next}");
            let before = last.replace(side).unwrap_or(side);
            if offset < next {
                match (before, side) {
                    (_, Side::Scala) => {
                        assert!(stored.contains(&offset), "{delivery:?} does not begin at what is stored");
                    }
                    (Side::Scala, _) => {
                        assert_eq!(offset + 1, next, "{delivery:?} takes up more than what is in a hand");
                    }
                    _ => panic!("{delivery:?} goes back from {next}: no Scala member is in it"),
                }
            }
            next = offset + 1;
        }
    }

    /// All offsets that were ever stored of a partition, with the beginning.
    fn stored(&self, partition: i32) -> BTreeSet<i64> {
        let which = format!("{}/{partition}", self.history.topic);
        let zookeeper = self.zookeeper.commits.iter().filter(|(_, of, _)| *of == which);
        let kafka = self.kafka.iter().filter(|(of, _)| *of == partition);
        let all = zookeeper.map(|(_, _, offset)| *offset).chain(kafka.filter_map(|(_, offset)| *offset));
        all.chain([0]).collect()
    }

    /// How many deliveries were of records that someone had handled before, by whom first and by whom then; among those
    /// from one index of the journal to another.
    pub fn again(&self, from: usize, to: usize) -> BTreeMap<(Side, Side), usize> {
        let mut last = BTreeMap::new();
        let mut again = BTreeMap::new();
        for (index, delivery) in self.history.deliveries.iter().enumerate() {
            let side = (self.side)(&delivery.member);
            let before = last.insert((delivery.partition, delivery.offset), side);
            if let (Some(before), true) = (before, (from..to).contains(&index)) {
                *again.entry((before, side)).or_insert(0) += 1;
            }
        }
        again
    }
}
