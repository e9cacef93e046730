//! Who hands records over, and how.

use std::hint::black_box;

use actix::prelude::*;
use futures_util::StreamExt as _;
use kafka_troupe::actors::stream_queue::{KafkaStream, ReadOptions};
use kafka_troupe::decoder::{Json, Protobuf, Utf8};
use kafka_troupe::proto::kafka::compression::Decompressor;
use kafka_troupe::proto::kafka::records::{DecodeOptions, RecordBatches};
use kafka_troupe::{InFlight, Record, RecordBatch, Subscribed, Subscription};

use crate::chunks::{Chunk, Order};
use crate::handlers::{Batches, Collected, Lent, Pending, Ready, Sync};
use crate::stream::Stream;

pub const FLOOR: &str = "walking the records";
const MOST: usize = 500;

pub struct Contender {
    pub name: &'static str,
    /// Runs with so many times fewer records than others.
    pub slowness: u64,
    /// Consumes so many records, or a little fewer; gives how many.
    pub run: Box<dyn Fn(u64) -> u64>,
}

impl Contender {
    fn new(name: &'static str, run: impl Fn(u64) -> u64 + 'static) -> Self {
        Self { name, slowness: 1, run: Box::new(run) }
    }

    fn slow(self, slowness: u64) -> Self {
        Self { slowness, ..self }
    }

    /// A stream that is pulled, of so many records.
    fn pulling<P: Future<Output = ()>>(
        name: &'static str,
        chunk: &Chunk,
        pull: impl Fn(KafkaStream, u64) -> P + 'static,
    ) -> Self {
        let chunk = chunk.clone();
        Self::new(name, move |records| {
            System::new().block_on(async {
                let mut stream = Stream::start(None);
                let pulled = KafkaStream::of(stream.queue.clone(), ReadOptions::default());
                let records = stream.feed(&chunk, records);
                pull(pulled, records).await;
                stream.end(records).await;
                records
            })
        })
    }

    /// A stream with its handler, as the subscription says.
    fn handled(name: &'static str, chunk: &Chunk, subscribe: impl Fn() -> Subscribed + 'static) -> Self {
        let chunk = chunk.clone();
        Self::new(name, move |records| {
            System::new().block_on(async {
                let mut stream = Stream::start(subscribe().into_handler());
                let records = stream.feed(&chunk, records);
                stream.end(records).await;
                records
            })
        })
    }
}

pub fn all() -> Vec<Contender> {
    let (json, protobuf) = (&Chunk::json(), &Chunk::protobuf());
    let bytes = || Subscription::topic("bench");
    vec![
        floor(FLOOR, json, <[u8]>::len),
        Contender::handled("batches, records lent", json, move || {
            bytes().handle_batches(MOST, Lent::default)
        }),
        Contender::handled("batches", json, move || bytes().handle_batches(MOST, Batches::default)),
        Contender::handled("batches, into a Vec", json, move || {
            bytes().handle_batches(MOST, Collected::default)
        }),
        Contender::handled("batches of at most 50", json, move || {
            bytes().handle_batches(50, Batches::default)
        }),
        Contender::handled("one by one", json, move || bytes().handle(Sync::default)),
        Contender::handled("one by one, a future that is ready", json, move || bytes().handle(|| Ready)),
        Contender::handled("one by one, a future that waits once", json, move || bytes().handle(|| Pending)),
        Contender::handled("a window of 16, futures that wait once", json, move || {
            bytes().in_flight(InFlight::window(16)).handle(|| Pending)
        }),
        Contender::handled("at most 16 by key, futures that wait once", json, move || {
            bytes().in_flight(InFlight::by_key(16)).handle(|| Pending)
        }),
        pulled(json),
        pulled_in_batches(json),
        pulled_by_a_thread(json),
        Contender::handled("sent to an actor of the same thread", json, move || {
            bytes().send_to(Sync::default().start().recipient::<Record>())
        })
        .slow(4),
        Contender::handled("sent to an actor of another thread", json, move || {
            bytes().send_to(elsewhere::<Sync>().recipient::<Record>())
        })
        .slow(40),
        Contender::handled("the same, a window of 64", json, move || {
            let to = elsewhere::<Sync>().recipient::<Record>();
            bytes().in_flight(InFlight::window(64)).send_to(to)
        })
        .slow(10),
        Contender::handled("batches sent to an actor of another thread", json, move || {
            bytes().send_batches_to(MOST, elsewhere::<Batches>().recipient::<RecordBatch>())
        }),
        floor("walking, and decoding UTF-8", json, |value| {
            std::str::from_utf8(value).map_or(0, |text| text.to_owned().len())
        }),
        Contender::handled("UTF-8, one by one", json, move || bytes().decoder(Utf8).handle(Sync::default)),
        floor("walking, and decoding JSON", json, |value| {
            serde_json::from_slice::<Order>(value).map_or(0, |order| order.note.len())
        })
        .slow(4),
        Contender::handled("JSON, one by one", json, move || {
            bytes().decoder(Json::<Order>::new()).handle(Sync::default)
        })
        .slow(4),
        Contender::handled("JSON, batches", json, move || {
            bytes().decoder(Json::<Order>::new()).handle_batches(MOST, Batches::default)
        })
        .slow(4),
        floor("walking, and decoding Protobuf", protobuf, |value| {
            <Order as prost::Message>::decode(value).map_or(0, |order| order.note.len())
        })
        .slow(4),
        Contender::handled("Protobuf, one by one", protobuf, move || {
            bytes().decoder(Protobuf::<Order>::new()).handle(Sync::default)
        })
        .slow(4),
        Contender::handled("Protobuf, batches", protobuf, move || {
            bytes().decoder(Protobuf::<Order>::new()).handle_batches(MOST, Batches::default)
        })
        .slow(4),
    ]
}

/// Checksums and walks, and looks at each value.
fn floor(name: &'static str, chunk: &Chunk, look: impl Fn(&[u8]) -> usize + 'static) -> Contender {
    let chunk = chunk.clone();
    Contender::new(name, move |records| {
        let (chunks, mut decompressor, mut sum) =
            ((records / chunk.records as u64).max(1), Decompressor::default(), 0);
        for _ in 0..chunks {
            let mut batches = RecordBatches::new(chunk.bytes.clone(), 0, DecodeOptions::default());
            while let Some(batch) = batches.next_batch(&mut decompressor) {
                let batch = batch.expect("a good batch");
                let mut cursor = batch.records();
                while let Some(record) = cursor.next_usual() {
                    sum = black_box(sum + record.value(&batch.payload).map_or(0, &look));
                }
            }
        }
        chunks * chunk.records as u64
    })
}

fn pulled(chunk: &Chunk) -> Contender {
    Contender::pulling("pulled", chunk, |mut pulled, records| async move {
        let mut sum = 0;
        for _ in 0..records {
            let record = pulled.next().await.expect("no end").expect("a good record");
            sum = black_box(sum + record.value().map_or(0, <[u8]>::len));
        }
        pulled.ack();
    })
}

fn pulled_in_batches(chunk: &Chunk) -> Contender {
    Contender::pulling("pulled in batches", chunk, |mut pulled, records| async move {
        let (mut left, mut sum) = (records as usize, 0);
        while left > 0 {
            let batch = pulled.next_batch(MOST).await.expect("no end").expect("good records");
            for record in batch.records() {
                sum = black_box(sum + record.value().map_or(0, <[u8]>::len));
            }
            left -= batch.len();
        }
        pulled.ack();
    })
}

fn pulled_by_a_thread(chunk: &Chunk) -> Contender {
    Contender::pulling("pulled by a thread that blocks", chunk, |pulled, records| {
        let pull = move || {
            let (mut pulled, mut sum) = (pulled.blocking(), 0);
            for record in pulled.by_ref().take(records as usize) {
                let record = record.expect("a good record");
                sum = black_box(sum + record.value().map_or(0, <[u8]>::len));
            }
            pulled.ack();
        };
        let thread = std::thread::spawn(pull);
        // what it has not acknowledged yet is waited for
        async move { drop(thread) }
    })
}

fn elsewhere<A: Actor<Context = Context<A>> + Default + Send>() -> Addr<A> {
    A::start_in_arbiter(&Arbiter::new().handle(), |ctx| {
        ctx.set_mailbox_capacity(256);
        A::default()
    })
}
