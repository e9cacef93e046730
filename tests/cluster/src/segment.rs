//! The entries of a partition's log, which have the same head in all formats.

/// The magic of each entry of a segment's file, and the id of its codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Ends
/// before an entry that is not whole.
pub fn entries(mut log: &[u8]) -> Vec<(u8, u8)> {
    let mut found = Vec::new();
    while let Some((head, rest)) = log.split_at_checked(12) {
        let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let Some((entry, rest)) = rest.split_at_checked(length) else { break };
        let Some(&magic) = entry.get(4) else { break };
        let Some(attributes) = entry.get(if magic < 2 { 5 } else { 10 }) else { break };
        found.push((magic, attributes & 7));
        log = rest;
    }
    found
}
