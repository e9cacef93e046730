//! An actix-web app that consumes: its own routes, and beside them health, metrics and the dashboard.
//!
//! `cargo cluster up`, and beside it `cargo run --example web`, until Ctrl-C; then open
//! <http://127.0.0.1:8080/troupe/>. Another port: `--port PORT`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use actix::prelude::*;
use actix_web::{App, HttpServer, web};
use kafka_troupe::web::Dashboard;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record};

#[derive(Clone, Default)]
struct Clicks(Arc<AtomicU64>);

impl Actor for Clicks {
    type Context = Context<Self>;
}

impl Handler<Record> for Clicks {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Context<Self>) -> HandlerResult {
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

async fn count(clicks: web::Data<Clicks>) -> String {
    format!("{} clicks\n", clicks.0.load(Relaxed))
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("clicks", 8, (0..1_000).map(|number| format!("click {number}")))?;
    let (client, clicks) = (cluster.client()?, Clicks::default());
    // a topic in which something happens
    thread::spawn(move || {
        while client.produce("clicks", (0..100).map(|number| format!("click {number}").into())).is_ok() {
            thread::sleep(Duration::from_secs(1));
        }
    });
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id("web")
        .property("auto.offset.reset", "smallest")
        .build()?;
    let make = clicks.clone();
    let consumer = ConsumerSystem::builder(config).handle("clicks", 2, move || make.clone()).start().await?;

    let dashboard = Dashboard::new([consumer.clone()]);
    let app = move || {
        let scope = kafka_troupe::web::scope("/troupe", &dashboard);
        App::new().app_data(web::Data::new(clicks.clone())).route("/", web::get().to(count)).service(scope)
    };
    let port = troupe_cluster::argument("--port").map_or(Ok(8080), |port| port.parse())?;
    let server = HttpServer::new(app).workers(1).bind(("127.0.0.1", port))?;
    println!("http://{}/troupe/", server.addrs()[0]);
    // until Ctrl-C or SIGTERM; the consumer then leaves its group
    server.run().await?;
    consumer.shutdown().await;
    Ok(())
}
