//! Reads by Troupe, in two members one after the other: the second goes on where the first has committed.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::prelude::*;
use futures_util::stream::{SelectAll, StreamExt, select_all};
use kafka_troupe::{
    ConsumerConfig, ConsumerHandle, ConsumerSystem, HandlerResult, Header, KafkaStream, Record, TimestampType,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};
use troupe_cluster::{Cluster, JavaRecord};

use crate::journal::Place;

/// Without any record for so long, what is not there does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a reader that gets nothing looks whether it is at the end.
const LOOK: Duration = Duration::from_millis(25);

/// How to read.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub read_committed: bool,
    /// By handler actors, or else pulled.
    pub handled: bool,
    /// `fetch.message.max.bytes`.
    pub fetch_bytes: &'static str,
}

/// What was delivered, partition by partition in the order of delivery, and why no more came, if that is an error.
#[derive(Debug, Default)]
pub struct Delivered {
    pub records: BTreeMap<(String, i32), Vec<JavaRecord>>,
    pub error: Option<String>,
    count: usize,
}

/// Where a member's records come out.
enum Hands {
    Pulled(SelectAll<KafkaStream>),
    Handled(UnboundedReceiver<Record>),
}

/// Reads until the fetchers are at these ends and all that they have got is delivered.
pub fn read(
    cluster: &Cluster,
    topics: &[&'static str],
    ends: &BTreeMap<Place, i64>,
    half: usize,
    way: Way,
) -> Delivered {
    System::new().block_on(async {
        let mut delivered = Delivered::default();
        let group = format!("{}-{}", cluster.broker(0).version(), way.read_committed);
        for limit in [half, usize::MAX] {
            let (member, mut hands) = join(cluster, topics, &group, way).await;
            read_some(&member, &mut hands, ends, limit, &mut delivered).await;
            if let Hands::Pulled(streams) = &mut hands {
                streams.iter_mut().for_each(KafkaStream::ack);
            }
            member.shutdown().await;
            // handlers may have been given more until then
            while let (Hands::Handled(records), None) = (&mut hands, &delivered.error) {
                let Ok(record) = records.try_recv() else { break };
                delivered.add(&record);
            }
        }
        delivered
    })
}

async fn join(cluster: &Cluster, topics: &[&'static str], group: &str, way: Way) -> (ConsumerHandle, Hands) {
    let connect = cluster.zookeeper_connect();
    let level = if way.read_committed { "read_committed" } else { "read_uncommitted" };
    let mut config = ConsumerConfig::builder();
    if cluster.broker(0).version().is_kraft() {
        config = config.property("bootstrap.servers", &cluster.bootstrap());
    }
    let config = config
        .property("zookeeper.connect", &connect)
        .property("group.id", group)
        .property("auto.offset.reset", "smallest")
        .property("isolation.level", level)
        .property("fetch.message.max.bytes", way.fetch_bytes)
        .property("fetch.wait.max.ms", "50")
        .build()
        .unwrap();
    let (sender, records) = unbounded_channel();
    let subscribed = topics.iter().fold(ConsumerSystem::builder(config), |builder, topic| {
        let sender = sender.clone();
        match way.handled {
            true => builder.handle(*topic, 2, move || Sending(sender.clone())),
            false => builder.pull(*topic, 2),
        }
    });
    let member = subscribed.start().await.unwrap();
    let hands = match way.handled {
        true => Hands::Handled(records),
        false => Hands::Pulled(select_all(topics.iter().flat_map(|topic| member.streams(topic)))),
    };
    (member, hands)
}

async fn read_some(
    member: &ConsumerHandle,
    hands: &mut Hands,
    ends: &BTreeMap<Place, i64>,
    limit: usize,
    delivered: &mut Delivered,
) {
    let mut last = Instant::now();
    while delivered.count < limit && delivered.error.is_none() {
        match timeout(LOOK, hands.next()).await {
            Ok(Ok(record)) => {
                delivered.add(&record);
                last = Instant::now();
            }
            Ok(Err(error)) => delivered.error = Some(error),
            Err(_) => match missing(member, ends).await {
                None => return,
                Some(missing) if last.elapsed() > PATIENCE => delivered.error = Some(missing),
                Some(_) => {}
            },
        }
    }
}

/// What is still to come, if anything.
async fn missing(member: &ConsumerHandle, ends: &BTreeMap<Place, i64>) -> Option<String> {
    let status = member.metrics().await.unwrap();
    let fetched = |(topic, partition): &Place| {
        let mut owned = status.partitions.iter();
        owned.find(|it| it.topic == *topic && it.partition == *partition).map_or(-1, |it| it.fetched)
    };
    let short = ends.iter().find(|(place, end)| fetched(place) < **end);
    let queued = status.streams.iter().find(|stream| stream.queued_chunks > 0);
    let errors: Vec<&str> = status.streams.iter().map(|stream| stream.last_error.as_str()).collect();
    match (short, queued) {
        (None, None) => None,
        (Some((place, end)), _) => {
            Some(format!("{place:?} is fetched to {}, not {end}; {errors:?}", fetched(place)))
        }
        (None, Some(stream)) => Some(format!("{} has chunks queued; {errors:?}", stream.name)),
    }
}

impl Hands {
    async fn next(&mut self) -> Result<Record, String> {
        match self {
            Self::Pulled(streams) => match streams.next().await {
                Some(record) => record.map_err(|error| error.to_string()),
                None => Err("the streams have ended".to_owned()),
            },
            Self::Handled(records) => {
                records.recv().await.ok_or_else(|| "the handlers have ended".to_owned())
            }
        }
    }
}

impl Delivered {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        let place = (record.topic().to_owned(), record.partition());
        self.records.entry(place).or_default().push(as_java(record));
    }
}

/// In the words of Kafka's consumer.
fn as_java(record: &Record) -> JavaRecord {
    let timestamp_type = match record.timestamp_type() {
        TimestampType::None => "NoTimestampType",
        TimestampType::Create => "CreateTime",
        TimestampType::LogAppend => "LogAppendTime",
        other => panic!("{other:?}"),
    };
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    let header = |it: Header<'_>| (text(it.key), it.value.map(<[u8]>::to_vec));
    JavaRecord {
        partition: record.partition(),
        offset: record.offset(),
        timestamp: Some(record.timestamp().unwrap_or(-1)),
        timestamp_type: timestamp_type.to_owned(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.value().map(<[u8]>::to_vec),
        headers: record.headers().map(header).collect(),
    }
}

/// Sends the records on.
struct Sending(UnboundedSender<Record>);

impl Actor for Sending {
    type Context = Context<Self>;
}

impl Handler<Record> for Sending {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        self.0.send(record)?;
        Ok(())
    }
}
