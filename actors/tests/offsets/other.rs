//! The others who write the same nodes.

use kafka_troupe_actors::testkit::MemoryZooKeeper;

const OFFSET: &str = "/consumers/g/offsets/t/0";
const OWNER: &str = "/consumers/g/owners/t/0";

/// Somebody else with a session: another member, old or new, or a tool. What it does is done at once.
#[derive(Clone)]
pub struct Other {
    ensemble: MemoryZooKeeper,
}

impl Other {
    /// No client of this ensemble has it.
    const SESSION: i64 = 1 << 40;

    /// With the parents of all nodes made.
    pub fn connect(ensemble: &MemoryZooKeeper) -> Self {
        ensemble.put("/consumers/g/offsets/t", b"");
        ensemble.put("/consumers/g/owners/t", b"");
        Self { ensemble: ensemble.clone() }
    }

    /// Makes a persistent node.
    pub fn make_with(&self, path: &str, data: &str) {
        self.ensemble.put(path, data.as_bytes());
    }

    /// Writes the offset node without looking, as Scala members do.
    pub fn commit(&self, offset: i64) {
        self.ensemble.put(OFFSET, offset.to_string().as_bytes());
    }

    pub fn delete_offset(&self) {
        self.ensemble.remove(OFFSET);
    }

    /// The value and version of the offset node.
    pub fn stored(&self) -> Option<(i64, i32)> {
        let node = self.ensemble.node(OFFSET)?;
        Some((String::from_utf8(node.data).unwrap().parse().unwrap(), node.stat.version))
    }

    /// Deletes the owner node, whosever it is.
    pub fn disown(&self) {
        assert!(self.ensemble.node(OWNER).is_some(), "nobody owns it");
        self.ensemble.remove(OWNER);
    }

    /// Owns the partition.
    pub fn own(&self, thread: &str) {
        assert!(self.ensemble.node(OWNER).is_none(), "somebody owns it");
        self.ensemble.put_ephemeral(OWNER, thread.as_bytes(), Self::SESSION);
    }

    /// Writes another thread into the owner node.
    pub fn rethread(&self, thread: &str) {
        self.ensemble.put(OWNER, thread.as_bytes());
    }

    /// Takes the partition over and goes on from there.
    pub fn take_over(&self, thread: &str, commits: i64) {
        self.disown();
        self.own(thread);
        self.commit(commits);
    }
}
