use super::*;
use proptest::prelude::*;

fn partition(group: &str, partitions: u32) -> i32 {
    partition_for_group(group, NonZeroU32::new(partitions).expect("not 0"))
}

#[test]
fn a_group_lies_where_kafka_puts_it() {
    // seen on a real broker; clearing the sign bit would give 14
    assert_eq!(partition("lcsnew", 50), 34);
    // the hash is the least of all, whose absolute value overflows
    assert_eq!(java_hash("polygenelubricants"), i32::MIN);
    assert_eq!(partition("polygenelubricants", 50), 0);
    // the example of the guide that we were asked to implement
    assert_eq!(partition("console-consumer-50059", 50), 10);
    assert_eq!(partition("", 50), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_partition_is_one_of_the_topic(group: String, partitions in 1..=u32::MAX) {
        let partition = partition(&group, partitions);
        prop_assert!(partition >= 0 && i64::from(partition) < i64::from(partitions));
    }
}
