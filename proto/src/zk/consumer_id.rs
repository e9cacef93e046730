//! Names of members and of their threads, and the order in which partitions are dealt out to them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Name of one member, `<group>_<host>-<epoch millis>-<hex8>`: the name of its node below `ids`. Cheap to
/// clone.
///
/// Made once per member and kept across session expiry. Orders as Java orders strings, see
/// [`ConsumerThreadId`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConsumerId(Arc<str>);

impl ConsumerId {
    /// A fresh id from the group, the host's name, the time in epoch milliseconds and the high half of a
    /// random UUID.
    ///
    /// Of the UUID the first eight digits of its unpadded hex are taken, as the old consumer does.
    pub fn generate(group: &str, host: &str, epoch_millis: u64, uuid_high: u64) -> Self {
        Self(format!("{group}_{host}-{epoch_millis}-{:.8}", format!("{uuid_high:x}")).into())
    }

    /// An id with a fixed second part, the property `consumer.id`: `<group>_<consumer.id>`.
    pub fn configured(group: &str, consumer_id: &str) -> Self {
        Self(format!("{group}_{consumer_id}").into())
    }

    /// An id as it stands below `ids` in ZooKeeper.
    pub fn from_node(name: &str) -> Self {
        Self(name.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of this member's thread (that is: stream) number `index`, from 0.
    pub fn thread(&self, index: u32) -> ConsumerThreadId {
        ConsumerThreadId::new(&self.0, index)
    }
}

impl fmt::Display for ConsumerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ConsumerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for ConsumerId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl PartialOrd for ConsumerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Name of one thread (stream) of one member, `<consumer id>-<index>`: the data of the owner nodes. Cheap to
/// clone.
///
/// Its order decides who gets which partition, so it must be the old consumer's: Java's string comparison, by
/// UTF-16 code units, of the **whole text**. Hence `x-10` comes before `x-2`, and threads of `x` and `x-1`
/// interleave.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConsumerThreadId {
    text: Arc<str>,
    /// Where the last dash stands.
    dash: usize,
}

/// Text that is not `<consumer id>-<index>`, as found in an owner node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a consumer thread id: it should be <consumer id>-<index>")]
pub struct ThreadIdError(String);

impl ConsumerThreadId {
    /// Thread number `index`, from 0, of the member `consumer`.
    pub fn new(consumer: &str, index: u32) -> Self {
        Self { text: format!("{consumer}-{index}").into(), dash: consumer.len() }
    }

    /// Reads the data of an owner node: the index is what follows the last dash, in plain decimal.
    pub fn parse(text: &str) -> Result<Self, ThreadIdError> {
        let id = text.rsplit_once('-').and_then(|(consumer, digits)| Some((consumer, digits.parse().ok()?)));
        match id {
            // "+1" and "01" parse as well, but are not what any consumer writes
            Some((consumer, index))
                if !consumer.is_empty() && Self::new(consumer, index).as_str() == text =>
            {
                Ok(Self::new(consumer, index))
            }
            _ => Err(ThreadIdError(text.to_owned())),
        }
    }

    /// The id of the member that runs this thread.
    pub fn consumer(&self) -> &str {
        &self.text[..self.dash]
    }

    /// The thread's number within its member, from 0 (per topic for static subscriptions).
    pub fn index(&self) -> u32 {
        self.text[self.dash + 1..].parse().expect("both constructors write a u32 after the dash")
    }

    /// The id as text, as it stands in owner nodes.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ConsumerThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ConsumerThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Ord for ConsumerThreadId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.encode_utf16().cmp(other.text.encode_utf16())
    }
}

impl PartialOrd for ConsumerThreadId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_made_as_the_old_consumer_makes_them() {
        let id = ConsumerId::generate("lcsg1", "vm", 1795989640439, 0x8f02_c2d2_1234_5678);
        assert_eq!(id.as_str(), "lcsg1_vm-1795989640439-8f02c2d2");
        assert_eq!(id.thread(0).to_string(), "lcsg1_vm-1795989640439-8f02c2d2-0");
        assert_eq!(ConsumerId::configured("lcsg5", "fix").as_str(), "lcsg5_fix");
    }

    #[test]
    fn uuid_hex_is_unpadded() {
        assert_eq!(ConsumerId::generate("g", "h", 1, 0x0012_3456_789a_bcde).as_str(), "g_h-1-12345678");
        assert_eq!(ConsumerId::generate("g", "h", 1, 0xabc).as_str(), "g_h-1-abc");
    }

    #[test]
    fn order_is_java_string_order_of_the_whole_thread_id() {
        let ids = ["10", "9", "B-1-x", "a-c-1-x", "a.c-1-x", "b-1-x"];
        assert!(ids.map(ConsumerId::from_node).is_sorted());
        let threads = ["x-0", "x-1", "x-1-0", "x-1-1", "x-10", "x-2", "x-9"];
        let threads = threads.map(|text| ConsumerThreadId::parse(text).unwrap());
        assert!(threads.is_sorted(), "{threads:?}");
        // U+FFFD is one unit above the surrogates of U+10000, though its code point is below
        assert!(ConsumerId::from_node("\u{10000}") < ConsumerId::from_node("\u{fffd}"));
    }

    #[test]
    fn what_is_no_thread_id_is_refused() {
        for text in ["", "x", "x-", "-1", "x-01", "x-+1", "x-1\n", "x-99999999999"] {
            assert!(ConsumerThreadId::parse(text).is_err(), "{text:?}");
        }
        assert!(ConsumerThreadId::parse("x\n").unwrap_err().to_string().contains(r#""x\n""#));
    }

    proptest! {
        #[test]
        fn thread_ids_come_back_from_their_text(consumer in ".+", index: u32) {
            let id = ConsumerThreadId::new(&consumer, index);
            prop_assert_eq!((id.consumer(), id.index()), (consumer.as_str(), index));
            prop_assert_eq!(ConsumerThreadId::parse(id.as_str()).unwrap(), id);
        }
    }
}
