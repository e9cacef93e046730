//! `/consumers/<group>/topics/<topic>`: which topic the group's offsets are of, where Kafka's own nodes do not tell.
//!
//! Troupe's own node, for groups that are told topics by brokers (`bootstrap.servers`). Its data are topic ids, one a
//! line, the present one first. A cluster gives none twice, so one that stands further down is that of an earlier
//! topic, and who holds it for the present one is behind (members poll); or has come back from another cluster, a
//! mirror (`bootstrap.servers` was changed): nothing tells these apart, so an operator must, by deleting the node.
//!
//! When the topic is made again the new id is set in front: offsets that were stored before that transaction are of an
//! earlier topic. The first id says nothing of offsets that are older than the node: they may have been stored by
//! members that know no ids.

use std::fmt;

/// Former ids that are kept.
const KEPT: usize = 15;

/// The ids in one node, the present one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicIds(Vec<String>);

/// What an id is, held against the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The present one.
    Present,
    /// Of a topic that has been deleted since.
    Earlier,
    /// Not seen before.
    New,
}

impl TopicIds {
    /// Reads the node. What is no id is passed over: nothing stands there but by our own hand.
    pub fn parse(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let is_id = |line: &&str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self(text.lines().filter(is_id).map(str::to_owned).collect())
    }

    /// What this id is.
    pub fn standing(&self, id: [u8; 16]) -> Standing {
        match self.0.iter().position(|known| *known == text(id)) {
            Some(0) => Standing::Present,
            Some(_) => Standing::Earlier,
            None => Standing::New,
        }
    }

    /// The node after the topic was made again.
    #[must_use]
    pub fn succeeded_by(&self, id: [u8; 16]) -> Self {
        Self([text(id)].into_iter().chain(self.0.iter().take(KEPT).cloned()).collect())
    }
}

impl fmt::Display for TopicIds {
    /// The node's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// The transaction since which offsets are of the present topic, by the node's version and `mzxid`: 0 before the topic
/// was made again for the first time.
pub fn since(version: i32, mzxid: i64) -> i64 {
    if version == 0 { 0 } else { mzxid }
}

fn text(id: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> [u8; 16] {
        [number; 16]
    }

    #[test]
    fn the_present_id_stands_first_and_none_comes_back() {
        let first = TopicIds::default().succeeded_by(id(1));
        assert_eq!(first.to_string(), "01".repeat(16));
        let second = TopicIds::parse(first.to_string().as_bytes()).succeeded_by(id(0xfe));
        assert_eq!(second.standing(id(0xfe)), Standing::Present);
        assert_eq!(second.standing(id(1)), Standing::Earlier);
        assert_eq!(second.standing(id(3)), Standing::New);
        assert_eq!(TopicIds::parse(second.to_string().as_bytes()), second);
        let many = (0..100).fold(second, |ids, number| ids.succeeded_by(id(number)));
        assert_eq!(many.to_string().lines().count(), KEPT + 1);
    }

    #[test]
    fn garbage_is_nothing() {
        assert_eq!(TopicIds::parse(b"\n\xff{}\n"), TopicIds::default());
    }

    #[test]
    fn offsets_are_of_an_earlier_topic_only_once_there_was_a_later() {
        assert_eq!((since(0, 77), since(1, 78)), (0, 78));
    }
}
