//! Actors that exist, behind their mailboxes.

use kafka_troupe_proto::group::InFlight;

use super::*;

/// Tells what it gets, slowly; ends when it is told to, or panics with a record.
struct Existing(Tell);

impl Actor for Existing {
    type Context = Context<Self>;
}

impl Handler<Record> for Existing {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        let told = self.0.send(record.text().into_owned());
        assert_ne!(record.text(), "panic");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(told?)
        })
    }
}

impl Handler<RecordBatch> for Existing {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> HandlerResult {
        batch.try_for_each(|record| Ok(self.0.send(record.text().into_owned())?))
    }
}

impl Supervised for Existing {}

#[derive(Message)]
#[rtype(result = "()")]
struct End;

impl Handler<End> for Existing {
    type Result = ();

    fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

fn numbers(count: u32) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// More than its mailbox takes (16), and more than it has room for once it is full (B30a).
#[test]
fn a_burst_larger_than_the_mailbox_is_handled_to_the_last_record() {
    for limit in [InFlight::one(), InFlight::window(64)] {
        on_paused_clock(async |world| {
            let (tell, mut told) = unbounded_channel();
            let existing = Existing(tell).start();
            let burst = numbers(200);
            world.produce_batch(&burst.iter().map(String::as_str).collect::<Vec<_>>());
            let subscription = Subscription::topic("orders").in_flight(limit);
            let handle = world.subscribed(subscription.send_to(existing.clone().recipient())).await;
            let mut heard_all = Vec::new();
            while heard_all.len() < 200 {
                heard_all.push(heard(&mut told).await);
            }
            assert_eq!(heard_all, burst, "in order, and each once");
            until("all is acknowledged", || existing.connected()).await;
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("200"));
        });
    }
}

#[test]
fn batches_are_sent_to_an_actor_as_well() {
    on_paused_clock(async |world| {
        let (tell, mut told) = unbounded_channel();
        let existing = Existing(tell).start();
        let burst = numbers(100);
        burst.iter().for_each(|value| world.produce(value));
        let subscription = Subscription::topic("orders");
        let handle = world.subscribed(subscription.send_batches_to(7, existing.recipient())).await;
        for value in &burst {
            assert_eq!(heard(&mut told).await, *value);
        }
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("100"));
    });
}

/// Whatever the policy says of records that fail: this is no fault of theirs, so none is skipped.
#[test]
fn when_the_actor_has_ended_its_stream_stops_and_nothing_more_is_acknowledged() {
    for policy in [soon(3), soon(0).then(Then::Skip)] {
        on_paused_clock(async |world| {
            world.brokers.create_topic("orders", 2);
            let (tell, mut told) = unbounded_channel();
            let existing = Existing(tell).start();
            world.produce("0");
            let subscription = Subscription::topic("orders").on_failure(policy);
            let handle = world.subscribed(subscription.send_to(existing.clone().recipient())).await;
            assert_eq!(heard(&mut told).await, "0");
            existing.send(End).await.expect("it lives");
            world.produce("1");
            world.produce_to("orders", 1, "other");
            tokio::time::sleep(Duration::from_secs(120)).await;
            let now = status(&handle).await;
            let mut halted: Vec<_> = now.halted.iter().map(|it| (it.partition, &*it.reason)).collect();
            halted.sort_unstable();
            assert_eq!(halted, [(0, "failed"), (1, "failed")]);
            assert!(now.streams[0].stopped.contains("its mailbox is closed"), "{}", now.streams[0].stopped);
            assert_eq!(now.streams[0].skipped, 0);
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("1"));
            assert_eq!(told.recv().await, None);
        });
    }
}

/// Behind actix' supervisor it is made anew, and its mailbox stays.
#[test]
fn a_record_whose_handling_made_a_supervised_actor_panic_has_failed_as_any_other() {
    on_paused_clock(async |world| {
        let (tell, mut told) = unbounded_channel();
        let existing = Supervisor::start(move |_| Existing(tell));
        world.produce_batch(&["0", "panic", "2"]);
        let subscription = Subscription::topic("orders").on_failure(soon(1).then(Then::Skip));
        let handle = world.subscribed(subscription.send_to(existing.recipient())).await;
        // a panic unwinds the supervisor too, so its mailbox is closed then
        heard_all(&mut told, &["0", "panic"]).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(status(&handle).await.streams[0].skipped, 0);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("1"));
    });
}
