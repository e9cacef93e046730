use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn partition(number: i32) -> TopicPartition {
    TopicPartition::new("topic", number)
}

#[test]
fn one_and_none_at_once_are_one_after_the_other() {
    for one in [
        InFlight::default(),
        InFlight::window(0),
        InFlight::window(1),
        InFlight::by_key(0),
        InFlight::by_key(1),
    ] {
        assert_eq!(one, InFlight::one());
        assert!(one.is_one() && one.most() == 1 && !one.is_by_key());
    }
}

#[test]
fn a_lane_belongs_to_a_key_of_a_partition_and_only_by_key() {
    let by_key = InFlight::by_key(2);
    let lane = |number, key: &str| by_key.lane(&partition(number), Some(key.as_bytes()));
    assert_eq!(lane(0, "a"), lane(0, "a"));
    assert!(lane(0, "a").is_some() && lane(0, "").is_some());
    assert_eq!(BTreeSet::from([lane(0, "a"), lane(0, "b"), lane(1, "a"), lane(0, "")]).len(), 4);
    assert_eq!(by_key.lane(&partition(0), None), None);
    assert_eq!(InFlight::window(2).lane(&partition(0), Some(b"a")), None);
}

#[test]
fn what_needs_no_handling_is_passed_over_with_the_records_around_it() {
    let mut tracker = OffsetTracker::new(5);
    assert!(tracker.take(5));
    // 6 to 8 were compacted away
    assert!(tracker.take(9));
    tracker.pass(12);
    assert_eq!((tracker.acked(), tracker.reached()), (5, 12));
    assert!(tracker.finish(5));
    assert_eq!(tracker.acked(), 9);
    assert!(tracker.finish(9));
    assert_eq!((tracker.acked(), tracker.unfinished()), (12, 0));
    tracker.pass(10);
    assert_eq!(tracker.acked(), 12);
}

#[test]
fn what_was_not_taken_is_not_finished_and_nothing_is_taken_twice() {
    let mut tracker = OffsetTracker::new(5);
    assert!(!tracker.finish(5) && !tracker.take(4));
    assert!(tracker.take(5) && !tracker.take(5));
    assert!(tracker.finish(5) && !tracker.finish(5));
    assert_eq!(tracker.acked(), 6);
}

/// A record of a made up log: after a gap of so many offsets, in one of a few keys or none.
#[derive(Clone, Debug)]
struct Logged {
    gap: i64,
    partition: usize,
    key: Option<u8>,
}

fn a_log() -> impl Strategy<Value = Vec<Logged>> {
    let record = (prop_oneof![4 => Just(0), 1 => 1..4_i64], 0..3_usize, prop::option::of(0..4_u8));
    prop::collection::vec(record.prop_map(|(gap, partition, key)| Logged { gap, partition, key }), 0..200)
}

/// A stream whose handler ends, or fails, in whatever order it is told.
struct Stream {
    limit: InFlight,
    lanes: Lanes<(usize, i64)>,
    trackers: Vec<OffsetTracker>,
    log: std::vec::IntoIter<Logged>,
    keys: BTreeMap<(usize, i64), Option<u8>>,
    running: Vec<(usize, i64)>,
    /// In the order in which they began, and in which they ended.
    begun: Vec<(usize, i64)>,
    ended: Vec<(usize, i64)>,
}

impl Stream {
    fn new(limit: InFlight, log: Vec<Logged>) -> Self {
        Self {
            limit,
            lanes: Lanes::new(limit),
            trackers: vec![OffsetTracker::new(0); 3],
            log: log.into_iter(),
            keys: BTreeMap::new(),
            running: Vec::new(),
            begun: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn lane(&self, place: (usize, i64)) -> Option<u64> {
        let key = self.keys[&place].map(|key| vec![key]);
        self.limit.lane(&partition(place.0 as i32), key.as_deref())
    }

    fn begin(&mut self, place: (usize, i64)) {
        self.begun.push(place);
        self.running.push(place);
    }

    fn fill(&mut self) {
        while self.lanes.has_room() {
            let Some(record) = self.log.next() else { return };
            let tracker = &mut self.trackers[record.partition];
            let place = (record.partition, tracker.reached() + record.gap);
            assert!(tracker.take(place.1));
            self.keys.insert(place, record.key);
            if let Some(place) = self.lanes.take(self.lane(place), place) {
                self.begin(place);
            }
        }
    }

    fn end(&mut self, which: usize) {
        let place = self.running.remove(which % self.running.len());
        assert!(self.trackers[place.0].finish(place.1));
        self.ended.push(place);
        if let Some(next) = self.lanes.finish(self.lane(place)) {
            self.begin(next);
        }
    }

    /// By definition: everything below it that was taken is done, and the next that was taken is not.
    fn check_acked(&self) {
        for (number, tracker) in self.trackers.iter().enumerate() {
            let taken = || self.keys.keys().filter(|place| place.0 == number).map(|place| place.1);
            let expected = taken().find(|at| !self.ended.contains(&(number, *at)));
            assert_eq!(tracker.acked(), expected.unwrap_or(tracker.reached()));
            assert!(taken().all(|at| at < tracker.reached()));
        }
    }

    fn check_running(&self) {
        assert!(self.running.len() <= self.limit.most());
        assert_eq!(self.running.len(), self.lanes.in_flight());
        let lanes: Vec<_> = self.running.iter().filter_map(|place| self.lane(*place)).collect();
        assert_eq!(lanes.iter().collect::<BTreeSet<_>>().len(), lanes.len(), "two of a lane at once");
        let open: usize = self.trackers.iter().map(OffsetTracker::unfinished).sum();
        assert_eq!(open, self.running.len() + self.lanes.waiting());
    }

    fn in_lane(&self, order: &[(usize, i64)], lane: u64) -> Vec<(usize, i64)> {
        order.iter().copied().filter(|place| self.lane(*place) == Some(lane)).collect()
    }
}

proptest! {
    #[test]
    fn whatever_the_order_of_the_ends_the_prefix_the_lanes_and_the_limit_are_kept_and_all_is_handled(
        log in a_log(),
        most in 1..9_usize,
        by_key: bool,
        ends in prop::collection::vec(any::<usize>(), 200),
    ) {
        let count = log.len();
        let limit = if by_key { InFlight::by_key(most) } else { InFlight::window(most) };
        let mut stream = Stream::new(limit, log);
        for which in ends {
            stream.fill();
            stream.check_running();
            // it is as busy as it may be: only lanes that are taken keep a slot free
            let is_full = stream.running.len() == most;
            prop_assert!(is_full || stream.log.len() == 0 || stream.lanes.waiting() == WAITING_PER_IN_FLIGHT * most);
            if stream.running.is_empty() {
                break;
            }
            stream.end(which);
            stream.check_acked();
        }
        stream.fill();
        prop_assert_eq!(stream.ended.len(), count, "something starved");
        prop_assert_eq!(stream.lanes.waiting() + stream.lanes.in_flight(), 0);
        for tracker in &stream.trackers {
            prop_assert_eq!(tracker.acked(), tracker.reached());
        }
        let lanes: BTreeSet<_> = stream.keys.keys().filter_map(|place| stream.lane(*place)).collect();
        for lane in lanes {
            for order in [&stream.begun, &stream.ended] {
                prop_assert!(stream.in_lane(order, lane).is_sorted(), "{order:?}");
            }
        }
        if !by_key {
            let per_partition = |number| stream.begun.iter().filter(move |place| place.0 == number);
            prop_assert!((0..3).all(|number| per_partition(number).is_sorted()));
        }
    }
}
