//! Which partitions are reset.

use std::collections::BTreeSet;

use kafka_troupe::admin::KafkaAdmin;
use kafka_troupe::proto::TopicPartition;

use super::plan::Found;
use super::target::Target;
use crate::exit::Failure;

/// Which partitions are reset.
#[derive(Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that the group has an offset of.
    Stored,
    /// Those in the file.
    File,
    /// Of these topics all, or these.
    Topics(Vec<(String, Option<BTreeSet<i32>>)>),
}

impl Scope {
    /// From the command line.
    pub fn of(topics: &[String], all: bool, target: &Target) -> Result<Self, Failure> {
        match target {
            Target::Rows(_) => Ok(Self::File),
            Target::Rule(_) if all => Ok(Self::Stored),
            Target::Rule(_) if topics.is_empty() => {
                Err(Failure::usage("which partitions? --topic TOPIC, or --all-topics"))
            }
            Target::Rule(_) => {
                topics.iter().map(|topic| named(topic)).collect::<Result<_, _>>().map(Self::Topics)
            }
        }
    }

    /// The partitions, in order, and what is named and not there.
    pub async fn keys(
        &self,
        group: &str,
        found: &Found,
        target: &Target,
        kafka: &KafkaAdmin,
    ) -> Result<(Vec<TopicPartition>, Vec<String>), Failure> {
        let topics = match self {
            Self::Stored if found.stored.is_empty() => {
                return Ok((Vec::new(), vec![format!("{}, so --all-topics names none", found.nothing())]));
            }
            Self::Stored => return Ok((found.stored.keys().cloned().collect(), Vec::new())),
            Self::File => return Ok((target.keys(group), Vec::new())),
            Self::Topics(topics) => topics,
        };
        let known = kafka.topics().await?;
        let (mut keys, mut missing) = (BTreeSet::new(), Vec::new());
        for (name, numbers) in topics {
            let key = |number: &i32| TopicPartition::new(name.as_str(), *number);
            match (numbers, known.get(name.as_str())) {
                (Some(numbers), _) => keys.extend(numbers.iter().map(key)),
                (None, Some(topic)) => keys.extend(topic.partitions.iter().map(key)),
                (None, None) => missing.push(format!("the topic {name} does not exist")),
            }
        }
        Ok((keys.into_iter().collect(), missing))
    }
}

/// `orders`, or `orders:0,1`.
fn named(text: &str) -> Result<(String, Option<BTreeSet<i32>>), Failure> {
    let wrong = || Failure::usage(format!("--topic {text:?}: write orders, or orders:0,1"));
    let Some((topic, numbers)) = text.split_once(':') else {
        return if text.is_empty() { Err(wrong()) } else { Ok((text.to_owned(), None)) };
    };
    let number = |text: &str| text.trim().parse().ok().filter(|number: &i32| *number >= 0);
    let numbers: Option<BTreeSet<i32>> = numbers.split(',').map(number).collect();
    match numbers {
        Some(numbers) if !topic.is_empty() => Ok((topic.to_owned(), Some(numbers))),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use kafka_troupe::proto::group::reset::ResetTarget;

    use super::*;

    #[test]
    fn topics_are_named_whole_or_by_partition() {
        let of = |topics: &[&str]| {
            let topics: Vec<String> = topics.iter().map(ToString::to_string).collect();
            Scope::of(&topics, false, &Target::Rule(ResetTarget::Earliest)).map_err(|why| why.to_string())
        };
        let some = |numbers: &[i32]| Some(numbers.iter().copied().collect());
        assert_eq!(
            of(&["a", "b:1,0"]),
            Ok(Scope::Topics(vec![("a".to_owned(), None), ("b".to_owned(), some(&[0, 1]))]))
        );
        for wrong in ["", ":0", "a:", "a:x", "a:-1", "a:0,"] {
            assert!(of(&[wrong]).is_err(), "{wrong}");
        }
        assert!(of(&[]).unwrap_err().contains("--all-topics"));
    }
}
