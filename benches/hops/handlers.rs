//! Handlers that do next to nothing: they look at the length of what they are given.

use std::hint::black_box;

use actix::prelude::*;
use kafka_troupe::{HandlerResult, Record, RecordBatch};

use crate::chunks::Order;

/// Something that has a size, so that nobody can leave out looking at it.
pub trait Sized: 'static {
    fn size(record: &Record<Self>) -> usize
    where
        Self: std::marker::Sized;
}

impl Sized for () {
    fn size(record: &Record) -> usize {
        record.value().map_or(0, <[u8]>::len)
    }
}

impl Sized for String {
    fn size(record: &Record<Self>) -> usize {
        record.decoded().len()
    }
}

impl Sized for Order {
    fn size(record: &Record<Self>) -> usize {
        record.decoded().note.len()
    }
}

/// One by one, done at once.
#[derive(Default)]
pub struct Sync(usize);

impl Actor for Sync {
    type Context = Context<Self>;
}

impl<T: Sized> Handler<Record<T>> for Sync {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record<T>, _: &mut Context<Self>) -> HandlerResult {
        self.0 = black_box(self.0 + T::size(&record));
        Ok(())
    }
}

/// One by one, by a future that is ready.
pub struct Ready;

impl Actor for Ready {
    type Context = Context<Self>;
}

impl Handler<Record> for Ready {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            black_box(<() as Sized>::size(&record));
            Ok(())
        })
    }
}

/// One by one, by a future that waits once.
pub struct Pending;

impl Actor for Pending {
    type Context = Context<Self>;
}

impl Handler<Record> for Pending {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            tokio::task::yield_now().await;
            black_box(<() as Sized>::size(&record));
            Ok(())
        })
    }
}

/// In batches, each record taken by itself.
#[derive(Default)]
pub struct Batches(usize);

impl Actor for Batches {
    type Context = Context<Self>;
}

impl<T: Sized> Handler<RecordBatch<T>> for Batches {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch<T>, _: &mut Context<Self>) -> HandlerResult {
        for record in batch {
            self.0 = black_box(self.0 + T::size(&record?));
        }
        Ok(())
    }
}

/// In batches, each record lent.
#[derive(Default)]
pub struct Lent(usize);

impl Actor for Lent {
    type Context = Context<Self>;
}

impl<T: Sized> Handler<RecordBatch<T>> for Lent {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch<T>, _: &mut Context<Self>) -> HandlerResult {
        batch.try_for_each(|record| {
            self.0 = black_box(self.0 + T::size(record));
            Ok(())
        })
    }
}

/// In batches, all records of one at once.
#[derive(Default)]
pub struct Collected(usize);

impl Actor for Collected {
    type Context = Context<Self>;
}

impl Handler<RecordBatch> for Collected {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> HandlerResult {
        let records: Vec<_> = batch.records().collect();
        self.0 = black_box(self.0 + records.iter().map(Sized::size).sum::<usize>());
        Ok(())
    }
}
