//! Under prefixes and behind proxies, and when what is behind the page goes away.

use crate::browser::Browser;
use crate::fixture::Fixture;
use crate::server::{Running, STRIPPED, Server, serve};
use kafka_troupe::web::Dashboard;

const MEMBERS: [&str; 2] = ["billing_a", "billing_b"];

fn fixture() -> Fixture {
    Fixture::new("billing", &[("orders", 8)], &MEMBERS).rebalanced(60, &["started"])
}

#[actix::test]
async fn it_works_under_a_prefix_and_behind_a_proxy_that_strips_one() {
    let running = Running::new();
    let server = serve([fixture().source(&running.0)]);
    let browser = Browser::start().await;
    for path in [
        "/ops/troupe/",
        "/ops/troupe",
        &format!("{STRIPPED}/ops/troupe"),
        &format!("{STRIPPED}/ops/troupe/#partition=orders%2F7"),
    ] {
        browser.open(&server.url(path)).await;
        browser.until_text("#link", &["live"]).await;
        browser.until_text("#map", &["orders"]).await;
        let at = browser.client.current_url().await.unwrap();
        let page = path.split('#').next().unwrap().trim_end_matches('/');
        assert_eq!(at.path(), format!("{page}/"));
        for link in ["status", "group", "metrics", "healthz", "history"] {
            let status = browser.eval(&format!("return fetch('{link}').then(answer => answer.status)")).await;
            assert_eq!(status, 200, "{link} from {path}");
        }
        if path.contains('#') {
            browser.until_text("#detail", &["orders 7", "billing_b"]).await;
        }
    }
    browser.shoot("behind-a-proxy").await;
    browser.check_requests().await;
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn a_page_says_when_its_server_is_away_and_goes_on_when_it_is_back() {
    let running = Running::new();
    let server = serve([fixture().source(&running.0)]);
    let port = server.port;
    let browser = Browser::start().await;
    browser.open(&server.page()).await;
    browser.until_text("#tiles", &["8 of 8"]).await;
    // open pages do not hold it up
    let begun = std::time::Instant::now();
    server.stop().await;
    assert!(begun.elapsed().as_secs() < 10, "a graceful stop took {:?}", begun.elapsed());
    browser.until_text("#link", &["reconnecting"]).await;
    browser.until_text("#banner", &["connection to the server is lost", "trying again"]).await;
    browser.until_text("#map", &["orders"]).await;
    browser.shoot("disconnected").await;
    let server = Server::start(Dashboard::new([fixture().source(&running.0)]), Some(port));
    browser.until_text("#link", &["live"]).await;
    assert_eq!(browser.eval("return document.querySelector('#banner').hidden").await, true);
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn when_the_systems_have_shut_down_the_page_says_so_and_shows_how_they_stood() {
    let running = Running::new();
    let server = serve([fixture().source(&running.0)]);
    let browser = Browser::start().await;
    browser.open(&server.page()).await;
    browser.until_text("#tiles", &["8 of 8"]).await;
    running.end();
    browser.until_text("#link", &["ended"]).await;
    browser.until_text("#banner", &["have shut down at"]).await;
    browser.until_text("#map", &["orders"]).await;
    browser.shoot("ended").await;
    // one that comes later is told the same
    browser.client.refresh().await.unwrap();
    browser.until_text("#banner", &["have shut down at"]).await;
    browser.until_text("#map", &["orders"]).await;
    let status = browser.eval("return fetch('readyz').then(answer => answer.status)").await;
    assert_eq!(status, 503);
    // the next process, in its place
    let port = server.port;
    server.stop().await;
    let running = Running::new();
    let server = Server::start(Dashboard::new([fixture().source(&running.0)]), Some(port));
    browser.until_text("#link", &["live"]).await;
    browser.end().await;
    server.stop().await;
}
