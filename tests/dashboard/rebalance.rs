//! A real cluster: the page while members join and leave.

use actix::prelude::*;
use kafka_troupe::web::Dashboard;
use kafka_troupe::{ConsumerConfig, ConsumerHandle, ConsumerSystem, HandlerResult, Record};
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::browser::Browser;
use crate::server::Server;

struct Reads;

impl Actor for Reads {
    type Context = Context<Self>;
}

impl Handler<Record> for Reads {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Context<Self>) -> HandlerResult {
        Ok(())
    }
}

async fn join(cluster: &Cluster, name: &str) -> ConsumerHandle {
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper_connect().as_str())
        .group_id("billing")
        .property("consumer.id", name)
        .property("auto.offset.reset", "smallest")
        .build()
        .unwrap();
    ConsumerSystem::builder(config).handle("orders", 2, || Reads).start().await.unwrap()
}

#[actix::test]
async fn a_rebalance_is_seen_as_it_happens_with_its_reason_and_its_new_owners() {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1).unwrap();
    cluster.create_topic("orders", 12, 1).unwrap();
    cluster.produce("orders", (0..6000).map(|n| ProduceRecord::value(format!("order {n}")))).unwrap();
    let one = join(&cluster, "one").await;
    let server = Server::start(Dashboard::new([one.clone()]), None);
    let browser = Browser::start().await;
    browser.screen(1280, 900, false).await;
    browser.open(&server.page()).await;
    browser.until_text("#tiles", &["healthy", "12 of 12"]).await;
    browser.until_text("#legend", &["billing_one", "12"]).await;

    // a member of another process, as far as this page can tell
    let two = join(&cluster, "two").await;
    browser.until_text("#timeline", &["consumers changed", "released 6", "billing_two joined"]).await;
    browser.shoot("rebalance").await;
    browser.until_text("#legend", &["billing_one", "billing_two", "6"]).await;
    browser.tab_to("#find").await;
    browser.type_keys("orders 7\u{e007}").await;
    browser.until_text("#detail", &["orders 7", "billing_two", "Since", "Committed"]).await;
    browser.until_text("#member-table", &["billing_two", "in another process", "connected"]).await;
    browser.shoot("rebalanced-light").await;

    two.shutdown().await;
    browser.until_text("#detail", &["orders 7", "billing_one", "flows"]).await;
    browser.until_text("#timeline", &["billing_two left"]).await;
    browser.until_text("#tiles", &["healthy", "12 of 12"]).await;
    browser.prefer(&[("prefers-color-scheme", "dark")]).await;
    browser.shoot("rebalanced-dark").await;
    one.shutdown().await;
    browser.until_text("#banner", &["have shut down at"]).await;
    browser.check_requests().await;
    browser.end().await;
    server.stop().await;
}
