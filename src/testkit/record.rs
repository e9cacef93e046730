//! What a test produces.

/// A record to produce: a value, and what else is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestRecord {
    pub(super) partition: Option<i32>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) timestamp: i64,
}

impl TestRecord {
    /// A record with this value, without a key.
    pub fn value(value: impl Into<Vec<u8>>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// A record with this key and no value, which deletes the key where topics are compacted.
    pub fn tombstone(key: impl Into<Vec<u8>>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// With a key. It chooses the partition as Kafka's producer does, unless one is given.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// To this partition; otherwise it goes by the key, and without one to each in turn.
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With one more header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Its time, in milliseconds since 1970; 0 if it is not set.
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = milliseconds;
        self
    }
}

impl From<&'static str> for TestRecord {
    fn from(value: &'static str) -> Self {
        Self::value(value)
    }
}

impl From<String> for TestRecord {
    fn from(value: String) -> Self {
        Self::value(value)
    }
}

impl From<Vec<u8>> for TestRecord {
    fn from(value: Vec<u8>) -> Self {
        Self::value(value)
    }
}

/// The partition that Kafka's producer chooses for a key.
pub(super) fn partition_of(key: &[u8], partitions: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % partitions.max(1)
}

/// Kafka's `Utils.murmur2`.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let mixed = word.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (mixed ^ mixed >> 24).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let rest = rest.iter().rev().fold(0, |rest, byte| rest << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of Kafka's own `UtilsTest`.
    #[test]
    fn keys_are_hashed_as_by_kafka() {
        let vectors: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key).cast_signed(), hash, "{key:?}");
        }
    }
}
