//! Java's arithmetic, where Kafka shares things out by it.

use std::num::NonZeroU32;

/// `String.hashCode` of Java: over UTF-16 code units, wrapping at 32 bits.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Utils.abs(hash) % count` of Kafka since 0.8.2: the one number that has no absolute value, `i32::MIN`, counts as 0.
/// (0.8.1 cleared the sign bit instead, KAFKA-1469.)
pub fn java_index(hash: i32, count: NonZeroU32) -> u32 {
    hash.checked_abs().unwrap_or(0).unsigned_abs() % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_hash_samples() {
        for (text, hash) in [
            ("t14-8", 108_639_618),
            ("t14-10", -927_139_307),
            ("[t14,0]", -1_768_683_907),
            ("[t14,10]", 1_005_373_390),
            ("lcsnew", -1_108_055_484),
            ("polygenelubricants", i32::MIN),
            ("t5-0", 3_508_132),
        ] {
            assert_eq!(java_hash(text), hash, "{text}");
        }
    }

    #[test]
    fn java_index_samples() {
        let seven = NonZeroU32::new(7).expect("not 0");
        for (hash, index) in [(0, 0), (8, 1), (-8, 1), (i32::MAX, 1), (-i32::MAX, 1), (i32::MIN, 0)] {
            assert_eq!(java_index(hash, seven), index, "{hash}");
        }
    }
}
