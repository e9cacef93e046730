//! At least once into SQLite: a handler answers `Ok` when its rows are written, and only then may a commit cover them.
//! After a crash the records since the last commit come again, and here are rows twice; `exactly_once` is without that.
//!
//! `cargo cluster up`, and beside it `cargo run --example sqlite`, until Ctrl-C; then
//! `sqlite3 /tmp/payments.sqlite 'select customer, sum(cents) from payments group by customer'`. Another file:
//! `--database PATH`.

use std::error::Error;

use actix::prelude::*;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, RecordBatch, Subscription};
use rusqlite::Connection;
use troupe_cluster::ProduceRecord;

struct Payments {
    database: Connection,
}

impl Actor for Payments {
    type Context = Context<Self>;
}

impl Handler<RecordBatch> for Payments {
    type Result = HandlerResult;

    /// A transaction for each batch, rolled back by any error: then all of it comes again.
    fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> HandlerResult {
        let transaction = self.database.transaction()?;
        for record in batch.records() {
            let customer = String::from_utf8_lossy(record.key().unwrap_or_default());
            let cents: i64 = record.text().parse()?;
            let row = (record.partition(), record.offset(), customer, cents);
            transaction.execute("insert into payments values (?, ?, ?, ?)", row)?;
        }
        Ok(transaction.commit()?)
    }
}

/// SQLite has one writer at a time; the others wait for it.
fn open(path: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.execute_batch(
        "create table if not exists payments (part integer, position integer, customer text, cents integer)",
    )?;
    Ok(database)
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("payments", 4, (0..10_000).map(payment))?;
    let default = || format!("{}/payments.sqlite", std::env::temp_dir().display());
    let path = troupe_cluster::argument("--database").unwrap_or_else(default);
    println!("into {path}, until Ctrl-C");
    open(&path)?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id("sqlite")
        .property("auto.offset.reset", "smallest")
        .build()?;
    // each on a thread of its own, which it may block
    let make = move || Payments { database: open(&path).expect("it could be opened before") };
    let payments = Subscription::topic("payments").streams(2).handle_batches(500, make);
    let system = ConsumerSystem::builder(config).subscription(payments).start().await?;
    system.run_until_terminated().await?;
    Ok(())
}

fn payment(number: u32) -> ProduceRecord {
    let customer = ["alice", "bob", "carol"][number as usize % 3];
    ProduceRecord { key: Some(customer.into()), ..ProduceRecord::value((number % 1_000).to_string()) }
}
