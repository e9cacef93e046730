//! Records that keep coming while something happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use troupe_cluster::{Client, Cluster, ProduceRecord};

/// Numbered values.
pub fn numbered(count: u64) -> impl Iterator<Item = ProduceRecord> {
    (0..count).map(|number| ProduceRecord::value(number.to_string()))
}

/// Batches of records that hold their own place, `partition:offset`, of a topic that nobody else writes to; so many
/// for each of its partitions, of which there may come more.
pub fn placed(each: i64, partitions: Arc<AtomicUsize>) -> impl FnMut() -> Vec<ProduceRecord> + Send {
    let mut ends: Vec<i64> = Vec::new();
    move || {
        ends.resize(partitions.load(Ordering::SeqCst), 0);
        let batch = (0..).zip(&ends).flat_map(|(partition, end)| {
            (*end..*end + each).map(move |offset| ProduceRecord {
                partition: Some(partition),
                ..ProduceRecord::value(format!("{partition}:{offset}"))
            })
        });
        let batch = batch.collect();
        ends.iter_mut().for_each(|end| *end += each);
        batch
    }
}

/// Produces a few records at a time until it is ended.
pub struct Load {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Load {
    /// Begins at once, to all partitions that the topic has.
    pub fn start(cluster: &Cluster, topic: &str) -> Self {
        Self::of(cluster, topic, || numbered(40).collect())
    }

    /// Begins at once, with a batch every 20 ms.
    pub fn of(
        cluster: &Cluster,
        topic: &str,
        mut batch: impl FnMut() -> Vec<ProduceRecord> + Send + 'static,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        // of all brokers, for the one that runs may be restarted
        let client = Client::new(cluster.bootstrap())
            .of_version(cluster.broker(0).version(), cluster.zookeeper_connect());
        let (topic, end) = (topic.to_owned(), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            let mut produced = 0;
            while !end.load(Ordering::Relaxed) {
                produced += client.produce(&topic, batch()).expect("records can be produced");
                std::thread::sleep(Duration::from_millis(20));
            }
            produced
        });
        Self { ended, thread }
    }

    /// Ends it; how many records were produced.
    pub fn end(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the load does not panic")
    }
}
