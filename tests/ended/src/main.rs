//! A process with members, which ends in the way that it is told. What it handled is a line on standard output, and so
//! is, when all has ended, what is left of us.
//!
//! Arguments: how it ends, the topic, KEY=VALUE properties.

mod left;
mod ways;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::actors::zk_session::ZOOKEEPER_LOG_FILTER;
use kafka_troupe::{ConsumerConfig, ConsumerHandle, ConsumerSystem, HandlerResult, Record, StartError};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Records after which the process begins to end, where no signal says so.
const ENOUGH: usize = 40;
/// What handling a record takes, so that there are always more.
const TAKES: Duration = Duration::from_millis(2);

/// What the process was told.
#[derive(Clone)]
struct Told {
    topic: String,
    properties: Vec<(String, String)>,
    handled: Arc<AtomicUsize>,
    enough: watch::Sender<bool>,
    /// No handler finishes after those.
    hangs: bool,
}

impl Told {
    async fn start(&self, name: &str) -> Result<ConsumerHandle, StartError> {
        let builder = ConsumerSystem::builder(self.config(name));
        let (told, application) = (self.clone(), System::try_current().map(|system| system.id()));
        let worker = move || Worker { told: told.clone(), application };
        builder.handle(self.topic.clone(), 1, worker).start().await
    }

    async fn start_pulling(&self, name: &str) -> ConsumerHandle {
        let builder = ConsumerSystem::builder(self.config(name)).pull(self.topic.clone(), 1);
        builder.start().await.expect("it starts")
    }

    fn config(&self, name: &str) -> ConsumerConfig {
        let config = ConsumerConfig::builder().property("consumer.id", name);
        let all = self.properties.iter();
        let config = all.fold(config, |config, (key, value)| config.property(key, value));
        config.build().expect("a good configuration")
    }

    fn handled(&self, record: &Record) {
        say(&format!("handled {} {}", record.partition(), record.offset()));
        if self.handled.fetch_add(1, Ordering::Relaxed) + 1 == ENOUGH {
            self.enough.send_replace(true);
        }
    }

    async fn wait_for_enough(&self) {
        // we hold the sender
        let _ = self.enough.subscribe().wait_for(|enough| *enough).await;
    }
}

/// Whole lines, seen at once.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("somebody reads");
}

struct Worker {
    told: Told,
    /// The `System` that it was started in.
    application: Option<usize>,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Record> for Worker {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        assert_eq!(System::try_current().map(|system| system.id()), self.application);
        let told = self.told.clone();
        Box::pin(async move {
            if told.hangs && *told.enough.borrow() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(TAKES).await;
            told.handled(&record);
            Ok(())
        })
    }
}

fn main() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    let filter = filter.add_directive(ZOOKEEPER_LOG_FILTER.parse().expect("a directive"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let (how, topic) = (arguments.next().expect("how to end"), arguments.next().expect("a topic"));
    let property = |text: String| {
        let (key, value) = text.split_once('=').expect("KEY=VALUE");
        (key.to_owned(), value.to_owned())
    };
    let properties = arguments.map(property).collect();
    let enough = watch::Sender::new(false);
    let told = Told { topic, properties, handled: Arc::default(), enough, hangs: false };
    ways::end(&how, &told);
    say(&left::describe());
}
