//! Our assignments against those of the real assignors: `tests/cluster/golden` asked them about each line of
//! `golden/cases.jsonl`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::assignor::{self, Plan};
use super::{GroupSnapshot, Member, Strategy};
use crate::TopicPartition;
use crate::config::{ConsumerConfig, InternalTopicsPeers};
use crate::zk::registration::Registration;
use crate::zk::topic_filter::TRANSACTION_STATE;

mod peers;

/// A release of Kafka and what its assignors answered, a line per case.
struct Peer {
    answers: &'static str,
    round_robin: Strategy,
    /// Kafka 0.11 made `__transaction_state` internal.
    before_0_11: bool,
}

const V0_8_2: Peer = Peer {
    answers: include_str!("golden/0.8.2.2.jsonl"),
    round_robin: Strategy::RoundRobinBefore1,
    before_0_11: true,
};
const V0_10_2: Peer = Peer { answers: include_str!("golden/0.10.2.2.jsonl"), ..V0_8_2 };
const V1_1: Peer = Peer {
    answers: include_str!("golden/1.1.1.jsonl"),
    round_robin: Strategy::RoundRobin,
    before_0_11: false,
};

/// Topic to the threads of its partitions, as the answers write them.
type Threads = BTreeMap<String, String>;

struct Case {
    name: String,
    exclude_internal: bool,
    topics: BTreeMap<String, Vec<i32>>,
    members: Vec<(String, Registration)>,
}

impl Case {
    fn parse(line: &str) -> Self {
        let case: Value = serde_json::from_str(line).unwrap();
        let members = case["members"].as_object().unwrap().iter();
        Self {
            name: format!("case {}: {}", case["case"], case["about"]),
            exclude_internal: case["exclude_internal"].as_bool().unwrap(),
            topics: serde_json::from_value(case["topics"].clone()).unwrap(),
            members: members
                .map(|(id, record)| {
                    (id.clone(), Registration::parse(id, record.to_string().as_bytes()).unwrap())
                })
                .collect(),
        }
    }

    fn snapshot(&self, before_0_11: bool) -> GroupSnapshot {
        let all: Vec<_> = self.topics.keys().cloned().collect();
        let kept_out = self.config(before_0_11).kept_out_topics();
        let expand = |(id, record): &(String, Registration)| {
            Member::expand(id, &record.subscription, &all, kept_out).unwrap()
        };
        GroupSnapshot {
            members: self.members.iter().map(expand).collect(),
            partitions: self.topics.iter().map(|(topic, ids)| (topic.as_str().into(), ids.clone())).collect(),
            brokers: 1,
        }
    }

    /// What a member of ours is to be told to be in step with that generation.
    fn config(&self, before_0_11: bool) -> ConsumerConfig {
        let peers = if before_0_11 { InternalTopicsPeers::Before0_11 } else { InternalTopicsPeers::From0_11 };
        let config = ConsumerConfig::builder().zookeeper_connect("z").group_id("g");
        let config = config.exclude_internal_topics(self.exclude_internal).internal_topics_peers(peers);
        config.build().unwrap()
    }

    /// A plan as the answers write it: members by their position, `.` for what is nobody's.
    fn threads(&self, plan: &Plan) -> Threads {
        let name = |topic: &String, partition: &i32| {
            let Some(thread) = plan.get(&TopicPartition::new(topic.as_str(), *partition)) else {
                return ".".to_owned();
            };
            let member = self.members.iter().position(|(id, _)| id == thread.consumer()).unwrap();
            format!("{member}-{}", thread.index())
        };
        let planned = self.topics.iter().filter(|(topic, _)| plan.keys().any(|tp| *tp.topic == ***topic));
        planned
            .map(|(topic, partitions)| {
                let names: Vec<_> = partitions.iter().map(|partition| name(topic, partition)).collect();
                (topic.clone(), names.join(" "))
            })
            .collect()
    }

    fn ours(&self, strategy: Strategy, before_0_11: bool) -> Threads {
        self.threads(&strategy.assign(&self.snapshot(before_0_11)))
    }
}

struct Answer {
    plan: Threads,
    failed: BTreeMap<usize, String>,
}

impl Peer {
    fn answers(&self, strategy: &str) -> impl Iterator<Item = (Case, Answer)> {
        let cases = include_str!("golden/cases.jsonl").lines();
        assert_eq!(cases.clone().count(), self.answers.lines().count());
        let answers = self.answers.lines().map(move |line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let answer = &mut line[strategy];
            Answer {
                plan: serde_json::from_value(answer["plan"].take()).unwrap(),
                failed: serde_json::from_value(answer["failed"].take()).unwrap_or_default(),
            }
        });
        cases.map(Case::parse).zip(answers)
    }
}

#[test]
fn range_is_that_of_every_generation() {
    for peer in [V0_8_2, V0_10_2, V1_1] {
        let mut cases = 0;
        for (case, answer) in peer.answers("range") {
            assert!(answer.failed.is_empty(), "{}", case.name);
            assert_eq!(case.ours(Strategy::Range, peer.before_0_11), answer.plan, "{}", case.name);
            cases += 1;
        }
        assert!(cases >= 400, "{cases} cases");
    }
}

#[test]
fn round_robin_is_that_of_the_relaxed_generations() {
    for peer in [V0_10_2, V1_1] {
        for (case, answer) in peer.answers("roundrobin") {
            assert!(answer.failed.is_empty(), "{}", case.name);
            assert_eq!(case.ours(peer.round_robin, peer.before_0_11), answer.plan, "{}", case.name);
        }
    }
}

/// A strict member throws in every attempt, and gives up after the last; so do all others of its kind.
#[test]
fn round_robin_is_that_of_the_strict_generations_where_they_have_one() {
    let mut refused = 0;
    for (case, answer) in V0_8_2.answers("roundrobin") {
        if assignor::refused_before_0_10_2(&case.snapshot(true)) {
            assert_eq!(answer.failed.len(), case.members.len(), "{}", case.name);
            assert!(answer.plan.is_empty(), "{}", case.name);
            refused += 1;
        } else {
            assert!(answer.failed.is_empty(), "{}", case.name);
            assert_eq!(case.ours(V0_8_2.round_robin, V0_8_2.before_0_11), answer.plan, "{}", case.name);
        }
    }
    assert!((150..300).contains(&refused), "{refused} cases refused");
}

/// So the cases tell the settings apart.
#[test]
fn the_families_of_round_robin_disagree() {
    let differ = |(case, _): &(Case, Answer)| {
        case.ours(Strategy::RoundRobin, false) != case.ours(Strategy::RoundRobinBefore1, false)
    };
    assert!(V1_1.answers("roundrobin").filter(differ).count() > 150);
}

/// To members before 0.11 `.*` includes `__transaction_state`. By range nothing else is touched by that.
#[test]
fn transaction_state_concerns_only_itself_by_range() {
    let mut differ = 0;
    for (case, answer) in V0_8_2.answers("range") {
        let (mut ours, mut theirs) = (case.ours(Strategy::Range, false), answer.plan);
        differ += usize::from(ours != theirs);
        ours.remove(TRANSACTION_STATE);
        theirs.remove(TRANSACTION_STATE);
        assert_eq!(ours, theirs, "{}", case.name);
    }
    assert_eq!(differ, 3);
}
