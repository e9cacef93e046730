//! What a group has in ZooKeeper, read by another client than the one under test uses.

use std::collections::BTreeMap;

#[allow(dead_code, reason = "tests of the other tools use the rest")]
#[path = "../tools/znodes.rs"]
mod nodes;

pub use nodes::Znodes;

impl Znodes {
    fn data_below(&self, path: &str) -> BTreeMap<i32, String> {
        let names = self.children(path);
        let read = |name: &String| Some((name.parse().unwrap(), self.data(&format!("{path}/{name}"))?));
        names.iter().filter_map(read).collect()
    }

    /// The ids of the group's members.
    pub fn members(&self, group: &str) -> Vec<String> {
        self.children(&format!("/consumers/{group}/ids"))
    }

    /// The thread that owns each partition.
    pub fn owners(&self, group: &str, topic: &str) -> BTreeMap<i32, String> {
        self.data_below(&format!("/consumers/{group}/owners/{topic}"))
    }

    /// What is committed of each partition.
    pub fn offsets(&self, group: &str, topic: &str) -> BTreeMap<i32, i64> {
        let text = self.data_below(&format!("/consumers/{group}/offsets/{topic}"));
        text.into_iter().map(|(partition, offset)| (partition, offset.parse().unwrap())).collect()
    }

    /// The sum of what is committed.
    pub fn committed(&self, group: &str, topic: &str) -> usize {
        self.offsets(group, topic).values().map(|offset| usize::try_from(*offset).unwrap()).sum()
    }

    /// Nothing of a member is left, and so much is committed.
    pub fn assert_left(&self, group: &str, topic: &str, committed: usize) {
        assert_eq!(self.members(group), [""; 0], "members of {group}");
        assert_eq!(self.owners(group, topic), BTreeMap::new(), "owners of {group}");
        assert_eq!(self.committed(group, topic), committed, "committed by {group}");
    }
}
