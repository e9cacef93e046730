//! Which property decides where a partition starts, and what a broker is asked by it.

use std::fmt;
use std::time::Duration;

use kafka_troupe_proto::config::OffsetReset;
use kafka_troupe_proto::kafka::list_offsets::{EARLIEST, LATEST};

use super::FetchSettings;
use super::placements::Doubt;

/// Which property decides, and so which place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResetRule {
    pub(super) reset: OffsetReset,
    pub(super) why: &'static str,
}

/// A partition that has an offset that does not count, or none, goes by `auto.offset.reset`. One that appeared while
/// the group was running goes by `troupe.new.partitions.reset`, so that nothing is passed over; so does that of a topic
/// that was made again under us.
///
/// An offset is one of an earlier topic if its node was written before the topic's was made, and it is not 0. So look
/// offsets that were copied into another ZooKeeper before the topics: write the offset nodes once more after the
/// topics.
pub(super) fn reset_rule(settings: &FetchSettings, appeared: bool, doubt: Doubt) -> ResetRule {
    let (by_policy, as_new) = (settings.offset_reset, settings.new_partitions_reset);
    let (reset, why) = match (doubt, appeared) {
        (Doubt::OutOfRange | Doubt::NewLeader, _) => (by_policy, "offset out of range: auto.offset.reset"),
        (Doubt::TopicRemade, false) => (by_policy, "topic was deleted and made again: auto.offset.reset"),
        (Doubt::TopicRemade, true) => {
            (as_new, "topic was deleted and made again under us: troupe.new.partitions.reset")
        }
        (Doubt::Missing, true) => (as_new, "no offset of a new partition: troupe.new.partitions.reset"),
        (Doubt::Missing, false) => (by_policy, "no offset: auto.offset.reset"),
    };
    ResetRule { reset, why }
}

impl ResetRule {
    /// The time that a broker is asked for, at the time `now`; none when no position may be made.
    pub(super) fn time(&self, now: Duration) -> Option<i64> {
        match self.reset {
            OffsetReset::Smallest => Some(EARLIEST),
            OffsetReset::Largest => Some(LATEST),
            OffsetReset::ToTime(millis) => Some(millis),
            OffsetReset::ByDuration(age) => {
                Some(i64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(i64::MAX))
            }
            _ => None,
        }
    }
}

impl fmt::Display for ResetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.why, self.reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker_connection::ConnectOptions;
    use crate::testkit::fetch_settings;

    #[test]
    fn a_new_partition_starts_at_its_beginning_but_one_out_of_range_goes_by_the_policy() {
        let settings = fetch_settings(ConnectOptions::new("test", Duration::from_secs(1)));
        for (appeared, doubt, reset) in [
            (false, Doubt::Missing, OffsetReset::Largest),
            (false, Doubt::OutOfRange, OffsetReset::Largest),
            (true, Doubt::Missing, OffsetReset::Smallest),
            (true, Doubt::OutOfRange, OffsetReset::Largest),
            (false, Doubt::TopicRemade, OffsetReset::Largest),
            (true, Doubt::TopicRemade, OffsetReset::Smallest),
        ] {
            let rule = reset_rule(&settings, appeared, doubt);
            assert_eq!(rule.reset, reset, "appeared {appeared}, {doubt:?}");
        }
    }

    #[test]
    fn a_time_is_never_taken_for_an_end_of_the_log() {
        let time = |reset| ResetRule { reset, why: "" }.time(Duration::from_millis(5_000));
        let ago = |millis| time(OffsetReset::ByDuration(Duration::from_millis(millis)));
        assert_eq!((ago(0), ago(1_000), ago(5_001)), (Some(5_000), Some(4_000), Some(0)));
        assert_eq!((time(OffsetReset::ToTime(7)), time(OffsetReset::None)), (Some(7), None));
    }
}
