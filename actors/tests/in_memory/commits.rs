//! Commits that are asked for: by handlers, by other actors, after so many records.

mod counted;
mod refused;
mod waiting;

use std::sync::Mutex;

use kafka_troupe_actors::consumer_system::Offsets;
use kafka_troupe_actors::offset_committer::{CommitError, CommittedOffset};

use tokio::sync::Notify;

use super::*;

const BY_HAND: &[(&str, &str)] = &[("auto.offset.reset", "smallest"), ("auto.commit.enable", "false")];

/// Does with each record what it was told to.
pub(super) struct Does<F>(F);

impl<F> Does<F>
where
    F: Fn(Record) -> ResponseFuture<HandlerResult> + Clone + Send + Sync + Unpin + 'static,
{
    fn make(act: F) -> impl Fn() -> Self + Send + Sync + 'static {
        move || Self(act.clone())
    }
}

impl<F: Unpin + 'static> Actor for Does<F> {
    type Context = Context<Self>;
}

impl<F: Fn(Record) -> ResponseFuture<HandlerResult> + Unpin + 'static> Handler<Record> for Does<F> {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        (self.0)(record)
    }
}

/// Commits each record after `takes`, then tells how that came out.
fn commits_each(
    offsets: &Offsets,
    takes: Duration,
    began: &Arc<Notify>,
    tell: UnboundedSender<Result<CommittedOffset, CommitError>>,
) -> impl Fn(Record) -> ResponseFuture<HandlerResult> + Clone + Send + Sync + Unpin + 'static {
    let (offsets, began) = (offsets.clone(), Arc::clone(began));
    move |record| {
        let (offsets, tell) = (offsets.clone(), tell.clone());
        began.notify_one();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            tell.send(offsets.commit_record(&record).await)?;
            Ok(())
        })
    }
}

/// Every value that the offset nodes of the group were given, by topic and partition.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<(String, i64)>>>);

impl Written {
    fn of(world: &World) -> Self {
        let written = Self::default();
        let to = written.clone();
        world.zookeeper.observe(move |path, node| {
            let Some(partition) = path.strip_prefix("/consumers/g/offsets/") else { return };
            let data = node.map(|node| String::from_utf8_lossy(&node.data).into_owned());
            if let Some(offset) = data.and_then(|data| data.parse().ok()) {
                to.0.lock().unwrap().push((partition.to_owned(), offset));
            }
        });
        written
    }

    fn to(&self, partition: &str) -> Vec<i64> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(its, _)| its == partition).map(|(_, offset)| *offset).collect()
    }
}

impl World {
    /// A batch of these for each partition.
    fn fill_with(&self, topic: &str, partitions: i32, values: &[&str]) {
        self.brokers.create_topic(topic, usize::try_from(partitions).expect("some"));
        for partition in 0..partitions {
            self.brokers.append(&TopicPartition::new(topic, partition), values);
        }
    }
}

async fn told<T>(of: &mut UnboundedReceiver<T>) -> T {
    timeout(PATIENCE, of.recv()).await.expect("in time").expect("the handler lives")
}

fn stored(outcome: Result<CommittedOffset, CommitError>) -> (i64, bool) {
    let committed = outcome.expect("it is stored");
    (committed.offset, committed.written)
}

#[test]
fn a_handler_commits_the_record_in_its_hand_and_no_automatic_commit_takes_it_back() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.brokers.append(&TopicPartition::new("orders", 0), &["0", "1", "2", "3"]);
        let properties = [("auto.offset.reset", "smallest"), ("auto.commit.interval.ms", "10")];
        let builder = world.builder_of("a", &properties);
        let (tell, mut of) = unbounded_channel();
        let offsets = builder.offsets();
        let act = move |record: Record| -> ResponseFuture<HandlerResult> {
            let (offsets, tell) = (offsets.clone(), tell.clone());
            Box::pin(async move {
                // automatic commits go by before it, and after it while the record is in hand still
                tokio::time::sleep(Duration::from_millis(55)).await;
                if record.offset() % 2 == 1 {
                    tell.send(offsets.commit_record(&record).await)?;
                    tokio::time::sleep(Duration::from_millis(55)).await;
                }
                Ok(())
            })
        };
        let handle = builder.handle("orders", 1, Does::make(act)).start().await.expect("it starts");
        assert_eq!(stored(told(&mut of).await), (2, true));
        assert_eq!(stored(told(&mut of).await), (4, true));
        handle.shutdown().await;
        assert_eq!(written.to("orders/0"), [0, 1, 2, 3, 4]);
    });
}

/// Commits what it has in hand, and gets no other record before that is done.
struct Immediate(Offsets, UnboundedSender<Result<CommittedOffset, CommitError>>);

impl Actor for Immediate {
    type Context = Context<Self>;
}

impl Handler<Record> for Immediate {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, ctx: &mut Self::Context) -> HandlerResult {
        let committing = self.0.commit_record(&record).into_actor(self);
        ctx.wait(committing.map(|outcome, this, _| this.1.send(outcome).expect("the test listens")));
        Ok(())
    }
}

#[test]
fn a_handler_without_a_future_commits_in_its_context() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        world.brokers.append(&TopicPartition::new("orders", 0), &["0", "1", "2"]);
        let builder = world.builder_of("a", BY_HAND);
        let (tell, mut of) = unbounded_channel();
        let offsets = builder.offsets();
        let make = move || Immediate(offsets.clone(), tell.clone());
        let handle = builder.handle("orders", 1, make).start().await.expect("it starts");
        for offset in 1..=3 {
            assert_eq!(stored(told(&mut of).await), (offset, true));
        }
        handle.shutdown().await;
        assert_eq!(written.to("orders/0"), [1, 2, 3]);
    });
}

struct Other(Offsets);

impl Actor for Other {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "Result<usize, CommitError>")]
struct CommitAll;

impl Handler<CommitAll> for Other {
    type Result = ResponseFuture<Result<usize, CommitError>>;

    fn handle(&mut self, _: CommitAll, _: &mut Self::Context) -> Self::Result {
        let committing = self.0.commit();
        Box::pin(async move { committing.await?.all() })
    }
}

#[test]
fn another_actor_commits_and_is_told_where_there_is_no_member() {
    on_paused_clock(async |world| {
        ["0", "1"].iter().for_each(|value| world.produce(value));
        let builder = world.builder_of("a", BY_HAND).pull("orders", 1);
        let other = Other(builder.offsets()).start();
        let commit = async || other.send(CommitAll).await.expect("it lives");
        assert_eq!(commit().await, Err(CommitError::NotRunning), "not started");
        let handle = builder.start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        assert_eq!([next(&mut stream).await, next(&mut stream).await], ["0", "1"]);
        assert_eq!(commit().await, Ok(1));
        assert_eq!(world.stored().as_deref(), Some("1"));
        assert_eq!(commit().await, Ok(0));
        stream.ack();
        assert_eq!(handle.offsets().commit().await.expect("it runs").all(), Ok(1));
        assert_eq!(world.stored().as_deref(), Some("2"));
        handle.shutdown().await;
        assert_eq!(commit().await, Err(CommitError::NotRunning), "ended");
        assert_eq!(handle.commit().await, Err(CommitError::NotRunning));
    });
}

#[test]
fn a_record_that_is_covered_already_is_committed() {
    on_paused_clock(async |world| {
        ["0", "1", "2"].iter().for_each(|value| world.produce(value));
        let handle = world.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
        let (mut stream, offsets) = (handle.streams("orders").remove(0), handle.offsets());
        let mut records = Vec::new();
        for _ in 0..3 {
            records.push(
                timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end").expect("whole"),
            );
        }
        assert_eq!(stored(offsets.commit_record(&records[1]).await), (2, true));
        assert_eq!(stored(offsets.commit_record(&records[0]).await), (2, false));
        assert_eq!(stored(offsets.commit_record(&records[1]).await), (2, false));
        assert_eq!(stored(offsets.commit_record(&records[2]).await), (3, true));
        handle.shutdown().await;
    });
}
