//! Decoded records, and those that cannot be.

use kafka_troupe_actors::DecodeError;
use kafka_troupe_actors::decoder::{Json, Protobuf, Utf8};
use kafka_troupe_proto::kafka::records::NewRecord;
use kafka_troupe_proto::schemas::dead_letter::v1::Header;
use prost::Message as _;

use super::*;

#[derive(serde::Deserialize)]
struct Order {
    id: u32,
}

type Text = fn(&Order) -> String;
/// What handles a record.
type Tells<T> = Box<dyn Fn(Record<T>) -> HandlerResult>;

/// Tells what each record is.
fn telling<T: 'static>(
    tell: &Tell,
    text: impl Fn(&T) -> String + Clone + Send + Sync + 'static,
) -> impl Fn() -> Does<Record<T>, Tells<T>> + Send + Sync + 'static {
    let tell = tell.clone();
    move || {
        let (tell, text) = (tell.clone(), text.clone());
        does(Box::new(move |record: Record<T>| {
            tell.send(format!("{}:{}", record.offset(), text(record.decoded())))?;
            Ok(())
        }))
    }
}

async fn decoding<D: Decoder>(
    world: &World,
    policy: FailurePolicy,
    decoder: D,
    text: impl Fn(&D::Output) -> String + Clone + Send + Sync + 'static,
) -> (ConsumerHandle, Told) {
    let (tell, told) = unbounded_channel();
    let subscription = Subscription::topic("orders").decoder(decoder).on_failure(policy);
    (world.subscribed(subscription.handle(telling(&tell, text))).await, told)
}

const ID: Text = |order| order.id.to_string();

#[test]
fn each_decoder_gives_the_handler_its_values() {
    on_paused_clock(async |world| {
        world.produce_batch(&[r#"{"id":7}"#, r#"{"id":8}"#]);
        let (handle, mut told) = decoding(&world, soon(0), Json::<Order>::new(), ID).await;
        heard_all(&mut told, &["0:7", "1:8"]).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("2"));
    });
    on_paused_clock(async |world| {
        world.produce_batch(&["grün"]);
        let (handle, mut told) = decoding(&world, soon(0), Utf8, String::clone).await;
        heard_all(&mut told, &["0:grün"]).await;
        handle.shutdown().await;
    });
    on_paused_clock(async |world| {
        let value = Header { key: "k".to_owned(), ..Header::default() }.encode_to_vec();
        let record = NewRecord { value: Some(&value), ..NewRecord::default() };
        world.brokers.append_record(&TopicPartition::new("orders", 0), &record);
        let decoder = Protobuf::<Header>::new();
        let (handle, mut told) = decoding(&world, soon(0), decoder, |header| header.key.clone()).await;
        heard_all(&mut told, &["0:k"]).await;
        handle.shutdown().await;
    });
    on_paused_clock(async |world| {
        world.produce_batch(&["12", "13"]);
        let parse = |record: &Record| record.text().parse::<u64>();
        let (handle, mut told) = decoding(&world, soon(0), parse, |number| (2 * number).to_string()).await;
        heard_all(&mut told, &["0:24", "1:26"]).await;
        handle.shutdown().await;
    });
}

#[test]
fn what_cannot_be_decoded_is_not_tried_again_and_stops_its_partition_by_default() {
    on_paused_clock(async |world| {
        world.produce_batch(&[r#"{"id":7}"#, "{", r#"{"id":9}"#]);
        let (handle, mut told) = decoding(&world, soon(5), Json::<Order>::new(), ID).await;
        assert_eq!(all_heard(&mut told).await, ["0:7"]);
        let halted = halted(&handle).await;
        assert_eq!((halted.offset, halted.attempts), (1, 1));
        assert!(
            halted.why.contains("cannot decode the value of orders-0 at offset 1: EOF"),
            "{}",
            halted.why
        );
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("1"));
    });
}

#[test]
fn what_cannot_be_decoded_goes_by_its_own_part_of_the_policy() {
    on_paused_clock(async |world| {
        world.produce_batch(&["{", r#"{"id":8}"#, "null"]);
        let policy = soon(5).undecodable(Then::Skip);
        let (handle, mut told) = decoding(&world, policy, Json::<Order>::new(), ID).await;
        assert_eq!(all_heard(&mut told).await, ["1:8"]);
        assert_eq!(status(&handle).await.streams[0].skipped, 2);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_decoder_whose_error_is_a_value_gives_it_to_the_handler_with_its_place() {
    on_paused_clock(async |world| {
        world.produce_batch(&["1", "x"]);
        let parse = (|record: &Record| record.text().parse::<u64>()).as_value();
        let text = |number: &Result<u64, DecodeError>| match number {
            Ok(number) => number.to_string(),
            Err(DecodeError { topic, partition, offset, why, .. }) => {
                format!("{topic}-{partition}@{offset} {why}")
            }
        };
        let (handle, mut told) = decoding(&world, soon(0), parse, text).await;
        heard_all(&mut told, &["0:1", "1:orders-0@1 invalid digit found in string"]).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("2"));
    });
}

/// By `?`: all before the record is handled, and the record is not tried again.
#[test]
fn in_a_batch_an_undecodable_record_says_its_place() {
    on_paused_clock(async |world| {
        world.produce_batch(&["1", "2", "x", "4"]);
        let (tell, mut told) = unbounded_channel();
        let make = move || {
            let tell: Tell = tell.clone();
            does(move |batch: RecordBatch<u64>| {
                for record in batch {
                    tell.send(record?.into_decoded().to_string())?;
                }
                Ok(())
            })
        };
        let subscription = Subscription::topic("orders").on_failure(soon(5).then(Then::Skip));
        let subscription = subscription.decoder(|record: &Record| record.text().parse::<u64>());
        let handle = world.subscribed(subscription.handle_batches(10, make)).await;
        heard_all(&mut told, &["1", "2", "4"]).await;
        let skipped = status(&handle).await.streams[0].last_skipped.clone().expect("one was");
        assert_eq!((skipped.offset, skipped.attempts), (2, 1));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("4"));
    });
}
