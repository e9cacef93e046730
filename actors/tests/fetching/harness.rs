//! A manager with its fetchers, streams that say what they got, and a committer that remembers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::prelude::*;
use kafka_troupe_actors::broker_connection::ConnectOptions;
use kafka_troupe_actors::fetcher_manager::{
    Assigned, BrokerAddress, Describe, FetchSettings, FetcherManager, FetchingStatus, SetBrokers,
    StartFetching, Stop,
};
use kafka_troupe_actors::lease::{Lease, SessionEpoch};
use kafka_troupe_actors::offset_committer::{CommitError, CommitReset};
use kafka_troupe_actors::registry::{Claim, Joint, OwnedPartition, Position};
use kafka_troupe_actors::stream_queue::{Credit, FetchedChunk};
use kafka_troupe_actors::supervise::{ChildExited, ExitGuard};
use kafka_troupe_actors::testkit::fetch_settings;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{DecodeOptions, RecordBatches};
use kafka_troupe_proto::zk::ConsumerThreadId;

/// Longer than any step takes on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// One record as it arrived.
pub type Arrived = (i32, i64, String);

/// Decodes what it gets and passes it on, in order; as a full stream it keeps the chunks, and so their credit.
struct Stream {
    arrived: Sender<Arrived>,
    keeps: bool,
    kept: Vec<FetchedChunk>,
}

/// Let the kept chunks go, and keep none from now on.
#[derive(Message)]
#[rtype(result = "()")]
struct LetGo;

impl Actor for Stream {
    type Context = Context<Self>;
}

impl Handler<LetGo> for Stream {
    type Result = ();

    fn handle(&mut self, _: LetGo, _: &mut Context<Self>) {
        self.keeps = false;
        self.kept.clear();
    }
}

impl Handler<FetchedChunk> for Stream {
    type Result = ();

    fn handle(&mut self, mut chunk: FetchedChunk, _: &mut Context<Self>) {
        let from = chunk.partition.fetched();
        if chunk.take_in() != Joint::Next {
            return;
        }
        let partition = chunk.partition.topic_partition.partition;
        let mut decompressor = Decompressor::default();
        let mut batches = RecordBatches::new(chunk.records.clone(), from, DecodeOptions::default());
        while let Some(batch) = batches.next_batch(&mut decompressor) {
            let batch = batch.expect("a whole batch");
            let mut records = batch.records();
            while let Some(record) = records.next() {
                let record = record.expect("a whole record");
                let value = record.value(&batch.payload).unwrap_or_default();
                let value = String::from_utf8(value.to_vec()).expect("text");
                // a test that has seen enough is gone
                let _ = self.arrived.send((partition, record.offset, value));
            }
        }
        if self.keeps {
            self.kept.push(chunk);
        }
    }
}

/// Stores resets in memory.
struct Store(Arc<Mutex<Vec<(i32, i64)>>>);

impl Actor for Store {
    type Context = Context<Self>;
}

impl Handler<CommitReset> for Store {
    type Result = Result<i64, CommitError>;

    fn handle(&mut self, reset: CommitReset, _: &mut Context<Self>) -> Self::Result {
        let partition = reset.partition.topic_partition.partition;
        self.0.lock().expect("no test panics with it").push((partition, reset.offset));
        reset.partition.reset(reset.offset);
        Ok(reset.offset)
    }
}

/// Fails the test when the manager exits by itself.
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

/// A running manager.
pub struct Fetching {
    system: SystemRunner,
    pub manager: Addr<FetcherManager>,
    streams: ArbiterHandle,
    arrived: (Sender<Arrived>, Receiver<Arrived>),
    resets: Arc<Mutex<Vec<(i32, i64)>>>,
}

/// A stream's address and what it has room for.
#[derive(Clone)]
pub struct TestStream {
    addr: Addr<Stream>,
    pub credit: Arc<Credit>,
}

impl TestStream {
    pub fn let_go(&self) {
        self.addr.do_send(LetGo);
    }
}

pub fn settings() -> FetchSettings {
    fetch_settings(ConnectOptions::new("fetching-test", Duration::from_secs(10)))
}

impl Fetching {
    /// A manager on an arbiter of its own, so that the test may block.
    pub fn start(settings: FetchSettings) -> Self {
        let system = System::new();
        let (control, fetchers, streams) =
            (Arbiter::new().handle(), Arbiter::new().handle(), Arbiter::new().handle());
        let resets = Arc::<Mutex<Vec<_>>>::default();
        let stored = Arc::clone(&resets);
        let store = Store::start_in_arbiter(&control, |_| Store(stored));
        let parent = Parent::start_in_arbiter(&control, |_| Parent);
        let manager = FetcherManager::start_in_arbiter(&control, move |_| {
            let guard = ExitGuard::new("fetcher-manager", 1, parent.recipient());
            FetcherManager::new(settings, store.into(), fetchers, guard)
        });
        Self { system, manager, streams, arrived: channel(), resets }
    }

    pub fn set_brokers(&self, brokers: Vec<(i32, u16)>) {
        let address = |(id, port)| BrokerAddress { id, host: "127.0.0.1".to_owned(), port };
        self.manager.do_send(SetBrokers(brokers.into_iter().map(address).collect()));
    }

    /// A stream with room for `chunks`; one that keeps what it gets until told otherwise.
    pub fn stream(&self, chunks: usize, keeps: bool) -> TestStream {
        let arrived = self.arrived.0.clone();
        let stream = Stream { arrived, keeps, kept: Vec::new() };
        let addr = Stream::start_in_arbiter(&self.streams, move |_| stream);
        TestStream { addr, credit: Arc::new(Credit::new(chunks, 16 << 20)) }
    }

    /// Fetches partitions from these offsets, into one stream.
    pub fn fetch(
        &self,
        topic: &str,
        from: impl IntoIterator<Item = (i32, Option<i64>)>,
        stream: &TestStream,
    ) -> Vec<Arc<OwnedPartition>> {
        let claims: Vec<_> = from
            .into_iter()
            .map(|(partition, offset)| claim(topic, partition, offset, &stream.credit))
            .collect();
        let assigned = |partition: &Arc<OwnedPartition>| Assigned {
            partition: Arc::clone(partition),
            stream: stream.addr.clone().recipient(),
        };
        self.manager.do_send(StartFetching(claims.iter().map(assigned).collect()));
        claims
    }

    /// The next `count` records, by partition in order of arrival.
    pub fn expect(&self, count: usize) -> BTreeMap<i32, Vec<(i64, String)>> {
        let mut all: BTreeMap<i32, Vec<_>> = BTreeMap::new();
        let deadline = Instant::now() + PATIENCE;
        for got in 0..count {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((partition, offset, value)) = self.arrived.1.recv_timeout(left) else {
                panic!("{got} of {count} records arrived; {:#?}", self.describe());
            };
            all.entry(partition).or_default().push((offset, value));
        }
        all
    }

    pub fn resets(&self) -> Vec<(i32, i64)> {
        let mut resets = self.resets.lock().expect("no test panics with it").clone();
        resets.sort_unstable();
        resets
    }

    pub fn describe(&self) -> FetchingStatus {
        self.system.block_on(self.manager.send(Describe)).expect("the manager is alive")
    }

    /// Asks again and again until the status is as wished.
    pub fn until(&self, what: &str, wished: impl Fn(&FetchingStatus) -> bool) -> FetchingStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.describe();
            if wished(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "not {what}: {status:#?}");
            // the manager answers at once: leave the machine to those that are waited for
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn stop(&self) {
        self.manager.do_send(Stop);
    }
}

fn claim(topic: &str, partition: i32, offset: Option<i64>, credit: &Arc<Credit>) -> Arc<OwnedPartition> {
    let claim = Claim {
        topic_partition: TopicPartition::new(topic, partition),
        generation: Generation(1),
        session: SessionNumber(1),
        epoch: SessionEpoch(1),
        thread: ConsumerThreadId::new("group_host", 0),
        appeared: false,
        position: Position { offset, in_zookeeper: offset, ..Position::NONE },
    };
    Arc::new(OwnedPartition::new(claim, Arc::clone(credit), Arc::new(Lease::new())))
}
