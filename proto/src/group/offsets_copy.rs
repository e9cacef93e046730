//! What a group's offsets become in one store when they are copied there from the other.
//!
//! A stored offset is lowered only where that is allowed. While the group has members in ZooKeeper, what they own is
//! theirs: they commit it, and copying beside them could take a commit of theirs back (nothing fences Kafka's). They
//! only have holes filled: partitions that nobody owns and whose offset the other store lacks, which is what the walk
//! from step 2 (both stores) to step 3 (Kafka alone) may find. And only when both stores are in use by them, for which
//! it speaks that each partition that they own has an offset in both.

use std::collections::BTreeMap;

use crate::TopicPartition;

/// Offsets by partition.
pub type Offsets = BTreeMap<TopicPartition, i64>;

/// What stands in both stores, and who uses the group.
#[derive(Clone, Debug, Default)]
pub struct Copying {
    /// What is copied; offsets below 0 are none.
    pub from: Offsets,
    /// What stands where it is copied to.
    pub to: Offsets,
    /// Members in ZooKeeper.
    pub members: Vec<String>,
    /// Partitions that have an owner there, with its thread.
    pub owners: BTreeMap<TopicPartition, String>,
    /// Offsets may go down.
    pub may_lower: bool,
}

/// What becomes of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is written.
    Write,
    /// Both say the same already.
    Same,
    /// The other store is further: kept.
    Lower,
    /// A thread owns it, and commits it: left alone.
    Owned(String),
    /// There is an offset in both, and members in the group: left alone.
    InUse,
}

impl Copying {
    /// What becomes of each partition that has an offset to copy.
    ///
    /// # Errors
    /// Partitions that members own and that have no offset where it is to be copied to: the members do not commit there.
    pub fn plan(&self) -> Result<BTreeMap<TopicPartition, Step>, Vec<TopicPartition>> {
        let from = || self.from.iter().filter(|(_, offset)| **offset >= 0);
        let is_behind = |key: &TopicPartition| self.owners.contains_key(key) && !self.to.contains_key(key);
        let one_sided: Vec<_> = from().map(|(key, _)| key).filter(|key| is_behind(key)).cloned().collect();
        match self.members.is_empty() || one_sided.is_empty() {
            true => Ok(from().map(|(key, offset)| (key.clone(), self.step(key, *offset))).collect()),
            false => Err(one_sided),
        }
    }

    fn step(&self, key: &TopicPartition, offset: i64) -> Step {
        let there = self.to.get(key).copied().filter(|there| *there >= 0);
        match (there, self.owners.get(key).filter(|_| !self.members.is_empty())) {
            (Some(there), _) if there == offset => Step::Same,
            (_, Some(owner)) => Step::Owned(owner.clone()),
            (Some(_), None) if !self.members.is_empty() => Step::InUse,
            (Some(there), None) if there > offset && !self.may_lower => Step::Lower,
            _ => Step::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets<const N: usize>(all: [i64; N]) -> Offsets {
        (0..).map(|number| TopicPartition::new("t", number)).zip(all).collect()
    }

    fn steps(copying: &Copying) -> Vec<Step> {
        copying.plan().expect("a plan").into_values().collect()
    }

    fn with_members(copying: Copying, owned: &[i32]) -> Copying {
        let owner = |number: &i32| (TopicPartition::new("t", *number), "m-0".to_owned());
        Copying { members: vec!["m".into()], owners: owned.iter().map(owner).collect(), ..copying }
    }

    #[test]
    fn an_offset_goes_down_only_where_that_is_allowed_and_minus_1_is_never_copied() {
        let mut copying =
            Copying { from: offsets([5, 5, 5, -1, 5]), to: offsets([4, 5, 6, 3, -1]), ..Copying::default() };
        assert_eq!(steps(&copying), [Step::Write, Step::Same, Step::Lower, Step::Write]);
        copying.may_lower = true;
        assert_eq!(steps(&copying), [Step::Write, Step::Same, Step::Write, Step::Write]);
        assert!(!copying.plan().expect("a plan").contains_key(&TopicPartition::new("t", 3)));
    }

    #[test]
    fn beside_members_that_commit_to_both_stores_only_holes_are_filled() {
        // 0 and 1 are owned and committed to both; 2 and 3 are nobody's
        let mut copying =
            Copying { from: offsets([9, 5, 7, 4]), to: offsets([8, 5, 6]), ..Copying::default() };
        copying.may_lower = true;
        let steps = steps(&with_members(copying, &[0, 1]));
        assert_eq!(steps, [Step::Owned("m-0".into()), Step::Same, Step::InUse, Step::Write]);
    }

    #[test]
    fn beside_members_that_commit_to_one_store_nothing_is_written() {
        let copying = Copying { from: offsets([9, 5, 7]), to: offsets([9]), ..Copying::default() };
        let refused = with_members(copying.clone(), &[0, 1]).plan();
        assert_eq!(refused, Err(vec![TopicPartition::new("t", 1)]));
        // nobody owns anything, or owners that are left over: no member
        assert!(with_members(copying.clone(), &[]).plan().is_ok());
        let left_over = Copying { members: Vec::new(), ..with_members(copying, &[1]) };
        assert_eq!(steps(&left_over), [Step::Same, Step::Write, Step::Write]);
    }
}
