//! Exactly once into SQLite: what comes of a record, and how far its partition is, stand in one transaction. Troupe
//! delivers each record at least once, and the database knows which it has; so a crash at any moment, and even two
//! owners that both believe in themselves, change every balance once.
//!
//! Nobody needs to seek: a record is acknowledged after its transaction, so what is committed is never ahead of the
//! database, and tells only where to begin. (A database that was restored from a copy is behind: seek then.)
//!
//! A topic that is deleted and made again counts from 0 again, and what is new would look as if it were there. So the
//! first record of each partition is remembered by its timestamp, which brokers have from 0.10 on: where another stands
//! in its place, or one before it comes, the partition stops and says so. Delete its row of `positions` to begin anew.
//!
//! `cargo cluster up`, and beside it `cargo run --example exactly_once`, until Ctrl-C, or kill -9, and again; then
//! `sqlite3 /tmp/balances.sqlite 'select * from balances'`. Another file: `--database PATH`.

use std::error::Error;

use actix::prelude::*;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record, RecordBatch, Subscription};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use troupe_cluster::ProduceRecord;

struct Balances {
    database: Connection,
}

impl Actor for Balances {
    type Context = Context<Self>;
}

impl Handler<RecordBatch> for Balances {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> HandlerResult {
        // a writer from the start, so that nobody else moves the position between our look and our write
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut position = Position::read(&transaction, &batch)?;
        for record in batch.records() {
            let position = position.get_or_insert_with(|| Position::beginning_with(&record));
            position.check(&record)?;
            if record.offset() < position.next {
                continue;
            }
            position.next = record.offset() + 1;
            let customer = String::from_utf8_lossy(record.key().unwrap_or_default());
            let cents: i64 = record.text().parse()?;
            transaction.execute(
                "insert into balances values (?1, ?2, 1) on conflict do update \
                 set cents = cents + ?2, transfers = transfers + 1",
                (customer, cents),
            )?;
        }
        if let Some(Position { first, stamp, next }) = position {
            let row = (batch.topic(), batch.partition(), first, stamp, next.max(batch.next_offset()));
            transaction.execute("insert or replace into positions values (?, ?, ?, ?, ?)", row)?;
        }
        Ok(transaction.commit()?)
    }
}

/// What the database has of a partition.
struct Position {
    /// The first record that it was ever given, and that one's timestamp.
    first: i64,
    stamp: Option<i64>,
    /// The first record that it does not have.
    next: i64,
}

impl Position {
    fn read(transaction: &Transaction, batch: &RecordBatch) -> rusqlite::Result<Option<Self>> {
        let select = "select first, stamp, next from positions where topic = ? and part = ?";
        let read = transaction.query_row(select, (batch.topic(), batch.partition()), |row| {
            Ok(Self { first: row.get(0)?, stamp: row.get(1)?, next: row.get(2)? })
        });
        read.optional()
    }

    fn beginning_with(record: &Record) -> Self {
        Self { first: record.offset(), stamp: record.timestamp(), next: record.offset() }
    }

    /// An error for a record of another topic of this name.
    fn check(&self, record: &Record) -> Result<(), String> {
        let is_first = record.offset() == self.first && record.timestamp() == self.stamp;
        if record.offset() > self.first || is_first {
            return Ok(());
        }
        let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
        Err(format!(
            "{topic}-{partition} was made again: its record {offset} is not of the topic in the database"
        ))
    }
}

fn open(path: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.execute_batch(
        "create table if not exists balances (customer text primary key, cents integer, transfers integer);
         create table if not exists positions
             (topic text, part integer, first integer, stamp integer, next integer, primary key (topic, part))",
    )?;
    Ok(database)
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("transfers", 4, (0..10_000).map(transfer))?;
    let default = || format!("{}/balances.sqlite", std::env::temp_dir().display());
    let path = troupe_cluster::argument("--database").unwrap_or_else(default);
    println!("into {path}, until Ctrl-C");
    open(&path)?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id("exactly_once")
        .property("auto.offset.reset", "smallest")
        .build()?;
    let make = move || Balances { database: open(&path).expect("it could be opened before") };
    let transfers = Subscription::topic("transfers").streams(2).handle_batches(500, make);
    let system = ConsumerSystem::builder(config).subscription(transfers).start().await?;
    system.run_until_terminated().await?;
    Ok(())
}

fn transfer(number: u32) -> ProduceRecord {
    let customer = ["alice", "bob", "carol"][number as usize % 3];
    ProduceRecord { key: Some(customer.into()), ..ProduceRecord::value((number % 1_000).to_string()) }
}
