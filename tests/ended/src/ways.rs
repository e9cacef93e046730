//! Every way to end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use actix::prelude::*;
use actix_web::{App, HttpServer};
use futures_util::StreamExt as _;
use kafka_troupe::web::{self, Dashboard};

use super::{Told, say};

pub fn end(how: &str, told: &Told) {
    match how {
        "terminated" => System::new().block_on(terminated(told)),
        "hung" => System::new().block_on(terminated(&Told { hangs: true, ..told.clone() })),
        "stopped" => stopped(told),
        "returned" => System::new().block_on(async { start_and_wait(told).await }),
        "exits" => exits(told),
        "panicked" => panicked(told),
        "pulled" => System::new().block_on(pulled(told, &["m"])),
        "both" => both(told),
        "blocking" => blocking(told),
        "two" => System::new().block_on(two(told)),
        "apart" => apart(told),
        "arbiter" => System::new().block_on(arbiter(told)),
        "served" => System::new().block_on(served(told)),
        "shutdown" => System::new().block_on(shutdown(told)),
        "without" => without(told),
        unknown => panic!("{unknown} is no way to end"),
    }
}

async fn start_and_wait(told: &Told) {
    told.start("m").await.expect("it starts");
    told.wait_for_enough().await;
}

async fn terminated(told: &Told) {
    let member = told.start("m").await.expect("it starts");
    let outcome = member.run_until_terminated().await.expect("signals can be waited for");
    say(&format!("complete {}", outcome.is_complete()));
    outcome.cut_off.iter().for_each(|what| say(what));
}

/// By what runs in it, while nobody waits for the members.
fn stopped(told: &Told) {
    let runner = System::new();
    let told = told.clone();
    runner.runtime().spawn(async move {
        start_and_wait(&told).await;
        System::current().stop();
    });
    runner.run().expect("it ends well");
    say("returned");
}

/// The process is over when the `System` is: nothing may need a moment more.
fn exits(told: &Told) {
    System::new().block_on(start_and_wait(told));
    std::process::exit(0);
}

fn panicked(told: &Told) {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        System::new().block_on(async {
            start_and_wait(told).await;
            panic!("the application fails");
        });
    }));
    assert!(ended.is_err(), "it has panicked");
}

/// A task pulls, and has a record in hand when it ends.
async fn pulled(told: &Told, members: &[&str]) {
    for name in members {
        let mut stream = told.start_pulling(name).await.streams(&told.topic).remove(0);
        let pulling = told.clone();
        actix::spawn(async move {
            while let Some(Ok(record)) = stream.next().await {
                tokio::time::sleep(super::TAKES).await;
                pulling.handled(&record);
                stream.ack();
            }
        });
    }
    told.wait_for_enough().await;
}

/// Two such members: what is in their tasks' hands is waited for, of both at once.
fn both(told: &Told) {
    let begun = System::new().block_on(async {
        pulled(told, &["one", "two"]).await;
        Instant::now()
    });
    say(&format!("at once {}", begun.elapsed() < Duration::from_secs(4)));
}

/// A thread pulls, and ends by the end of its stream.
fn blocking(told: &Told) {
    let puller = System::new().block_on(async {
        let member = told.start_pulling("m").await;
        let stream = member.streams(&told.topic).remove(0).blocking();
        let pulling = told.clone();
        let puller = std::thread::spawn(move || {
            for record in stream {
                std::thread::sleep(super::TAKES);
                pulling.handled(&record.expect("it can be read"));
            }
        });
        told.wait_for_enough().await;
        puller
    });
    puller.join().expect("the stream has ended");
}

async fn two(told: &Told) {
    told.start("one").await.expect("it starts");
    start_and_wait(told).await;
}

/// Each in a `System` of its own: one is shut down, the other ends with its `System`.
fn apart(told: &Told) {
    let (one, two) = (told.clone(), told.clone());
    let first = std::thread::spawn(move || System::new().block_on(shutdown(&one)));
    let second = std::thread::spawn(move || System::new().block_on(start_and_wait(&two)));
    first.join().expect("it ends well");
    second.join().expect("it ends well");
}

/// Those of its handlers end, and its `System` goes on.
async fn arbiter(told: &Told) {
    let member = told.start("m").await.expect("it starts");
    told.wait_for_enough().await;
    System::current().stop();
    // nobody has said that it should
    let outcome = member.run_until_terminated().await.expect("signals can be waited for");
    say(&format!("complete {}", outcome.is_complete()));
    let again = told.start("again").await.err();
    say(&format!("again {}", again.map(|error| error.to_string()).unwrap_or_default()));
}

/// By a server that handles signals itself, whose end is that of `main`.
async fn served(told: &Told) {
    let member = told.start("m").await.expect("it starts");
    let dashboard = Dashboard::new([member]);
    let app = move || App::new().service(web::scope("/troupe", &dashboard));
    let server = HttpServer::new(app).workers(1).bind("127.0.0.1:0").expect("a free port");
    say(&format!("serving {}", server.addrs()[0]));
    server.run().await.expect("it serves");
    say("served");
}

/// Twice at once, and once more.
async fn shutdown(told: &Told) {
    let member = told.start("one").await.expect("it starts");
    told.wait_for_enough().await;
    let (first, second) = tokio::join!(member.shutdown(), member.shutdown());
    let third = member.shutdown().await;
    assert_eq!((&first, &second), (&second, &third));
    assert!(first.is_complete(), "{first:?}");
    say(&super::left::describe());
}

fn without(told: &Told) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let refused = runtime.block_on(told.start("m")).err();
    say(&format!("refused {}", refused.map(|error| error.to_string()).unwrap_or_default()));
}
