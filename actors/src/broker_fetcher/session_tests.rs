use kafka_troupe_proto::kafka::fetch::{FetchRequest, FetchResponse, NEW_SESSION_EPOCH};
use kafka_troupe_proto::kafka::frame::{Response, encode_request};
use kafka_troupe_proto::kafka::wire::Writer;

use super::*;

type Wanted = Vec<(TopicPartition, FetchPartition)>;

fn wanted(topic: &str, partition: i32, offset: i64) -> (TopicPartition, FetchPartition) {
    let asked = FetchPartition { partition, leader_epoch: -1, offset, max_bytes: 1_000 };
    (TopicPartition::new(topic, partition), asked)
}

/// The head of an answer of Fetch 7.
fn head(error: i16, session_id: i32) -> FetchHead {
    let mut out = Writer::default();
    out.i32(0);
    out.i16(error);
    out.i32(session_id);
    out.array("topics", &[], |_, (): &()| {});
    let body = out.finish().expect("a response").freeze();
    FetchResponse::decode(7, body).expect("what was written can be read").head
}

fn partitions(topics: &[FetchTopic]) -> Wanted {
    let of = |topic: &FetchTopic| {
        let name = Arc::clone(&topic.topic);
        let key = move |it: &FetchPartition| (TopicPartition::new(Arc::clone(&name), it.partition), *it);
        topic.partitions.iter().map(key).collect::<Vec<_>>()
    };
    topics.iter().flat_map(of).collect()
}

#[test]
fn only_what_changed_is_asked_for_again() {
    let mut session = FetchSession::default();
    let first = session.ask(&[wanted("a", 0, 0), wanted("a", 1, 0), wanted("b", 0, 0)]);
    assert_eq!((first.session_id, first.session_epoch), (0, NEW_SESSION_EPOCH));
    assert_eq!(partitions(&first.topics).len(), 3);
    assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));

    let nothing = session.ask(&[wanted("a", 1, 0), wanted("b", 0, 0), wanted("a", 0, 0)]);
    assert_eq!((nothing.session_id, nothing.session_epoch), (7, 1));
    assert!(nothing.topics.is_empty() && nothing.forgotten.is_empty());
    assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));

    let changed = session.ask(&[wanted("a", 1, 5), wanted("c", 0, 0)]);
    assert_eq!(changed.session_epoch, 2);
    assert_eq!(partitions(&changed.topics), [wanted("a", 1, 5), wanted("c", 0, 0)]);
    let forgotten: Vec<_> =
        changed.forgotten.iter().map(|it| (it.topic.to_string(), it.partitions.clone())).collect();
    assert_eq!(forgotten, [("a".to_owned(), vec![0]), ("b".to_owned(), vec![0])]);
}

#[test]
fn a_lost_session_is_begun_anew_and_is_no_failure() {
    for code in [70, 71] {
        let mut session = FetchSession::default();
        session.ask(&[wanted("a", 0, 0)]);
        assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));
        session.ask(&[wanted("a", 0, 3)]);
        assert_eq!(session.answered(&head(code, 0)), Ok(Continued::Lost));
        let again = session.ask(&[wanted("a", 0, 3)]);
        assert_eq!(again.session_epoch, NEW_SESSION_EPOCH);
        assert_eq!(partitions(&again.topics), [wanted("a", 0, 3)]);
        assert!(session.answered(&head(code, 0)).is_err(), "a new one cannot be unknown");
    }
}

#[test]
fn a_broker_without_room_for_sessions_is_asked_for_all() {
    let mut session = FetchSession::default();
    for _ in 0..3 {
        let asked = session.ask(&[wanted("a", 0, 0)]);
        assert_eq!((asked.session_id, asked.session_epoch), (0, NEW_SESSION_EPOCH));
        assert_eq!(partitions(&asked.topics).len(), 1);
        assert_eq!(session.answered(&head(0, 0)), Ok(Continued::Yes));
    }
}

#[test]
fn another_connection_and_another_claim_begin_a_session_that_replaces_the_old() {
    let mut session = FetchSession::default();
    session.ask(&[wanted("a", 0, 0)]);
    assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));
    session.renew_if_knows(&TopicPartition::new("b", 0));
    assert!(session.ask(&[wanted("a", 0, 0)]).topics.is_empty());
    assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));
    session.renew_if_knows(&TopicPartition::new("a", 0));
    let asked = session.ask(&[wanted("a", 0, 0)]);
    assert_eq!((asked.session_id, asked.session_epoch), (7, NEW_SESSION_EPOCH));
    assert_eq!(asked.topics.len(), 1);
}

#[test]
fn after_the_highest_epoch_comes_1() {
    let mut session = FetchSession { id: 7, epoch: i32::MAX, ..FetchSession::default() };
    assert_eq!(session.ask(&[]).session_epoch, i32::MAX);
    assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));
    assert_eq!(session.ask(&[]).session_epoch, 1);
}

#[test]
fn a_thousand_idle_partitions_cost_a_few_bytes() {
    let mut session = FetchSession::default();
    let all: Wanted = (0..1_000).map(|partition| wanted("topic", partition, 9)).collect();
    let mut size = || {
        let asked = session.ask(&all);
        let request = FetchRequest {
            max_wait_ms: 100,
            min_bytes: 1,
            max_bytes: 1,
            read_committed: false,
            session_id: asked.session_id,
            session_epoch: asked.session_epoch,
            topics: asked.topics,
            forgotten: asked.forgotten,
            rack: "".into(),
        };
        assert_eq!(session.answered(&head(0, 7)), Ok(Continued::Yes));
        encode_request(&request, 11, 0, "client").expect("a request").len()
    };
    let (first, second) = (size(), size());
    assert!(first > 28_000 && second < 64, "{first} bytes, then {second}");
}

/// What brokers do with sessions, as KIP-227 says.
#[derive(Default)]
struct Broker {
    sessions: BTreeMap<i32, (i32, BTreeMap<TopicPartition, FetchPartition>)>,
    next_id: i32,
}

impl Broker {
    /// What it fetches, and the head of its answer.
    fn take(
        &mut self,
        asked: &Asked,
        has_room: bool,
    ) -> (BTreeMap<TopicPartition, FetchPartition>, FetchHead) {
        let none = BTreeMap::new();
        if asked.session_epoch == NEW_SESSION_EPOCH {
            self.sessions.remove(&asked.session_id);
            let all: BTreeMap<_, _> = partitions(&asked.topics).into_iter().collect();
            if !has_room {
                return (all, head(0, 0));
            }
            self.next_id += 1;
            self.sessions.insert(self.next_id, (1, all.clone()));
            return (all, head(0, self.next_id));
        }
        let Some((epoch, known)) = self.sessions.get_mut(&asked.session_id) else {
            return (none, head(70, 0));
        };
        if *epoch != asked.session_epoch {
            return (none, head(71, 0));
        }
        *epoch += 1;
        known.extend(partitions(&asked.topics));
        for forgotten in &asked.forgotten {
            for partition in &forgotten.partitions {
                let key = TopicPartition::new(Arc::clone(&forgotten.topic), *partition);
                assert!(known.remove(&key).is_some(), "{key} was not known");
            }
        }
        (known.clone(), head(0, asked.session_id))
    }
}

/// Numbers that look random, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn a_broker_fetches_exactly_what_is_wanted_whatever_happens() {
    for seed in 0..200 {
        let (mut chance, mut broker, mut session) =
            (Chance(seed), Broker::default(), FetchSession::default());
        let mut lost_in_a_row = 0;
        for step in 0..100 {
            match chance.below(12) {
                0 => broker.sessions.clear(),
                1 => session.renew(),
                2 => broker.sessions.values_mut().for_each(|(epoch, _)| *epoch += 1),
                _ => {}
            }
            let all = (0..8).map(|n| wanted(["a", "b"][n % 2], n as i32 / 2, chance.below(3) as i64));
            let now: Wanted = all.collect::<Vec<_>>().into_iter().filter(|_| chance.below(4) > 0).collect();
            let asked = session.ask(&now);
            let (fetches, head) = broker.take(&asked, chance.below(6) > 0);
            match session.answered(&head) {
                Ok(Continued::Yes) => {
                    assert_eq!(fetches, now.into_iter().collect(), "seed {seed}, step {step}");
                    lost_in_a_row = 0;
                }
                Ok(Continued::Lost) => lost_in_a_row += 1,
                Err(error) => panic!("seed {seed}, step {step}: {error}"),
            }
            assert!(lost_in_a_row < 2, "seed {seed}, step {step}");
            assert!(broker.sessions.len() < 2, "it need not keep what we have left");
        }
    }
}
