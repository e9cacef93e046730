//! What people do with the dashboard.

use kafka_troupe::proto::schemas::group::v1::GroupView;
use kafka_troupe::proto::schemas::status::v1::{
    HaltedPartition, SessionState, StatusSnapshot, StuckHandler, WaitingPartition,
};

use crate::browser::Browser;
use crate::fixture::{Fixture, now_ms};
use crate::server::{Running, Server, serve};

const MEMBERS: [&str; 3] = [
    "billing_app1-1700000000000-1a2b3c4d",
    "billing_app2-1700000000123-99aabbcc",
    "billing_scala-1699999999999-deadbeef",
];

fn billing() -> Fixture {
    Fixture::new("billing", &[("orders", 24), ("returns", 8)], &MEMBERS)
        .rebalanced(1500, &["started"])
        .rebalanced(700, &["consumers changed"])
        .rebalanced(90, &["partitions of orders changed"])
}

/// A handler that is stuck, a partition that stands, and a session that is about to end.
fn ill(status: &mut StatusSnapshot, view: &mut GroupView) {
    let now = now_ms();
    status.stuck.push(StuckHandler {
        topic: "orders".into(),
        partition: 5,
        offset: 4711,
        since_ms: now - 95_000,
        thread: String::new(),
    });
    status.halted.push(HaltedPartition {
        topic: "orders".into(),
        partition: 2,
        reason: "failed".into(),
        offset: 815,
        since_ms: now - 300_000,
        why: "the order has no customer".into(),
        attempts: 11,
    });
    status.waiting.push(WaitingPartition {
        topic: "returns".into(),
        partition: 1,
        failed: false,
        why: "no leader".into(),
    });
    if let Some(session) = &mut status.session {
        session.state = SessionState::Suspended.into();
        session.lease_remaining_ms = 2900;
    }
    let unowned = &mut view.partitions[20];
    (unowned.owner_thread, unowned.since_ms) = (None, None);
    unowned.owner_member.clear();
    status.brokers[0].last_error = "kafka1:9092: connection refused".into();
}

async fn open(browser: &Browser, server: &Server) {
    browser.screen(1280, 900, false).await;
    browser.open(&server.page()).await;
    browser.until_text("#link", &["live"]).await;
    browser.until_text("#map", &["orders"]).await;
}

#[actix::test]
async fn the_five_tasks_are_done_by_keys() {
    let (running, fixture) = (Running::new(), billing());
    let rebalanced = fixture.rebalances[1].started_ms;
    let server = serve([fixture.source(&running.0)]);
    let browser = Browser::start().await;
    open(&browser, &server).await;

    // who owns partition 7, and since when?
    let presses = browser.tab_to("#find").await;
    assert!(presses <= 12, "{presses} times Tab to find a partition");
    browser.type_keys("7\u{e007}").await;
    let detail = browser.until_text("#detail", &["orders 7", MEMBERS[0], "for 12 min"]).await;
    assert!(detail.contains("flows") && detail.contains("Lag"), "{detail}");
    assert_eq!(
        browser.eval("return document.activeElement.getAttribute('aria-label')").await,
        format!("orders 7, owned by A {}", MEMBERS[0])
    );
    browser.until_text("#said", &["orders 7: owned by", "since"]).await;
    // by arrows from one to the next, as they lie
    browser.type_keys("\u{e014}").await;
    browser.until_text("#detail", &["orders 8", MEMBERS[1]]).await;
    browser.type_keys("\u{e015}").await;
    let below = browser.text("#detail h3").await;
    assert_ne!(below, "orders 8");
    browser.type_keys("\u{e011}").await;
    browser.until_text("#detail", &["orders 0"]).await;
    browser.shoot("tasks-light").await;

    // which partition lags, and is it growing?
    let first = browser.until_text("#laggards tbody tr", &["growing"]).await;
    assert!(first.starts_with("orders 3"), "{first}");
    browser.tab_to("#laggards a").await;
    browser.type_keys("\u{e007}").await;
    browser.until_text("#detail", &["orders 3", "growing"]).await;

    // why did the group rebalance at that time?
    let at = browser.eval(&format!("return new Intl.DateTimeFormat(undefined, {{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }}).format({rebalanced})")).await;
    browser.tab_to("#when").await;
    browser.type_keys(at.as_str().unwrap()).await;
    let found = browser.until_text("#timeline", &["consumers changed", "kept 4, claimed 4"]).await;
    assert!(!found.contains("started"), "{found}");

    // the plots are read by keys, too
    browser.tab_to("#plot-lag svg").await;
    browser.type_keys("\u{e012}").await;
    browser.until_text("#plot-lag .read", &["lag"]).await;
    browser.check_requests().await;
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn what_is_stuck_halted_unowned_or_about_to_lose_its_session_comes_first() {
    let running = Running::new();
    let server = serve([billing().changed(ill).source(&running.0)]);
    let browser = Browser::start().await;
    open(&browser, &server).await;
    let said = browser
        .until_text(
            "#attention",
            &[
                "The handler of orders 5 is stuck at offset 4711 for 1 min",
                "orders 2 has failed",
                "orders 20",
            ],
        )
        .await;
    assert!(said.contains(&format!("{} is about to lose its session: suspended", MEMBERS[0])), "{said}");
    assert!(said.contains("of its lease left"), "{said}");
    browser.until_text("#members tbody tr", &[MEMBERS[0], "suspended", "lease"]).await;
    // the way from what is wrong to where it is
    browser.tab_to("#attention a[href*=partition]").await;
    browser.type_keys("\u{e007}").await;
    browser.until_text("#detail", &["orders 5", "stuck", "at offset 4711"]).await;
    browser.until_text("#error-list", &["connection refused", "broker 1 (kafka1:9092)", "still so"]).await;
    browser.shoot("attention-light").await;
    browser.prefer(&[("prefers-color-scheme", "dark")]).await;
    browser.shoot("attention-dark").await;
    browser.check_requests().await;
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn it_fits_a_phone_dark_and_light_and_stands_still_when_asked_to() {
    let running = Running::new();
    let large = Fixture::new("fleet", &[("events", 600)], &MEMBERS);
    let server = serve([billing().changed(ill).source(&running.0), large.source(&running.0)]);
    let browser = Browser::start().await;
    open(&browser, &server).await;
    let colour = "return getComputedStyle(document.body).backgroundColor";
    for (scheme, other) in [("dark", "light"), ("light", "dark")] {
        browser.prefer(&[("prefers-color-scheme", scheme)]).await;
        let by_system = browser.eval(colour).await;
        browser.eval(&format!("const theme = document.querySelector('#theme'); for (let n = 0; n < 3 && !theme.textContent.endsWith('{other}'); n++) theme.click()")).await;
        assert_ne!(browser.eval(colour).await, by_system, "the switch wins over {scheme}");
        browser.eval("const theme = document.querySelector('#theme'); while (!theme.textContent.endsWith('auto')) theme.click()").await;
        assert_eq!(browser.eval(colour).await, by_system);
    }
    browser.screen(360, 780, true).await;
    for group in ["0", "1"] {
        browser.eval(&format!("const group = document.querySelector('#group'); group.value = '{group}'; group.dispatchEvent(new Event('change', {{ bubbles: true }}))")).await;
        browser.until_text("#map", &[if group == "0" { "returns" } else { "events" }]).await;
        assert_eq!(browser.eval("return document.documentElement.scrollWidth").await, 360, "group {group}");
        for scheme in ["dark", "light"] {
            browser.prefer(&[("prefers-color-scheme", scheme)]).await;
            browser.shoot(&format!("phone-{group}-{scheme}")).await;
        }
    }
    // cells are large enough for a finger
    let size = browser.eval("const box = document.querySelector('.cell').getBoundingClientRect(); return Math.min(box.width, box.height)").await;
    assert!(size.as_f64().unwrap() >= 24.0, "{size}");
    browser.prefer(&[("prefers-reduced-motion", "reduce")]).await;
    assert_eq!(
        browser.eval("return getComputedStyle(document.querySelector('.dot')).animationName").await,
        "none"
    );
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn names_of_others_are_text_and_links_to_them_lead_there() {
    let odd = ["<img src=x onerror=window.ran=1>", "p_#1", "sp ace", "__proto__", "a/b"];
    let topics: Vec<_> = odd.iter().map(|topic| (*topic, 3)).collect();
    let members = ["<script>window.ran=1</script>", "data/x:y_\"quoted\"", "__proto__"];
    let running = Running::new();
    let fixture = Fixture::new("data/x:y <img src=x onerror=window.ran=1>", &topics, &members)
        .rebalanced(60, &["<b>why</b>"]);
    let server = serve([fixture.source(&running.0)]);
    let browser = Browser::start().await;
    browser.screen(1280, 900, false).await;
    browser.open(&server.page()).await;
    browser.until_text("#map", &odd).await;
    browser.until_text("#timeline", &["<b>why</b>"]).await;
    browser.until_text("#laggards", &["<img src=x onerror=window.ran=1> 1", "__proto__ 1"]).await;
    let source = browser.client.source().await.unwrap();
    assert!(source.contains("&lt;img src=x onerror=window.ran=1&gt;"));
    assert_eq!(browser.eval("return [document.querySelectorAll('img[src=x], b i, main script').length, window.ran ?? 'nothing ran']").await, serde_json::json!([0, "nothing ran"]));
    assert_eq!(browser.client.title().await.unwrap(), "data/x:y <img src=x onerror=window.ran=1> · Troupe");
    for topic in odd {
        let script = format!(
            "const link = [...document.querySelectorAll('#laggards a')].find(link => link.textContent === {}); link.click(); return link.hash",
            serde_json::json!(format!("{topic} 1"))
        );
        let hash = browser.eval(&script).await;
        assert!(!hash.as_str().unwrap().contains(['<', ' ']), "{hash}");
        browser.until_text("#detail", &[&format!("{topic} 1"), "Committed"]).await;
        // and to come by the link
        let url = browser.client.current_url().await.unwrap();
        assert!(url.as_str().contains("partition="), "{url}");
    }
    browser.shoot("foreign-names").await;
    browser.check_requests().await;
    browser.end().await;
    server.stop().await;
}

#[actix::test]
async fn a_thousand_partitions_and_fifty_members_are_light_and_at_hand() {
    let names: Vec<String> = (0..50).map(|n| format!("fleet_host{n:02}-17000000000{n:02}-{n:08x}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let running = Running::new();
    let server =
        serve([Fixture::new("fleet", &[("events", 600), ("clicks", 400)], &names).source(&running.0)]);
    let browser = Browser::start().await;
    browser.screen(1280, 900, false).await;
    browser.open(&server.page()).await;
    browser.until_text("#tiles", &["1,000 of 1,000", "50"]).await;
    assert_eq!(browser.eval("return document.querySelectorAll('.cell').length").await, 1000);
    // owners are told apart by letter, and neighbours by pattern as well
    assert_eq!(browser.eval("return new Set([...document.querySelectorAll('#legend .chip')].map(chip => chip.textContent)).size").await, 50);
    browser.tab_to("#find").await;
    browser.type_keys("clicks 377\u{e007}").await;
    browser.until_text("#detail", &["clicks 377", "fleet_host47"]).await;
    // one cell of all is reached by Tab
    assert_eq!(browser.eval("return document.querySelectorAll('.cell[tabindex=\"0\"]').length").await, 1);
    // what a change costs: the longest task of some seconds
    browser.eval("window.tasks = []; new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(entry => entry.duration))).observe({ type: 'longtask' })").await;
    let at = browser.eval("return performance.now()").await.as_f64().unwrap();
    crate::browser::until("some samples", || async {
        browser.eval("return performance.now()").await.as_f64().unwrap() > at + 9000.0
    })
    .await;
    let busy = browser.eval("return window.tasks.reduce((sum, task) => sum + task, 0)").await;
    assert!(busy.as_f64().unwrap() < 4500.0, "busy for {busy} of 9000 ms");
    browser.shoot("large-light").await;
    browser.prefer(&[("prefers-color-scheme", "dark")]).await;
    browser.eval("document.querySelector('input[value=lag]').click()").await;
    browser.shoot("large-lag-dark").await;
    browser.end().await;
    server.stop().await;
}
