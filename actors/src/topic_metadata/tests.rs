use std::sync::{Mutex, PoisonError};

use super::*;
use crate::broker_connection::Transport;
use crate::supervise::ChildExited;
use crate::testkit::{MemoryBrokers, clock};

/// What was told, oldest first.
type Told = Arc<Mutex<Vec<Changes>>>;

struct Parent;

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, _: &mut Context<Self>) {
        panic!("{exited:?}");
    }
}

fn start(brokers: &MemoryBrokers, servers: &[&str]) -> (Addr<TopicMetadata>, Told) {
    let told = Told::default();
    let heard = Arc::clone(&told);
    let mut connect = ConnectOptions::new("test", Duration::from_secs(30));
    connect.transport = Transport::Memory { brokers: brokers.clone(), client: "test".to_owned() };
    let parts = TopicMetadataParts {
        servers: servers.iter().map(|host| ServerAddress::new(*host, 9092)).collect(),
        connect,
        interval: Duration::from_secs(5),
        backoff: Duration::from_millis(200),
        tell: Box::new(move |changes| heard.lock().unwrap_or_else(PoisonError::into_inner).push(changes)),
        guard: ExitGuard::new("topic-metadata", 1, Parent.start().recipient()),
    };
    (TopicMetadata::new(parts).start(), told)
}

async fn read(metadata: &Addr<TopicMetadata>) -> Result<Arc<Picture>, String> {
    metadata.send(ReadTopics).await.expect("it runs")
}

fn take(told: &Told) -> Vec<Changes> {
    std::mem::take(&mut told.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn status(metadata: &Addr<TopicMetadata>) -> TopicMetadataStatus {
    metadata.send(Describe).await.expect("it runs")
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// In it there is a poll, and what that misses is asked of another broker.
const POLL: Duration = Duration::from_millis(5400);

#[test]
fn what_changes_is_told_once_within_one_interval() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        assert_eq!(read(&metadata).await.expect("an answer").topics["a"].partitions, [0]);
        assert_eq!(take(&told).len(), 1, "the first answer is news");
        brokers.create_topic("a", 3);
        pass(POLL).await;
        let changes = take(&told);
        assert_eq!(changes.len(), 1);
        assert!(!changes[0].topics && !changes[0].brokers);
        assert!(changes[0].partitions.contains("a"));
        pass(POLL * 3).await;
        assert!(take(&told).is_empty(), "nothing changed");
        metadata.do_send(Stop);
    });
}

#[test]
fn a_reader_is_told_of_now_and_many_readers_cost_one_poll() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("a", 1);
        let (metadata, _) = start(&brokers, &["broker-0"]);
        read(&metadata).await.expect("an answer");
        pass(Duration::from_secs(2)).await;
        let polls = status(&metadata).await.polls;
        brokers.create_topic("b", 1);
        let all = futures_util::future::join_all((0..10).map(|_| read(&metadata))).await;
        assert!(all.iter().all(|picture| picture.as_ref().is_ok_and(|it| it.topics.contains_key("b"))));
        assert_eq!(status(&metadata).await.polls, polls + 1);
        metadata.do_send(Stop);
    });
}

#[test]
fn a_broker_that_is_lost_is_passed_over_for_one_that_was_learnt() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["nowhere", "broker-0"]);
        read(&metadata).await.expect("an answer");
        take(&told);
        brokers.stop(0);
        pass(POLL).await;
        let changes = take(&told);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].brokers && !changes[0].topics && changes[0].partitions.is_empty());
        assert_eq!(status(&metadata).await.last_error, None);
        metadata.do_send(Stop);
    });
}

#[test]
fn no_answer_is_not_no_topics() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        read(&metadata).await.expect("an answer");
        take(&told);
        brokers.stop(0);
        pass(POLL * 4).await;
        assert!(read(&metadata).await.expect("what was known").topics.contains_key("a"));
        assert!(take(&told).is_empty());
        assert!(status(&metadata).await.last_error.is_some_and(|why| why.contains("broker-0:9092")));
        brokers.start(0);
        pass(POLL).await;
        assert_eq!(status(&metadata).await.last_error, None);
        assert!(take(&told).is_empty(), "it is as it was");
        metadata.do_send(Stop);
    });
}

#[test]
fn before_the_first_answer_a_reader_learns_whom_we_asked() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("a", 1);
        brokers.stop(0);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        let why = read(&metadata).await.expect_err("nobody answers");
        assert!(
            why.starts_with(
                "no broker of bootstrap.servers tells which topics there are: broker at broker-0:9092: "
            ),
            "{why}"
        );
        brokers.start(0);
        pass(POLL).await;
        assert_eq!(take(&told).len(), 1, "the first answer is told");
        metadata.do_send(Stop);
    });
}

#[test]
fn a_topic_that_was_deleted_goes_and_made_again_it_is_another() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        let first = read(&metadata).await.expect("an answer").topics["a"].id;
        take(&told);
        brokers.delete_topic("a");
        pass(POLL).await;
        assert!(take(&told)[0].topics);
        assert!(!read(&metadata).await.expect("an answer").topics.contains_key("a"));
        brokers.create_topic("a", 1);
        pass(POLL).await;
        take(&told);
        brokers.delete_topic("a");
        brokers.create_topic("a", 1);
        pass(POLL).await;
        let changes = take(&told);
        assert!(!changes[0].topics && changes[0].partitions.contains("a"), "made again between two polls");
        assert_ne!(read(&metadata).await.expect("an answer").topics["a"].id, first);
        metadata.do_send(Stop);
    });
}

/// One that has been restarted, or is cut off from its controller.
#[test]
fn a_topic_that_one_broker_does_not_know_is_not_gone() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        brokers.create_topic("b", 1);
        let (metadata, told) = start(&brokers, &["broker-0", "broker-1"]);
        read(&metadata).await.expect("an answer");
        take(&told);
        brokers.keep_from(0, "a");
        pass(POLL * 3).await;
        assert!(take(&told).is_empty(), "the other knows better");
        // and it is asked from now on
        brokers.keep_from(1, "a");
        pass(POLL).await;
        assert!(take(&told).is_empty());
        brokers.delete_topic("a");
        pass(POLL).await;
        assert!(take(&told)[0].partitions.contains("a"), "both say so");
        metadata.do_send(Stop);
    });
}

/// It was restarted: its brokers come back to it before its topics do.
#[test]
fn what_the_only_broker_does_not_know_for_a_moment_is_not_gone() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        read(&metadata).await.expect("an answer");
        take(&told);
        brokers.keep_from(0, "a");
        pass(POLL).await;
        assert!(read(&metadata).await.expect("what was known").topics.contains_key("a"));
        brokers.keep_from(0, "another");
        pass(POLL * 2).await;
        assert!(take(&told).is_empty());
        brokers.delete_topic("a");
        pass(POLL * 2).await;
        assert!(take(&told)[0].partitions.contains("a"), "it goes on saying so");
        metadata.do_send(Stop);
    });
}

/// It has just started, and has not heard from its controller.
#[test]
fn a_broker_that_knows_of_no_brokers_is_passed_over() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        brokers.keep_brokers_from(Some(0));
        let (metadata, told) = start(&brokers, &["broker-0", "broker-1"]);
        assert!(read(&metadata).await.expect("the other's answer").topics.contains_key("a"));
        assert_eq!(take(&told).len(), 1);
        brokers.keep_brokers_from(Some(1));
        pass(POLL).await;
        assert_eq!(status(&metadata).await.last_error, None, "over the connection that was kept");
        brokers.stop(0);
        pass(POLL).await;
        let why = status(&metadata).await.last_error.expect("nobody knows");
        assert!(why.contains("broker-1:9092: it knows of no brokers yet"), "{why}");
        metadata.do_send(Stop);
    });
}

#[test]
fn who_tells_an_outdated_topic_is_not_asked_again_before_the_others() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic("a", 1);
        let (metadata, _) = start(&brokers, &["broker-0"]);
        let id = read(&metadata).await.expect("an answer").topics["a"].id.expect("an id");
        let asked = Arc::<Mutex<Vec<i32>>>::default();
        let seen = Arc::clone(&asked);
        brokers.set_watch(Arc::new(move |request| {
            if request.api == 3 {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.broker);
            }
        }));
        metadata.do_send(Outdated { topic: "a".into(), id });
        pass(POLL * 2).await;
        assert_eq!(asked.lock().unwrap_or_else(PoisonError::into_inner)[..2], [1, 0]);
        metadata.do_send(Stop);
    });
}

#[test]
fn one_who_sees_that_something_is_wrong_need_not_wait_for_the_next_poll() {
    clock::on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("a", 1);
        let (metadata, told) = start(&brokers, &["broker-0"]);
        read(&metadata).await.expect("an answer");
        take(&told);
        let polls = status(&metadata).await.polls;
        brokers.create_topic("b", 1);
        (0..10).for_each(|_| metadata.do_send(PollNow));
        pass(Duration::from_millis(250)).await;
        assert!(take(&told)[0].topics);
        assert_eq!(status(&metadata).await.polls, polls + 1, "asked often, looked once");
        pass(Duration::from_secs(1)).await;
        assert_eq!(status(&metadata).await.polls, polls + 1);
        metadata.do_send(Stop);
    });
}
