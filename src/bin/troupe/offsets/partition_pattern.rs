//! `--topic-partitions` of `GetOffsetShell`.

use std::ops::Range;
use std::str::FromStr;

use kafka_troupe::TopicFilter;

/// `TOPIC:PARTITIONS`: topics whose whole name matches, all without; partitions as in `3`, `2-5` (without 5), `2-`, `-5`,
/// all without.
#[derive(Clone, Debug)]
pub struct PartitionPattern {
    topic: Option<TopicFilter>,
    partitions: Range<i32>,
}

impl PartitionPattern {
    /// Whether it is meant.
    pub fn allows(&self, topic: &str, partition: i32) -> bool {
        self.partitions.contains(&partition) && self.topic.as_ref().is_none_or(|it| it.allows(topic, &[]))
    }
}

impl FromStr for PartitionPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (topic, partitions) = text.split_once(':').unwrap_or((text, ""));
        let topic = match topic {
            "" => None,
            regex => Some(TopicFilter::white_list(regex).map_err(|error| error.to_string())?),
        };
        let number = |text: &str, other: i32| match text {
            "" => Ok(other),
            text if text.bytes().all(|it| it.is_ascii_digit()) => text.parse().map_err(|_| wrong(text)),
            text => Err(wrong(text)),
        };
        let partitions = match partitions.split_once('-') {
            Some((from, to)) => number(from, 0)?..number(to, i32::MAX)?,
            None if partitions.is_empty() => 0..i32::MAX,
            None => {
                let one = number(partitions, 0)?;
                one..one.saturating_add(1)
            }
        };
        Ok(Self { topic, partitions })
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{text:?} is no partition: write TOPIC:3, TOPIC:2-5 (without 5), TOPIC:2-, TOPIC:-5, or TOPIC alone"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_meant() {
        for (pattern, allowed, others) in [
            ("orders", &[("orders", 0), ("orders", 9)][..], &[("order", 0), ("orders2", 0)][..]),
            ("ord.*:3", &[("orders", 3), ("ord", 3)], &[("orders", 2), ("orders", 4), ("x", 3)]),
            (":2-4", &[("any", 2), ("other", 3)], &[("any", 1), ("any", 4)]),
            ("t:2-", &[("t", 2), ("t", 900)], &[("t", 1)]),
            ("t:-2", &[("t", 0), ("t", 1)], &[("t", 2)]),
            ("t:", &[("t", 0)], &[("u", 0)]),
        ] {
            let parsed: PartitionPattern = pattern.parse().unwrap();
            for (topic, partition) in allowed {
                assert!(parsed.allows(topic, *partition), "{pattern} {topic} {partition}");
            }
            for (topic, partition) in others {
                assert!(!parsed.allows(topic, *partition), "{pattern} {topic} {partition}");
            }
        }
        for wrong in ["t:x", "t:1-x", "t:1-2-3", "t:+1", "t:3000000000", "(:1"] {
            assert!(wrong.parse::<PartitionPattern>().is_err(), "{wrong}");
        }
    }
}
