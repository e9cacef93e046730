//! Typed subscriptions: JSON in batches and one by one, with records that cannot be decoded, and a dead-letter topic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::proto::schemas::dead_letter::v1::DeadLetter;
use kafka_troupe::{
    ConsumerSystem, FailurePolicy, HandlerResult, Json, Protobuf, Record, RecordBatch, Subscription, Then,
};
use troupe_cluster::{KafkaVersion, ProduceRecord};

use crate::support::clusters::shared;
use crate::support::system::{config, run};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(json_comes_in_batches_and_what_cannot_be_decoded_goes_to_the_dead_letters);

#[derive(serde::Deserialize)]
struct Order {
    number: u64,
}

/// How often each number was handled, and from which partition.
type Handled = Arc<Mutex<BTreeMap<u64, Vec<i32>>>>;

struct Orders {
    handled: Handled,
    fails: bool,
}

impl Actor for Orders {
    type Context = Context<Self>;
}

impl Handler<RecordBatch<Order>> for Orders {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, batch: RecordBatch<Order>, _: &mut Context<Self>) -> Self::Result {
        let handled = Arc::clone(&self.handled);
        // somewhere in the middle of a batch, once in each life
        let mut fails = std::mem::replace(&mut self.fails, false);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            batch.try_for_each(|order| {
                let number = order.decoded().number;
                if number % 10 == 7 && std::mem::replace(&mut fails, false) {
                    return Err("not now".into());
                }
                handled.lock().unwrap().entry(number).or_default().push(order.partition());
                Ok(())
            })
        })
    }
}

struct Letters(Arc<Mutex<Vec<DeadLetter>>>);

impl Actor for Letters {
    type Context = Context<Self>;
}

impl Handler<Record<DeadLetter>> for Letters {
    type Result = HandlerResult;

    fn handle(&mut self, letter: Record<DeadLetter>, _: &mut Context<Self>) -> HandlerResult {
        self.0.lock().unwrap().push(letter.into_decoded());
        Ok(())
    }
}

/// Every seventh is none.
fn order(number: u64) -> ProduceRecord {
    ProduceRecord::value(if number.is_multiple_of(7) {
        "{".to_owned()
    } else {
        format!(r#"{{"number":{number}}}"#)
    })
}

fn json_comes_in_batches_and_what_cannot_be_decoded_goes_to_the_dead_letters(version: KafkaVersion) {
    let cluster = shared(version);
    let (orders, dead, group) = ("json-orders", "json-orders.dead", "json");
    cluster.create_topic(orders, 4, 1).unwrap();
    cluster.create_topic(dead, 2, 1).unwrap();
    cluster.produce(orders, (0..2_000).map(order)).unwrap();
    run(async {
        let (handled, letters) = (Handled::default(), Arc::new(Mutex::new(Vec::new())));
        let policy = FailurePolicy::retry(3)
            .backoff(Duration::from_millis(10), Duration::from_millis(10))
            .then(Then::DeadLetter(dead.into()));
        let system = ConsumerSystem::builder(config(cluster, group, "m", &[]))
            .subscription({
                let handled = Arc::clone(&handled);
                let orders = Subscription::topic(orders).streams(2).decoder(Json::<Order>::new());
                let make = move || Orders { handled: Arc::clone(&handled), fails: true };
                orders.on_failure(policy).handle_batches(100, make)
            })
            .subscription({
                let letters = Arc::clone(&letters);
                let make = move || Letters(Arc::clone(&letters));
                Subscription::topic(dead).decoder(Protobuf::<DeadLetter>::new()).handle(make)
            });
        let system = system.start().await.unwrap();
        let wanted = (0..2_000).filter(|number| number % 7 == 0).count();
        until_async("all is handled, or a dead letter", async || {
            let (handled, letters) = (handled.lock().unwrap().len(), letters.lock().unwrap().len());
            let all = handled + letters >= 2_000;
            if all { Ok(()) } else { Err(format!("{handled} handled, {letters} dead letters")) }
        })
        .await;
        let letters = std::mem::take(&mut *letters.lock().unwrap());
        assert_eq!(letters.len(), wanted, "each once");
        assert!(letters.iter().all(|letter| letter.value.as_deref() == Some(b"{") && letter.topic == orders));
        let reason = format!("cannot decode the value of {orders}-");
        assert!(letters.iter().all(|letter| letter.reason.starts_with(&reason) && letter.attempts == 1));
        let handled = std::mem::take(&mut *handled.lock().unwrap());
        assert!(
            handled.values().all(|times| times.len() == 1),
            "what was before an error is not handled again"
        );
        assert!(handled.keys().copied().eq((0..2_000).filter(|number| number % 7 != 0)));
        system.shutdown().await;
        let committed: u64 =
            GroupHistory::of(cluster, group).committed(orders).values().map(|offset| *offset as u64).sum();
        assert_eq!(committed, 2_000);
    });
}
