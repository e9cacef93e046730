use std::time::Duration;

use actix::Actor;

use super::super::placed::LOWER_EPOCH_COUNTS_AFTER;
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
            |key: &TopicPartition| if key.partition == 1 { Err("no leader".to_owned()) } else { Ok(led(7)) };
        self.placements.leaders_found(&self.topics, leader, self.now, self.later)
    }

    fn fail(&mut self, index: usize, at: Place, disposition: Disposition) -> GivenBack {
        self.placements.failed(&at, &self.claims[index], disposition, "why", self.later)
    }
}

fn led(broker: i32) -> Led {
    Led { broker, epoch: None }
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
    let found = bench.placements.leaders_known(|key| (key.partition != 1).then_some(led(7)), bench.now);
    assert_eq!((keys(&found.fetch[&7]), found.resolve[&7].len()), (vec![0], 1));
    assert_eq!(bench.fail(0, FETCHING, Disposition::FindLeader), GivenBack::News);
    let found = bench.placements.leaders_known(|_| Some(led(7)), bench.later);
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
    assert_eq!(found.resolve[&7][0].doubt, Doubt::OutOfRange);
    assert!(found.fetch.is_empty());
    let assigned = bench.placements.resolved(7, &bench.claims[0], bench.now).expect("it is being resolved");
    assert_eq!(keys(&[assigned]), [0]);
    assert!(bench.placements.is_fetching_at(7, |_| true));
    assert!(
        bench.placements.resolved(7, &bench.claims[0], bench.now).is_none(),
        "a second answer starts nothing"
    );
}

#[actix::test]
async fn a_position_that_could_not_be_made_is_tried_again() {
    let mut bench = bench();
    bench.find();
    assert_eq!(bench.fail(2, RESOLVING, Disposition::Retry), GivenBack::News);
    bench.now = bench.later;
    assert_eq!(bench.find().resolve[&7][0].doubt, Doubt::Missing);
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
    assert!(bench.placements.resolved(7, &bench.claims[2], bench.now).is_some());
}

#[actix::test]
async fn a_fetcher_that_is_gone_leaves_its_partitions_leaderless() {
    let mut bench = bench();
    bench.find();
    bench.placements.fetcher_gone(7, |_| true, "it exited", bench.later);
    assert!(!bench.placements.is_fetching_at(7, |_| true));
    bench.now = bench.later;
    assert_eq!(keys(&bench.find().fetch[&7]), [0]);
    assert_eq!(bench.placements.stop(&bench.claims[0].topic_partition), Some(7));
    assert_eq!(bench.placements.stop(&bench.claims[0].topic_partition), None);
}

#[actix::test]
async fn a_fetcher_that_is_gone_takes_no_partitions_of_the_brokers_others_with_it() {
    let mut bench = bench();
    bench.find();
    bench.placements.resolved(7, &bench.claims[2], bench.now).expect("it is being resolved");
    let others = |key: &TopicPartition| key.partition != 0;
    assert!(bench.placements.is_fetching_at(7, others));
    bench.placements.fetcher_gone(7, others, "it exited", bench.later);
    assert!(
        bench.placements.is_fetching_at(7, |key| !others(key)) && !bench.placements.is_fetching_at(7, others)
    );
    bench.placements.fetcher_gone(8, |_| true, "it exited", bench.later);
    assert!(bench.placements.is_fetching_at(7, |_| true));
}

#[actix::test]
async fn a_topic_that_is_made_again_takes_its_partitions_from_where_they_are() {
    let mut bench = bench();
    bench.find();
    let partition = bench.claims[0].clone();
    let key = partition.topic_partition.clone();
    assert_eq!(bench.placements.topic_remade(&key, bench.now), Some(7), "the fetcher must stop");
    assert!(
        bench.placements.leaders_known(|_| Some(led(7)), bench.now).resolve.is_empty(),
        "that was the earlier's"
    );
    assert_eq!(bench.find().resolve[&7][0].doubt, Doubt::TopicRemade);
    assert!(partition.is_of_earlier_topic() && partition.has_appeared());
    // a fetch that was on its way then says something else
    assert_eq!(bench.fail(0, FETCHING, Disposition::ResetOffset), GivenBack::Stale);
    partition.reset(0);
    assert!(bench.placements.resolved(7, &partition, bench.now).is_some());
    assert!(!partition.is_of_earlier_topic());
    assert_eq!(bench.placements.topic_remade(&TopicPartition::new("other", 0), bench.now), None);
}

#[actix::test]
async fn a_position_made_in_the_earlier_topic_is_made_again() {
    for made in [true, false] {
        let mut bench = bench();
        bench.find();
        let partition = bench.claims[2].clone();
        assert_eq!(bench.placements.topic_remade(&partition.topic_partition, bench.now), None);
        assert!(bench.find().resolve.is_empty(), "one is being made");
        if made {
            partition.reset(40);
            assert!(bench.placements.resolved(7, &partition, bench.now).is_none());
        } else {
            assert_eq!(bench.fail(2, RESOLVING, Disposition::FindLeader), GivenBack::News);
            bench.now = bench.later;
        }
        assert_eq!(bench.find().resolve[&7][0].doubt, Doubt::TopicRemade, "made {made}");
        partition.reset(0);
        assert!(bench.placements.resolved(7, &partition, bench.now).is_some());
    }
}

#[actix::test]
async fn what_failed_for_good_starts_when_its_topic_is_made_again() {
    let mut bench = bench();
    bench.find();
    bench.fail(0, FETCHING, Disposition::Fatal);
    bench.placements.topic_remade(&bench.claims[0].topic_partition, bench.now);
    assert_eq!(bench.find().resolve[&7].len(), 1);
}

#[actix::test]
async fn a_claim_at_an_offset_of_an_earlier_topic_gets_one_position_over_all_its_starts() {
    let mut bench = bench();
    let partition = bench.claims[0].clone();
    partition.topic_remade();
    assert_eq!(bench.find().resolve[&7].len(), 2);
    partition.reset(3);
    assert!(bench.placements.resolved(7, &partition, bench.now).is_some());
    assert_eq!(bench.placements.start(assigned(&partition, &Sink.start()), bench.now), Some(7));
    assert_eq!(keys(&bench.find().fetch[&7]), [0]);
}

#[actix::test]
async fn a_position_read_under_another_leader_is_looked_at_before_it_is_fetched_from() {
    let mut bench = bench();
    let now = bench.now;
    let lead = |bench: &mut Bench, epoch| {
        bench.placements.leaders_found(&bench.topics, |_| Ok(Led { broker: 7, epoch: Some(epoch) }), now, now)
    };
    let [first, second, _] = &bench.claims[..] else { unreachable!() };
    let (first, second) = (Arc::clone(first), Arc::clone(second));
    let found = lead(&mut bench, 4);
    assert_eq!(keys(&found.fetch[&7]), [0, 1], "nothing was read under another");
    assert_eq!((first.leader_epoch(), second.leader_epoch()), (4, 4));
    first.set_last_epoch(4);
    bench.placements.fetcher_gone(7, |_| true, "it exited", now);
    let found = lead(&mut bench, 5);
    assert_eq!((keys(&found.fetch[&7]), found.resolve[&7].len()), (vec![1], 1));
    assert_eq!((found.resolve[&7][0].doubt, found.resolve[&7][0].epoch), (Doubt::NewLeader, Some(5)));
    // in doubt until that has gone well
    bench.placements.failed(&RESOLVING, &first, Disposition::Retry, "why", now);
    assert_eq!((lead(&mut bench, 5).resolve[&7].len(), first.leader_epoch()), (1, 4));
    assert!(bench.placements.resolved(7, &first, now).is_some());
    assert_eq!(first.leader_epoch(), 5);
    bench.placements.fetcher_gone(7, |_| true, "it exited", now);
    assert_eq!(keys(&lead(&mut bench, 3).fetch[&7]), [0, 1], "metadata that is behind says nothing");
    assert_eq!((first.leader_epoch(), second.leader_epoch()), (5, 5));
}

/// Metadata says the lower epoch to each lookup, and each fetch is refused (error 75).
#[actix::test]
async fn a_leader_epoch_that_is_never_heard_of_again_is_given_up_and_what_was_read_is_looked_at() {
    let mut bench = bench();
    let (claim, later) = (Arc::clone(&bench.claims[0]), bench.now + LOWER_EPOCH_COUNTS_AFTER);
    claim.set_leader_epoch(5);
    claim.set_last_epoch(5);
    let lead = |bench: &mut Bench, now, epoch| {
        let led = Led { broker: 7, epoch: Some(epoch) };
        bench.placements.leaders_found(&bench.topics, |_| Ok(led), now, now)
    };
    let refused = |bench: &mut Bench, disposition| {
        bench.placements.failed(&FETCHING, &claim, disposition, "75", bench.now);
    };
    let now = bench.now;
    let found = lead(&mut bench, now, 0);
    assert!(found.is_behind, "another broker is asked next");
    assert_eq!(found.newly_behind.first(), Some(&claim.topic_partition));
    refused(&mut bench, Disposition::Retry);
    let found = lead(&mut bench, later - Duration::from_millis(1), 0);
    assert_eq!((found.is_behind, found.newly_behind.len(), claim.leader_epoch()), (true, 0, 5));
    refused(&mut bench, Disposition::Retry);
    let found = lead(&mut bench, later, 0);
    assert_eq!((found.resolve[&7][0].doubt, found.resolve[&7][0].epoch), (Doubt::NewLeader, Some(0)));
    assert!(bench.placements.resolved(7, &claim, later).is_some());
    assert_eq!(claim.leader_epoch(), 0);
}

#[actix::test]
async fn metadata_that_is_behind_only_for_a_while_or_while_something_is_fetched_changes_nothing() {
    for (epoch, fetched, disposition) in
        [(5, 0, Disposition::Retry), (0, 1, Disposition::Retry), (0, 0, Disposition::FindLeader)]
    {
        let mut bench = bench();
        let (claim, now) = (Arc::clone(&bench.claims[0]), bench.now);
        let later = now + LOWER_EPOCH_COUNTS_AFTER;
        claim.set_leader_epoch(5);
        for (at, epoch) in [(now, 0), (now, epoch), (later, 0)] {
            let led = Led { broker: 7, epoch: Some(epoch) };
            bench.placements.leaders_found(&bench.topics, |_| Ok(led), at, at);
            bench.placements.failed(&FETCHING, &claim, disposition, "why", now);
            claim.take_in(claim.fetched(), claim.fetched() + fetched);
        }
        assert_eq!(claim.leader_epoch(), 5, "{epoch} {fetched} {disposition:?}");
    }
}

struct Following {
    bench: Bench,
    partition: Arc<OwnedPartition>,
    key: TopicPartition,
}

/// Broker 7 leads partition 0, which is read from broker 9 for the first time.
fn following() -> Following {
    let mut bench = bench();
    bench.find();
    let (partition, key) = (Arc::clone(&bench.claims[0]), bench.claims[0].topic_partition.clone());
    let mut it = Following { bench, partition, key };
    assert!(it.moved(8, it.bench.now).is_none(), "8 does not lead it");
    assert_eq!(it.moved(7, it.bench.now), Some(true));
    assert!(it.moved(7, it.bench.now).is_none(), "it is not there any more");
    assert!(
        it.bench.placements.is_fetching_at(9, |_| true) && !it.bench.placements.is_fetching_at(7, |_| true)
    );
    it
}

impl Following {
    /// A broker names 9; whether that is news, if it is followed.
    fn moved(&mut self, broker: i32, now: Instant) -> Option<bool> {
        self.bench.placements.moved(broker, &self.partition, 9, now).map(|moved| moved.is_news)
    }
}

/// KIP-392.
#[actix::test]
async fn a_replica_is_read_from_for_five_minutes_or_until_it_has_left() {
    let Following { mut bench, key, .. } = following();
    let (now, in_time) = (bench.now, bench.now + FOLLOWS_FOR);
    bench.placements.stop(&bench.claims[1].topic_partition);
    assert_eq!(bench.placements.next_due(), Some(in_time));
    assert!(bench.placements.back_to_leaders(|_| true, now).is_empty());
    assert_eq!(bench.placements.back_to_leaders(|_| true, in_time), [(9, key.clone())]);
    assert_eq!(bench.placements.led_until(&key), None, "it may be named again");
    bench.now = in_time;
    assert_eq!(keys(&bench.find().fetch[&7]), [0]);

    let Following { mut bench, key, .. } = following();
    assert_eq!(bench.placements.back_to_leaders(|broker| broker != 9, now), [(9, key.clone())]);
    assert_eq!(bench.placements.led_until(&key), Some(now + LED_FOR));

    let Following { mut bench, key, .. } = following();
    assert_eq!(bench.placements.topic_remade(&key, now), Some(9));
    assert_eq!(bench.placements.stop(&key), None);
}

/// The leader sees it, and we cannot reach it.
#[actix::test]
async fn a_replica_that_failed_is_not_followed_for_a_while_and_is_no_news_after_that() {
    let mut it = following();
    let bench = &mut it.bench;
    assert_eq!(bench.fail(0, FETCHING, Disposition::Retry), GivenBack::Stale, "the leader has it no more");
    assert_eq!(bench.fail(0, Place::Fetching { broker: 9 }, Disposition::FindLeader), GivenBack::News);
    let until = bench.later + LED_FOR;
    assert_eq!(bench.placements.led_until(&it.key), Some(until));
    bench.now = bench.later;
    let found = bench.find();
    assert!(found.resolve.is_empty(), "no reset");
    assert_eq!(keys(&found.fetch[&7]), [0]);
    // an answer to a request that still told the rack
    assert_eq!(it.moved(7, it.bench.now), None);
    assert_eq!(keys(&it.bench.find().fetch[&7]), [0], "the leader has it again");
    assert_eq!(it.moved(7, until), Some(false));
}

#[actix::test]
async fn a_follower_that_names_a_replica_sends_its_partition_back_to_the_leader_at_once() {
    let mut it = following();
    assert!(it.bench.placements.is_fetched_by(9, &it.partition));
    assert_eq!(it.moved(9, it.bench.now), None);
    assert_eq!(keys(&it.bench.find().fetch[&7]), [0]);
}
