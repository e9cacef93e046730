//! What a subscriber of `tracing` sees of a rebalance, a fetch, a commit and a handler.

mod captured;

use captured::{Captured, Span};
use kafka_troupe_actors::{RecordBatch, Subscription};
use kafka_troupe_proto::group::InFlight;
use kafka_troupe_proto::kafka::records::NewRecord;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// Tells what it does in two parts, with something else in between.
#[derive(Clone)]
struct Talker(UnboundedSender<i64>);

impl Actor for Talker {
    type Context = Context<Self>;
}

impl Handler<Record> for Talker {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        let (tell, offset) = (self.0.clone(), record.offset());
        tracing::info!("{offset} begins");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10 - offset as u64)).await;
            tracing::info!("{offset} ends");
            tell.send(offset)?;
            Ok(())
        })
    }
}

/// Refuses every record once.
struct Reluctant {
    refused: Option<i64>,
    tell: UnboundedSender<String>,
}

impl Actor for Reluctant {
    type Context = Context<Self>;
}

impl Handler<Record> for Reluctant {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> HandlerResult {
        tracing::info!("in hand");
        if self.refused.replace(record.offset()) != Some(record.offset()) {
            return Err("not yet".into());
        }
        self.tell.send(record.text().into_owned())?;
        Ok(())
    }
}

impl Handler<RecordBatch> for Reluctant {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch, _: &mut Self::Context) -> HandlerResult {
        tracing::info!("in hand");
        self.tell.send(format!("{} records", batch.len()))?;
        Ok(())
    }
}

fn place(span: &Span) -> (&str, &str, &str) {
    (span.field("topic"), span.field("partition"), span.field("offset"))
}

#[test]
fn a_rebalance_a_fetch_a_commit_and_a_handler_have_spans_that_say_where() {
    on_paused_clock(async |world| {
        let (captured, _guard) = Captured::begin(LevelFilter::DEBUG);
        world.produce("one");
        let (tell, mut told) = unbounded_channel();
        let make = move || Reluctant { refused: None, tell: tell.clone() };
        let handle = world.builder("a").handle("orders", 1, make).start().await.expect("it starts");
        assert_eq!(heard(&mut told).await, "one");
        assert_eq!(handle.commit().await.unwrap().all(), Ok(1));
        handle.shutdown().await;

        let rebalance = captured.ended("rebalance").remove(0);
        assert_eq!(rebalance.target, "kafka_troupe::rebalance");
        for (field, value) in
            [("group", "g"), ("consumer_id", "g_a"), ("claimed", "1"), ("outcome", "stable")]
        {
            assert_eq!(rebalance.field(field), value, "{field}");
        }
        assert!(!rebalance.field("why").is_empty() && rebalance.field("generation") != "0");
        assert!(rebalance.events.iter().any(|event| event.contains("rebalance planned")), "{rebalance:?}");

        assert_eq!(captured.ended("connect")[0].field("broker"), "0");
        let fetches = captured.ended("fetch");
        assert_eq!(
            (fetches[0].target.as_str(), fetches[0].field("from")),
            ("kafka_troupe::fetch", "orders-0@0")
        );
        assert_ne!(fetches[0].field("bytes"), "0");

        let handled = captured.ended("handle");
        assert_eq!(handled.len(), 2, "{handled:?}");
        for span in &handled {
            assert_eq!((span.target.as_str(), place(span)), ("kafka_troupe::handler", ("orders", "0", "0")));
            assert_eq!(span.events, ["in hand"]);
        }
        assert_eq!(handled[0].field("error"), "not yet");
        assert!(!handled[1].fields.contains_key("error"));

        let commit = captured.ended("commit").into_iter().find(|span| span.field("offsets") == "orders-0@1");
        let commit = commit.expect("the commit of what was handled");
        assert_eq!((commit.target.as_str(), commit.field("written")), ("kafka_troupe::commit", "1"));
        assert!(!commit.field("why").is_empty());
    });
}

/// Also of several that are in flight at once and end in another order.
#[test]
fn what_an_asynchronous_handler_does_later_is_in_its_own_record_s_span() {
    for limit in [InFlight::one(), InFlight::window(3)] {
        on_paused_clock(async |world| {
            let (captured, _guard) = Captured::begin(LevelFilter::DEBUG);
            (0..3).for_each(|_| world.produce("x"));
            let (tell, mut told) = unbounded_channel();
            let subscription =
                Subscription::topic("orders").in_flight(limit).handle(move || Talker(tell.clone()));
            let handle = world.builder("a").subscription(subscription).start().await.expect("it starts");
            for _ in 0..3 {
                timeout(PATIENCE, told.recv()).await.expect("in time").expect("the handler lives");
            }
            handle.shutdown().await;
            let handled = captured.ended("handle");
            assert_eq!(handled.len(), 3, "{handled:?}");
            for (offset, span) in handled.iter().enumerate() {
                assert_eq!(place(span), ("orders", "0", &*offset.to_string()));
                assert_eq!(span.events, [format!("{offset} begins"), format!("{offset} ends")], "{limit:?}");
            }
        });
    }
}

#[test]
fn a_batch_has_one_span() {
    on_paused_clock(async |world| {
        let (captured, _guard) = Captured::begin(LevelFilter::DEBUG);
        world.brokers.append(&TopicPartition::new("orders", 0), &["a", "b", "c"]);
        let (tell, mut told) = unbounded_channel();
        let make = move || Reluctant { refused: None, tell: tell.clone() };
        let subscription = Subscription::topic("orders").handle_batches(500, make);
        let handle = world.builder("a").subscription(subscription).start().await.expect("it starts");
        assert_eq!(heard(&mut told).await, "3 records");
        handle.shutdown().await;
        let batches = captured.ended("handle_batch");
        assert_eq!((batches.len(), place(&batches[0])), (1, ("orders", "0", "0")));
        assert_eq!((batches[0].field("records"), &*batches[0].events), ("3", &["in hand".to_owned()][..]));
    });
}

#[test]
fn where_only_info_is_wanted_a_record_makes_no_span_and_a_rebalance_does() {
    on_paused_clock(async |world| {
        let (captured, _guard) = Captured::begin(LevelFilter::INFO);
        world.produce("one");
        let (tell, mut told) = unbounded_channel();
        let make = move || Reluctant { refused: Some(0), tell: tell.clone() };
        let handle = world.builder("a").handle("orders", 1, make).start().await.expect("it starts");
        assert_eq!(heard(&mut told).await, "one");
        handle.shutdown().await;
        assert_eq!(captured.ended("rebalance")[0].field("outcome"), "stable");
        for name in ["handle", "fetch", "connect", "commit"] {
            assert!(captured.ended(name).is_empty(), "{name}");
        }
    });
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PRODUCER: &str = "00f067aa0ba902b7";

/// As a record has them.
type Headers<'a> = &'a [(&'a str, Option<&'a [u8]>)];

/// The spans of the handler that OpenTelemetry exports for records with these headers.
fn exported(headers: &[Headers<'_>]) -> Vec<SpanData> {
    let mut handled = Vec::new();
    on_paused_clock(async |world| {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let tracer = opentelemetry::trace::TracerProvider::tracer(&provider, "test");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_filter(LevelFilter::DEBUG);
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        for headers in headers {
            let record = NewRecord { value: Some(b"x"), headers, ..NewRecord::default() };
            world.brokers.append_record(&TopicPartition::new("orders", 0), &record).unwrap();
        }
        let (tell, mut told) = unbounded_channel();
        let builder = world.builder("a").handle("orders", 1, move || Talker(tell.clone()));
        let handle = builder.start().await.expect("it starts");
        for _ in headers {
            timeout(PATIENCE, told.recv()).await.expect("in time").expect("the handler lives");
        }
        handle.shutdown().await;
        handled = exporter.get_finished_spans().unwrap();
        handled.retain(|span| span.name == "handle");
    });
    handled
}

#[test]
fn the_trace_of_a_record_s_headers_goes_on_in_its_handler() {
    let traceparent = format!("00-{TRACE}-{PRODUCER}-01");
    let spans = exported(&[
        &[("traceparent", Some(traceparent.as_bytes())), ("tracestate", Some(b"vendor=kept"))],
        &[("other", Some(b"x"))],
    ]);
    assert_eq!(spans.len(), 2);
    let context = &spans[0].span_context;
    assert_eq!(
        (context.trace_id().to_string(), spans[0].parent_span_id.to_string()),
        (TRACE.into(), PRODUCER.into())
    );
    assert!(spans[0].parent_span_is_remote);
    assert_eq!(context.trace_state().get("vendor"), Some("kept"));
    assert_eq!(spans[0].span_kind, opentelemetry::trace::SpanKind::Consumer);
    // what the handler told, before and after it waited
    let told: Vec<_> = spans[0].events.iter().map(|event| event.name.as_ref()).collect();
    assert_eq!(told, ["0 begins", "0 ends"]);
    assert_ne!(spans[1].span_context.trace_id().to_string(), TRACE);
    assert_eq!(spans[1].parent_span_id, opentelemetry::trace::SpanId::INVALID);
}

#[test]
fn headers_that_are_no_trace_begin_one_of_their_own() {
    let (zeros, short) = (format!("00-{}-{PRODUCER}-01", "0".repeat(32)), format!("00-{TRACE}-{PRODUCER}"));
    let wrong: [Headers<'_>; 5] = [
        &[("traceparent", None)],
        &[("traceparent", Some(b"\xff\xfe"))],
        &[("traceparent", Some(b""))],
        &[("traceparent", Some(zeros.as_bytes()))],
        &[("traceparent", Some(short.as_bytes()))],
    ];
    let spans = exported(&wrong);
    assert_eq!(spans.len(), wrong.len());
    for span in spans {
        assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
        assert_ne!(span.span_context.trace_id().to_string(), TRACE);
    }
}
