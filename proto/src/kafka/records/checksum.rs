//! The checksum by which tools of the old generations compare records.

use super::TimestampType;

const LOG_APPEND: u8 = 8;

/// The CRC-32 that a record would have as an uncompressed message of magic 0, or with a timestamp of magic 1: what
/// Kafka's `ChecksumMessageFormatter` prints, whatever the record was stored as. Headers do not count.
///
/// `timestamp` is -1 where the producer gave none; it does not count with [`TimestampType::None`].
pub fn message_checksum(
    timestamp_type: TimestampType,
    timestamp: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    match timestamp_type {
        TimestampType::None => crc.update(&[0, 0]),
        TimestampType::Create => crc.update(&[1, 0]),
        TimestampType::LogAppend => crc.update(&[1, LOG_APPEND]),
    }
    if timestamp_type != TimestampType::None {
        crc.update(&timestamp.to_be_bytes());
    }
    for bytes in [key, value] {
        let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        crc.update(&length.to_be_bytes());
        crc.update(bytes.unwrap_or_default());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::records::{NewRecord, write_messages};

    /// A message's checksum stands behind its offset and size.
    #[test]
    fn it_is_what_a_message_on_the_wire_has() {
        for (key, value) in [(Some(&b"k"[..]), None), (None, Some(&b""[..])), (Some(b""), Some(b"value"))] {
            let record = NewRecord { key, value, timestamp: 1_500_000_000_000, ..NewRecord::default() };
            for (magic, kind) in [(0, TimestampType::None), (1, TimestampType::Create)] {
                let message = write_messages(magic, &[record]).unwrap();
                let stored = u32::from_be_bytes(message[12..16].try_into().unwrap());
                assert_eq!(message_checksum(kind, record.timestamp, key, value), stored, "magic {magic}");
            }
        }
    }
}
