//! Subscriptions: every kind of handler and decoder, what comes when, and what is acknowledged.

mod batches;
mod decoders;
mod letters;
mod mailboxes;

use kafka_troupe_actors::consumer_system::Subscribed;
use kafka_troupe_actors::{Decoder, HandlerError, RecordBatch, Subscription};
use kafka_troupe_proto::group::Then;

use super::failing::{all_heard, halted, heard_all, order, status};
use super::*;

/// Handles whatever it is given as a function says.
struct Does<M: Message, F> {
    does: F,
    given: std::marker::PhantomData<fn(M)>,
}

impl<M: Message + 'static, F: Fn(M) -> M::Result + Unpin + 'static> Actor for Does<M, F> {
    type Context = Context<Self>;
}

impl<M, F> Handler<M> for Does<M, F>
where
    M: Message<Result = HandlerResult> + 'static,
    F: Fn(M) -> HandlerResult + Unpin + 'static,
{
    type Result = HandlerResult;

    fn handle(&mut self, given: M, _: &mut Context<Self>) -> HandlerResult {
        (self.does)(given)
    }
}

fn does<M: Message, F: Fn(M) -> M::Result>(does: F) -> Does<M, F> {
    Does { does, given: std::marker::PhantomData }
}

impl World {
    async fn subscribed(&self, subscription: Subscribed) -> ConsumerHandle {
        self.builder("a").subscription(subscription).start().await.expect("it starts")
    }

    /// As one batch of the producer's, which comes in one chunk.
    fn produce_batch(&self, values: &[&str]) {
        self.brokers.append(&TopicPartition::new("orders", 0), values);
    }
}

type Told = UnboundedReceiver<String>;
type Tell = UnboundedSender<String>;

/// Of each kind that a handler may answer with.
macro_rules! answering {
    ($name:ident, $result:ty, $answer:expr) => {
        struct $name(Tell, bool);

        impl Actor for $name {
            type Context = Context<Self>;
        }

        impl Handler<Record> for $name {
            type Result = $result;

            fn handle(&mut self, record: Record, _: &mut Context<Self>) -> $result {
                let _ = self.0.send(record.text().into_owned());
                // the first time only
                let fails = record.text() == "1" && !std::mem::replace(&mut self.1, true);
                let result = if fails { Err("once".into()) } else { Ok(()) };
                $answer(result)
            }
        }

        impl Handler<RecordBatch> for $name {
            type Result = $result;

            fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> $result {
                let mut fails = None;
                for record in batch.records() {
                    let _ = self.0.send(record.text().into_owned());
                    if record.text() == "1" && !std::mem::replace(&mut self.1, true) {
                        fails = Some(HandlerError::at(&record, "once"));
                        break;
                    }
                }
                $answer(fails.map_or(Ok(()), Err))
            }
        }
    };
}

async fn later(result: HandlerResult) -> HandlerResult {
    tokio::time::sleep(Duration::from_millis(5)).await;
    result
}

fn within<A: Actor>(result: HandlerResult) -> ResponseActFuture<A, HandlerResult> {
    Box::pin(fut::wrap_future(later(result)))
}

answering!(AtOnce, HandlerResult, |result| result);
answering!(ByFuture, ResponseFuture<HandlerResult>, |result| -> ResponseFuture<_> {
    Box::pin(later(result))
});
answering!(ByActorFuture, ResponseActFuture<Self, HandlerResult>, within);
answering!(Atomically, AtomicResponse<Self, HandlerResult>, |result| AtomicResponse::new(within(result)));

/// Whatever it answers with, a record that failed comes again before the next one.
#[test]
fn every_kind_of_answer_is_waited_for_and_a_record_that_failed_comes_again_before_the_next() {
    fn one<H>(make: impl Fn(Tell) -> H + Send + Sync + 'static) -> impl Fn(Tell, bool) -> Subscribed
    where
        H: Actor<Context = Context<H>> + Handler<Record> + Handler<RecordBatch>,
        <H as Handler<Record>>::Result: 'static,
        <H as Handler<RecordBatch>>::Result: 'static,
    {
        let make = Arc::new(make);
        move |tell, batches| {
            let make = Arc::clone(&make);
            let make = move || make(tell.clone());
            let subscription = Subscription::topic("orders").on_failure(soon(3));
            if batches { subscription.handle_batches(10, make) } else { subscription.handle(make) }
        }
    }
    let kinds: [Box<dyn Fn(Tell, bool) -> Subscribed>; 4] = [
        Box::new(one(|tell| AtOnce(tell, false))),
        Box::new(one(|tell| ByFuture(tell, false))),
        Box::new(one(|tell| ByActorFuture(tell, false))),
        Box::new(one(|tell| Atomically(tell, false))),
    ];
    for subscribe in &kinds {
        for batches in [false, true] {
            on_paused_clock(async |world| {
                world.produce_batch(&["0", "1", "2", "3"]);
                let (tell, mut told) = unbounded_channel();
                let handle = world.subscribed(subscribe(tell, batches)).await;
                heard_all(&mut told, &["0", "1", "1", "2", "3"]).await;
                handle.shutdown().await;
                assert_eq!(world.stored().as_deref(), Some("4"));
                assert_eq!(told.recv().await, None);
            });
        }
    }
}
