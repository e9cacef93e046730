//! A member whose handling is seen from outside: each record that it handles is a line in a journal file. It commits
//! each 100 records, and only then, until SIGTERM. `tests/rounds` kills it.
//!
//! Arguments: the journal, the member's name in it, the topic, the number of streams, KEY=VALUE properties.

mod commits;
mod journal;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use commits::Commits;
use journal::Journal;
use kafka_troupe::actors::zk_session::ZOOKEEPER_LOG_FILTER;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// What handling a record takes: so that it goes on while commits are made and members come and go.
const TAKES: Duration = Duration::from_millis(1);

/// Handles records of its stream.
struct Worker {
    journal: Arc<Journal>,
    commits: Arc<Commits>,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Record> for Worker {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        let (journal, commits) = (Arc::clone(&self.journal), Arc::clone(&self.commits));
        Box::pin(async move {
            commits.may_handle().await;
            tokio::time::sleep(TAKES).await;
            let key = String::from_utf8_lossy(record.key().unwrap_or_default());
            journal.handled(record.partition(), record.offset(), &key)?;
            commits.handled();
            Ok(())
        })
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut term = signal(SignalKind::terminate())?;
    let filter = EnvFilter::try_from_default_env()?.add_directive(ZOOKEEPER_LOG_FILTER.parse()?);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("JOURNAL NAME TOPIC STREAMS KEY=VALUE ...");
    let (journal, name, topic, streams) = (next()?, next()?, next()?, next()?.parse()?);
    let mut config = ConsumerConfig::builder();
    for property in arguments {
        let (key, value) = property.split_once('=').ok_or("a property is KEY=VALUE")?;
        config = config.property(key, value);
    }
    let journal = Arc::new(Journal::open(&journal, name)?);
    let builder = ConsumerSystem::builder(config.build()?);
    let commits = Arc::new(Commits::new(Arc::clone(&journal), builder.offsets()));
    let make = {
        let (journal, commits) = (Arc::clone(&journal), Arc::clone(&commits));
        move || Worker { journal: Arc::clone(&journal), commits: Arc::clone(&commits) }
    };
    let system = builder.handle(topic, streams, make).start().await?;
    term.recv().await;
    system.shutdown().await;
    Ok(())
}
