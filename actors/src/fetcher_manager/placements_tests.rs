use std::time::Duration;

use actix::Actor;

use super::*;
use crate::broker_fetcher::test_claims::{Sink, assigned, claim};
use crate::stream_queue::Credit;

struct Bench {
    placements: Placements,
    now: Instant,
    later: Instant,
    topics: BTreeSet<Arc<str>>,
    claims: Vec<Arc<OwnedPartition>>,
}

/// Partitions 0 and 1 at offset 10, and 2 without an offset.
fn bench() -> Bench {
    let (stream, credit) = (Sink.start(), Arc::new(Credit::new(2, 1_000)));
    let now = Instant::now();
    let mut placements = Placements::default();
    let claims = vec![claim(0, Some(10), &credit), claim(1, Some(10), &credit), claim(2, None, &credit)];
    for claim in &claims {
        assert_eq!(placements.start(assigned(claim, &stream), now), None);
    }
    let topics = placements.due_topics(now);
    Bench { placements, now, later: now + Duration::from_millis(200), topics, claims }
}

impl Bench {
    /// All partitions are led by broker 7, but partition 1 has no leader.
    fn find(&mut self) -> Found {
        let leader =
            |key: &TopicPartition| if key.partition == 1 { Err("no leader".to_owned()) } else { Ok(7) };
        self.placements.leaders_found(&self.topics, leader, self.now, self.later)
    }

    fn fail(&mut self, index: usize, at: Place, disposition: Disposition) -> GivenBack {
        self.placements.failed(&at, &self.claims[index], disposition, "why", self.later)
    }
}

const FETCHING: Place = Place::Fetching { broker: 7 };
const RESOLVING: Place = Place::Resolving { broker: 7 };

fn keys(assigned: &[Assigned]) -> Vec<i32> {
    assigned.iter().map(|assigned| assigned.partition.topic_partition.partition).collect()
}

#[actix::test]
async fn a_leaderless_partition_waits_and_the_others_go_on() {
    let mut bench = bench();
    let found = bench.find();
    assert_eq!(keys(&found.fetch[&7]), [0]);
    assert_eq!(found.resolve[&7].len(), 1);
    assert_eq!(found.leaderless, [(TopicPartition::new("topic", 1), "no leader".to_owned())]);
    assert!(bench.placements.due_topics(bench.now).is_empty());
    assert_eq!(bench.placements.next_due(), Some(bench.later));
    assert_eq!(bench.placements.due_topics(bench.later).len(), 1);
    let waiting: Vec<_> = bench.placements.not_fetching().map(|(key, _, why)| (key.partition, why)).collect();
    assert_eq!(waiting, [(1, Some("no leader")), (2, None)]);
    bench.now = bench.later;
    assert!(bench.find().leaderless.is_empty(), "that is known");
}

#[actix::test]
async fn a_known_leader_counts_for_what_starts_and_not_for_what_failed() {
    let mut bench = bench();
    let found = bench.placements.leaders_known(|key| (key.partition != 1).then_some(7), bench.now);
    assert_eq!((keys(&found.fetch[&7]), found.resolve[&7].len()), (vec![0], 1));
    assert_eq!(bench.fail(0, FETCHING, Disposition::FindLeader), GivenBack::News);
    let found = bench.placements.leaders_known(|_| Some(7), bench.later);
    assert_eq!(keys(&found.fetch[&7]), [1]);
    assert_eq!(bench.placements.due_topics(bench.later).len(), 1, "what failed is looked up");
}

#[actix::test]
async fn an_offset_out_of_range_is_made_anew_before_fetching() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.fail(0, FETCHING, Disposition::ResetOffset), GivenBack::News);
    bench.now = bench.later;
    let found = bench.find();
    assert!(found.resolve[&7][0].out_of_range);
    assert!(found.fetch.is_empty());
    let assigned = bench.placements.resolved(7, &bench.claims[0]).expect("it is being resolved");
    assert_eq!(keys(&[assigned]), [0]);
    assert!(bench.placements.is_fetching_at(7));
    assert!(bench.placements.resolved(7, &bench.claims[0]).is_none(), "a second answer starts nothing");
}

#[actix::test]
async fn a_position_that_could_not_be_made_is_tried_again() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.fail(2, RESOLVING, Disposition::Retry), GivenBack::News);
    bench.now = bench.later;
    assert!(!bench.find().resolve[&7][0].out_of_range);
    assert_eq!(bench.fail(2, RESOLVING, Disposition::Retry), GivenBack::Again);
}

#[actix::test]
async fn only_where_a_claim_is_can_it_fail() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.fail(0, RESOLVING, Disposition::Retry), GivenBack::Stale);
    assert_eq!(bench.fail(0, Place::Fetching { broker: 8 }, Disposition::Retry), GivenBack::Stale);
    let credit = Arc::new(Credit::new(2, 1_000));
    let again = claim(0, Some(3), &credit);
    assert_eq!(bench.placements.start(assigned(&again, &Sink.start()), bench.now), Some(7));
    assert_eq!(bench.fail(0, FETCHING, Disposition::Retry), GivenBack::Stale, "an earlier claim");
}

#[actix::test]
async fn what_failed_for_good_is_not_due_until_it_is_started_again() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.fail(0, FETCHING, Disposition::Fatal), GivenBack::News);
    assert!(bench.placements.not_fetching().any(|(key, failed, _)| key.partition == 0 && failed));
    bench.now = bench.later;
    assert!(bench.find().fetch.is_empty());
    bench.placements.start(assigned(&bench.claims[0], &Sink.start()), bench.now);
    assert_eq!(keys(&bench.find().fetch[&7]), [0]);
}

#[actix::test]
async fn starting_again_leaves_alone_what_is_being_resolved() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.placements.start(assigned(&bench.claims[2], &Sink.start()), bench.now), None);
    assert!(bench.find().resolve.is_empty());
    assert!(bench.placements.resolved(7, &bench.claims[2]).is_some());
}

#[actix::test]
async fn a_fetcher_that_is_gone_leaves_its_partitions_leaderless() {
    let mut bench = bench();
    bench.find();
    bench.placements.fetcher_gone(7, "it exited", bench.later);
    assert!(!bench.placements.is_fetching_at(7));
    bench.now = bench.later;
    assert_eq!(keys(&bench.find().fetch[&7]), [0]);
    assert_eq!(bench.placements.stop(&bench.claims[0].topic_partition), Some(7));
    assert_eq!(bench.placements.stop(&bench.claims[0].topic_partition), None);
}
