//! Handlers that end for reasons of their own.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use kafka_troupe_actors::Subscription;

use super::*;

/// Cannot handle anything, and ends for reasons of its own soon after it was made.
struct Restless(Arc<AtomicU64>);

impl Actor for Restless {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.0.fetch_add(1, SeqCst);
        ctx.run_later(Duration::from_millis(20), |_, ctx| ctx.stop());
    }
}

impl Handler<Record> for Restless {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Self::Context) -> HandlerResult {
        Err("not now".into())
    }
}

/// Else a failure that waits to be tried again would stand for the end of each life, and none be paused for.
#[test]
fn a_handler_that_ends_while_a_record_waits_to_be_tried_again_is_not_made_anew_without_a_pause() {
    on_paused_clock(async |world| {
        let lives = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lives);
        let subscription = Subscription::topic("orders").handle(move || Restless(Arc::clone(&counted)));
        let member = world.builder("a").subscription(subscription).start().await.expect("it starts");
        world.produce("x");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let lives = lives.load(SeqCst);
        assert!((3..20).contains(&lives), "{lives} lives in 10 s");
        member.shutdown().await;
    });
}
