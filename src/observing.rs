//! What a member tells of itself: status, health, metrics, spans.
//!
//! | what | how | for |
//! |---|---|---|
//! | status | [`ConsumerHandle::metrics`](crate::ConsumerHandle::metrics), or the message [`Metrics`](crate::Metrics): a [`StatusSnapshot`](crate::StatusSnapshot) in Protobuf, as JSON with the feature `serde` of [`proto`](crate::proto) | programs |
//! | health | [`ConsumerHandle::health`](crate::ConsumerHandle::health): [what makes it what](crate::proto::health) | probes, alerts |
//! | metrics | `kafka_troupe::metrics`, with the feature `metrics`: Prometheus text, and the old consumer's names beside ours | dashboards, alerts |
//! | spans | `tracing`, below | logs, traces |
//! | partitions that come and go | a [rebalance listener](crate::actors::rebalance_listener): messages to an actor of yours | state beside offsets |
//!
//! The feature `web` serves the first three.
//!
//! # Health
//! ```
//! use kafka_troupe::{ConsumerHandle, Health};
//!
//! /// Status and body of `GET /readyz`. (For `/livez`, [`Health::is_live`].)
//! async fn readyz(system: &ConsumerHandle) -> (u16, String) {
//!     match system.health().await {
//!         Health::Failing { why } => (503, why.join("\n")), // which partition, offset, path
//!         health => (if health.is_ready() { 200 } else { 503 }, health.as_str().to_owned()),
//!     }
//! }
//! ```
//!
//! # Spans
//! | target | span | level | from, to | fields |
//! |---|---|---|---|---|
//! | `kafka_troupe::rebalance` | `rebalance` | info | the first trigger, the outcome | `group`, `consumer_id`, `generation`, `why`, `kept`, `released`, `claimed`, `moved`, `waited_for`, `outcome`, `error` |
//! | `kafka_troupe::handler` | `handle` | debug | a record is handed over, its handler is done | `topic`, `partition`, `offset`, `error` |
//! | | `handle_batch` | debug | a batch is handed over, its handler is done | `topic`, `partition`, `offset` (the first), `records`, `error` |
//! | `kafka_troupe::commit` | `commit` | debug | its turn, the stores' answers | `why`, `offsets` (`orders-0@42,...`), `written`, `error` |
//! | `kafka_troupe::fetch` | `connect` | debug | dialling a broker, its answer to what it speaks | `broker`, `fetcher`, `address`, `error` |
//! | | `fetch` | debug | a request is sent, its answer is read | `broker`, `fetcher`, `from` (`orders-0@42,...`; what a fetch session remembers is not said again), `max_bytes`, `bytes`, `error` |
//!
//! Inside a `fetch`, each partition that brought something is told at trace level (`topic`, `partition`, `bytes`,
//! `high_watermark`). What else is logged has the module's path as its target, and stands at warn or error when
//! somebody should look.
//!
//! A handler's code runs inside its record's span, also that of the future that it gives back, and of several in flight
//! each in its own. So `RUST_LOG=info,kafka_troupe::handler=debug` puts topic, partition and offset before every line
//! that a handler logs. Where nobody listens to that target at debug, a record costs a load and a comparison for it;
//! where somebody does, it costs what the subscriber makes of a span, for every record. An actor to which records are
//! [sent](crate::Subscription::send_to) handles them on its own, outside of the span.
//!
//! # OpenTelemetry
//! With the feature `opentelemetry`, a record whose headers carry a W3C Trace Context (`traceparent`, `tracestate`) has
//! its handler's span in the producer's trace, as a child of kind *consumer* of the span that produced it. A batch may
//! hold records of many traces, so its span begins one of its own. All it needs is the layer:
//!
//! ```text
//! let tracer = provider.tracer("billing"); // an SdkTracerProvider of opentelemetry_sdk
//! tracing_subscriber::registry()
//!     .with(tracing_opentelemetry::layer().with_tracer(tracer))
//!     .with(EnvFilter::new("info,kafka_troupe::handler=debug"))
//!     .init();
//! ```
