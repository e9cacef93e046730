//! What a listener is asked, when starts and losses overlap with a release.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::Generation;

use super::{
    BeforeReleasingPartitions, BeforeStartingPartitions, Occasion, OwnershipLost, RebalanceListener,
    ReleaseQuestion, ReleaseReason,
};

/// Writes down the partition numbers of each message.
struct Notes(Noted);

type Noted = Arc<Mutex<Vec<(&'static str, Vec<i32>)>>>;

impl Notes {
    fn note<'a>(&self, what: &'static str, partitions: impl Iterator<Item = &'a TopicPartition>) {
        self.0.lock().unwrap().push((what, partitions.map(|tp| tp.partition).collect()));
    }
}

impl Actor for Notes {
    type Context = Context<Self>;
}

impl Handler<BeforeStartingPartitions> for Notes {
    type Result = ();

    fn handle(&mut self, it: BeforeStartingPartitions, _: &mut Context<Self>) {
        self.note("start", it.partitions.keys());
    }
}

impl Handler<BeforeReleasingPartitions> for Notes {
    type Result = ();

    fn handle(&mut self, it: BeforeReleasingPartitions, _: &mut Context<Self>) {
        self.note("release", it.partitions.keys());
    }
}

impl Handler<OwnershipLost> for Notes {
    type Result = ();

    fn handle(&mut self, it: OwnershipLost, _: &mut Context<Self>) {
        self.note("lost", it.partitions.iter());
    }
}

const LIMIT: Duration = Duration::from_secs(30);

fn tp(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn in_rebalance(number: u64) -> Occasion {
    Occasion { consumer_id: "g_a".to_owned(), generation: Generation(number) }
}

async fn start(listener: &Arc<RebalanceListener>, number: u64, partitions: &[i32]) {
    let positions = partitions.iter().map(|partition| (tp(*partition), None)).collect();
    listener.before_starting(in_rebalance(number), positions, Arc::default()).await;
}

fn question(listener: &Arc<RebalanceListener>, number: u64, partitions: &[i32]) -> ReleaseQuestion {
    let partitions = partitions.iter().map(|partition| tp(*partition)).collect();
    ReleaseQuestion::about(Some(Arc::clone(listener)), in_rebalance(number), &partitions)
}

fn listener() -> (Arc<RebalanceListener>, Noted) {
    let notes = Noted::default();
    let addr = Notes(Arc::clone(&notes)).start();
    (Arc::new(RebalanceListener::new(&addr)), notes)
}

#[actix::test]
async fn only_what_was_started_is_asked_about_and_once() {
    let (listener, notes) = listener();
    start(&listener, 1, &[0, 1, 2]).await;
    question(&listener, 2, &[1, 2, 3]).ask(&[], ReleaseReason::Rebalance, LIMIT).await;
    question(&listener, 3, &[1]).ask(&[], ReleaseReason::Shutdown, LIMIT).await;
    listener.lost(in_rebalance(3), &[tp(2)].into(), "test");
    let rest = ReleaseQuestion::about_all(Some(Arc::clone(&listener)), in_rebalance(4));
    rest.ask(&[], ReleaseReason::Restarted, LIMIT).await;
    assert_eq!(
        *notes.lock().unwrap(),
        [("start", vec![0, 1, 2]), ("release", vec![1, 2]), ("release", vec![0])]
    );
}

/// While a release waits for its handlers, the session may expire, and the partition start again.
#[actix::test]
async fn what_was_lost_and_started_again_is_not_released_by_the_earlier_question() {
    let (listener, notes) = listener();
    start(&listener, 1, &[0, 1]).await;
    let earlier = question(&listener, 2, &[0, 1]);
    listener.lost(in_rebalance(2), &[tp(0)].into(), "test");
    start(&listener, 3, &[0]).await;
    earlier.ask(&[], ReleaseReason::Rebalance, LIMIT).await;
    let expected = [("start", vec![0, 1]), ("lost", vec![0]), ("start", vec![0]), ("release", vec![1])];
    assert_eq!(*notes.lock().unwrap(), expected);
    question(&listener, 4, &[0]).ask(&[], ReleaseReason::Rebalance, LIMIT).await;
    assert_eq!(notes.lock().unwrap().last(), Some(&("release", vec![0])));
}

#[actix::test]
async fn handlers_leave_a_quarter_of_the_time_to_a_listener_that_is_asked() {
    let (listener, _) = listener();
    start(&listener, 1, &[0]).await;
    assert_eq!(
        question(&listener, 2, &[0]).share_of_handlers(Duration::from_secs(4)),
        Duration::from_secs(3)
    );
    let unasked =
        [question(&listener, 2, &[1]), ReleaseQuestion::about(None, in_rebalance(2), &[tp(0)].into())];
    for question in unasked {
        assert_eq!(question.share_of_handlers(Duration::from_secs(4)), Duration::from_secs(4));
    }
}
