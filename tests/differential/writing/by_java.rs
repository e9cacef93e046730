//! What Kafka's own producers write.

use troupe_cluster::{Cluster, JavaProducer, KafkaVersion};

use super::Writing;
use crate::journal::{Fate, How};
use crate::records;
use crate::topics::{Topic, taken_by};

const NEWEST: &str = "java 3.9.1";

/// A producer of Kafka's own, and the newest magic that it writes.
pub struct Java {
    name: &'static str,
    magic: i8,
    producer: JavaProducer,
    codec: &'static str,
    /// In a round with transactions; only topics of magic 2 take these.
    transactional: bool,
    transaction: Option<usize>,
}

/// That of 3.9.1 first, and those of the time of the old formats, for brokers that know them.
pub fn producers(cluster: &Cluster) -> Vec<Java> {
    let broker = cluster.broker(0).version();
    let (newest, old) = ((NEWEST, KafkaVersion::V3_9_1), ("java 0.8.2.2", KafkaVersion::V0_8_2_2));
    let all = match broker {
        KafkaVersion::V0_8_2_2 => vec![old],
        KafkaVersion::V0_10_2_2 | KafkaVersion::V1_1_1 => {
            vec![newest, old, ("java 0.10.2.2", KafkaVersion::V0_10_2_2)]
        }
        _ => vec![newest],
    };
    let of = |(name, version): (&'static str, KafkaVersion)| {
        let producer = cluster.java_producer(version, &[("acks", "all")]).unwrap();
        // it writes what both know
        let magic = *taken_by(version.min(broker)).end();
        Java { name, magic, producer, codec: "none", transactional: false, transaction: None }
    };
    std::thread::scope(|scope| {
        // each compiles first
        let starting: Vec<_> = all.into_iter().map(|it| scope.spawn(move || of(it))).collect();
        starting.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

impl Writing<'_> {
    /// Another codec and other sizes for all; transactions are for that of 3.9.1.
    pub(super) fn configure_java(&mut self, codec: &'static str, transactional: bool) {
        for java in &mut self.java {
            let size = self.rng.u32(1..200_000).to_string();
            let linger = self.rng.u32(0..20).to_string();
            let mut properties = vec![
                ("acks", "all"),
                ("batch.size", &size),
                ("linger.ms", &linger),
                ("compression.type", codec),
            ];
            (java.codec, java.transactional) = (codec, transactional && java.magic == 2);
            if java.transactional {
                // the most that brokers allow: what is left open outlives the test
                properties.extend([("transactional.id", "java"), ("transaction.timeout.ms", "900000")]);
            } else if java.name == NEWEST {
                // in order all the same, and for topics of old formats
                properties.extend([
                    ("enable.idempotence", "false"),
                    ("max.in.flight.requests.per.connection", "1"),
                ]);
            }
            java.producer.configure(&properties).unwrap();
        }
    }

    /// Some records, in a transaction that goes on or ends.
    pub(super) fn send_by_java(&mut self) {
        let at = self.rng.usize(..self.java.len());
        let most = if self.rng.bool() { 8 } else { 120 };
        for _ in 0..self.rng.usize(1..=most) {
            self.send_one(at, None);
        }
        self.java[at].producer.flush().unwrap();
        if self.rng.u32(..3) == 0 {
            self.end_java(at);
        }
    }

    fn send_one(&mut self, at: usize, partition: Option<i32>) {
        self.begin_java(at);
        let java = &mut self.java[at];
        let takes = |topic: &&Topic| topic.format == 2 || !java.transactional;
        let topics: Vec<&Topic> = self.topics.iter().filter(takes).collect();
        let topic = topics[self.rng.usize(..topics.len())].clone();
        let mut record = records::plain(self.rng);
        record.partition = partition.unwrap_or(record.partition);
        if java.magic > 0 && self.rng.u32(..4) > 0 {
            record.timestamp = Some(records::timestamp(self.rng));
        }
        if java.magic == 2 && topic.format == 2 {
            record.headers = records::headers(self.rng);
        }
        java.producer.send(topic.name, &record).unwrap();
        let how =
            How { writer: java.name, magic: java.magic, codec: java.codec, transaction: java.transaction };
        self.note(&topic, record, how);
    }

    fn begin_java(&mut self, at: usize) {
        let java = &mut self.java[at];
        if java.transactional && java.transaction.is_none() {
            java.producer.begin().unwrap();
            java.transaction = Some(self.journal.begin());
        }
    }

    /// Commits or aborts, if there is a transaction; all of it is in the log before.
    pub(super) fn end_java(&mut self, at: usize) {
        let Some(transaction) = self.java[at].transaction.take() else { return };
        let fate = self.draw_fate();
        let producer = &mut self.java[at].producer;
        match fate {
            Fate::Committed => producer.commit().map(drop).unwrap(),
            Fate::Aborted | Fate::Open => producer.abort().unwrap(),
        }
        self.ended(transaction, fate);
    }

    /// At the end of one partition, by a process that is killed.
    pub(super) fn leave_java_open(&mut self) {
        self.end_java(0);
        if self.java[0].transactional {
            (0..3).for_each(|_| self.send_one(0, Some(1)));
            self.java[0].producer.flush().unwrap();
        }
        self.java.drain(..).for_each(|java| java.producer.kill().unwrap());
    }
}
