use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::{App, dev, test};
use kafka_troupe_proto::schemas::group::v1::{GroupPartition, GroupView};
use kafka_troupe_proto::schemas::status::v1::*;
use prost::Message;
use serde_json::Value;

use super::*;

/// A system that tells this, and how often it was asked.
#[derive(Clone, Default)]
struct System {
    status: StatusSnapshot,
    /// Whether its partitions get on.
    moves: bool,
    ended: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
}

impl System {
    fn new(group: &str, topic: &str) -> Self {
        let session = Session {
            state: SessionState::Connected.into(),
            lease_remaining_ms: 4000,
            negotiated_timeout_ms: 6000,
            ..Session::default()
        };
        let partition =
            OwnedPartition { topic: topic.to_owned(), partition: 7, lag: Some(3), ..Default::default() };
        let actors = ["zk-session", "rebalance-coordinator", "fetcher-manager", "offset-committer"];
        let actor =
            |name: &str| ActorStatus { name: name.to_owned(), answered_in_ms: Some(0), ..Default::default() };
        let status = StatusSnapshot {
            group: group.to_owned(),
            consumer_id: format!("{group}_a"),
            session: Some(session),
            phase: "stable".to_owned(),
            partitions: vec![partition],
            actors: actors.map(actor).to_vec(),
            ..StatusSnapshot::default()
        };
        Self { status, ..Self::default() }
    }

    fn source(&self) -> Source {
        let system = self.clone();
        Source::from_fn("zk:2181", move |group| {
            let count = system.asked.fetch_add(1, Ordering::SeqCst);
            let mut status = system.status.clone();
            status.records = count;
            for partition in status.partitions.iter_mut().filter(|_| system.moves) {
                let at = 1_000_000_000 + count as i64;
                (partition.acked, partition.committed) = (at, Some(at));
                (partition.high_watermark, partition.lag) = (Some(at + 500), Some(500 + count as i64));
            }
            let other =
                GroupPartition { topic: "other".to_owned(), exists: Some(true), ..GroupPartition::default() };
            let view =
                GroupView { group: status.group.clone(), partitions: vec![other], ..GroupView::default() };
            let told = Observation::new(status, group.then_some(view));
            let told = (!system.ended.load(Ordering::SeqCst)).then_some(told);
            async move { told }
        })
    }

    fn dashboard(&self) -> Dashboard {
        Dashboard::new([self.source()])
    }
}

/// An app with the scope at a path.
macro_rules! app {
    ($path:expr, $dashboard:expr) => {
        test::init_service(App::new().service(scope($path, &$dashboard))).await
    };
}

/// The answer to a GET.
macro_rules! get {
    ($app:expr, $path:expr) => {
        get!($app, $path, "*/*")
    };
    ($app:expr, $path:expr, $accept:expr) => {
        test::call_service(
            &$app,
            test::TestRequest::get().uri($path).insert_header((ACCEPT, $accept)).to_request(),
        )
        .await
    };
}

mod events;

fn header<B>(response: &dev::ServiceResponse<B>, name: impl actix_web::http::header::AsHeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The next server-sent events, as name and data; none when the connection has ended.
async fn next_events<B: MessageBody>(mut body: Pin<&mut B>) -> Option<Vec<(String, Value)>> {
    let chunk = poll_fn(|cx| body.as_mut().poll_next(cx)).await?.unwrap_or_default();
    let chunk = String::from_utf8(chunk.to_vec()).unwrap();
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let event =
        |event: &str| Some((field(event, "event:")?, serde_json::from_str(&field(event, "data:")?).unwrap()));
    Some(chunk.split("\n\n").filter_map(event).collect())
}

#[actix::test]
async fn the_page_and_its_files_come_with_their_types_and_a_policy_that_keeps_others_out() {
    let dashboard = System::new("g", "t").dashboard();
    let app = app!("/troupe", dashboard);
    for (name, kind, text) in routes::FILES {
        let response = get!(app, &format!("/troupe/{name}"));
        assert_eq!((response.status(), header(&response, CONTENT_TYPE)), (StatusCode::OK, kind), "{name}");
        let policy = header(&response, CONTENT_SECURITY_POLICY);
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("://") && !elsewhere.contains("innerHTML"), "{name}");
        // every link is relative, whatever path the page is under
        assert!(!text.contains("=\"/") && !text.contains("('/") && !text.contains("'/history"), "{name}");
    }
}

#[actix::test]
async fn the_prefix_without_a_slash_leads_to_the_page_by_a_relative_link() {
    let dashboard = System::new("g", "t").dashboard();
    let app = app!("/ops/troupe", dashboard);
    let response = get!(app, "/ops/troupe");
    assert_eq!((response.status(), header(&response, LOCATION)), (StatusCode::TEMPORARY_REDIRECT, "troupe/"));
    assert_eq!(get!(app, "/ops/troupe/").status(), StatusCode::OK);
    assert_eq!(get!(app, "/status").status(), StatusCode::NOT_FOUND);
    let alone = app!("", dashboard);
    assert_eq!(get!(alone, "/").status(), StatusCode::OK);
    assert_eq!(get!(alone, "/healthz").status(), StatusCode::OK);
}

#[actix::test]
async fn status_and_group_are_json_or_protobuf_as_the_client_accepts() {
    let system = System::new("g", "t");
    let app = app!("/troupe", system.dashboard());
    let json = "application/json, application/x-protobuf;q=0.9";
    for accept in ["*/*", "text/html", json, "application/x-protobuf;q=0, */*"] {
        let response = get!(app, "/troupe/status", accept);
        assert_eq!(header(&response, CONTENT_TYPE), "application/json", "{accept}");
        let json: Value = test::read_body_json(response).await;
        assert_eq!((&json["group"], &json["session"]["state"]), (&"g".into(), &"connected".into()));
    }
    for accept in ["application/x-protobuf", "application/json;q=0.5, application/x-protobuf"] {
        let response = get!(app, "/troupe/status", accept);
        assert_eq!(header(&response, CONTENT_TYPE), "application/x-protobuf", "{accept}");
        let status = StatusSnapshot::decode(test::read_body(response).await).unwrap();
        assert_eq!(status.partitions, system.status.partitions);
    }
    let response = get!(app, "/troupe/group", "application/x-protobuf");
    assert_eq!(GroupView::decode(test::read_body(response).await).unwrap().partitions[0].topic, "other");
    assert_eq!(get!(app, "/troupe/status?system=1").status(), StatusCode::NOT_FOUND);
    assert_eq!(get!(app, "/troupe/status?system=x").status(), StatusCode::BAD_REQUEST);
}

#[actix::test]
async fn several_systems_are_picked_by_number_and_all_count_for_health() {
    let (one, mut two) = (System::new("one", "t"), System::new("two", "t"));
    two.status.failing = "t 7 is held by ghost-0".to_owned();
    let app = app!("", Dashboard::new([one.source(), two.source()]));
    let json: Value = test::read_body_json(get!(app, "/status?system=1")).await;
    assert_eq!(json["group"], "two");
    let response = get!(app, "/readyz");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let json: Value = test::read_body_json(response).await;
    assert_eq!(json["systems"][0]["health"], "healthy");
    assert_eq!(
        (&json["systems"][1]["health"], &json["systems"][1]["why"][0]),
        (&"failing".into(), &"t 7 is held by ghost-0".into())
    );
    // a restart would not help
    assert_eq!(get!(app, "/livez").status(), StatusCode::OK);
    let metrics = get!(app, "/metrics");
    assert!(header(&metrics, CONTENT_TYPE).starts_with("text/plain; version=0.0.4"));
    let text = String::from_utf8(test::read_body(metrics).await.to_vec()).unwrap();
    assert!(text.contains("group=\"one\"") && text.contains("group=\"two\""), "{text}");
}

#[actix::test]
async fn routes_answer_to_head_as_probes_may_ask() {
    let app = app!("/troupe", System::new("g", "t").dashboard());
    for path in ["/troupe/", "/troupe/healthz", "/troupe/metrics"] {
        let head = test::TestRequest::default().method(Method::HEAD).uri(path).to_request();
        assert_eq!(test::call_service(&app, head).await.status(), StatusCode::OK, "{path}");
    }
}

/// As one does of which an actor hangs, or that has added members of which one does.
#[actix::test]
async fn a_system_that_answers_late_is_neither_silent_nor_ended() {
    tokio::time::pause();
    let told = System::new("g", "t").status;
    let late = Source::from_fn("zk:2181", move |_| {
        let told = Observation::new(told.clone(), None);
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Some(told)
        }
    });
    let app = app!("", Dashboard::new([late]));
    for path in ["/livez", "/readyz", "/status"] {
        assert_eq!(get!(app, path).status(), StatusCode::OK, "{path}");
    }
    let mut body = Box::pin(get!(app, "/events").into_body());
    loop {
        let (name, data) = next_events(body.as_mut()).await.unwrap().remove(0);
        let group = if name == "picture" { &data["0"] } else { &data["patch"]["0"] };
        if group.is_object() {
            assert_eq!(group["health"], "healthy");
            break;
        }
    }
}

#[actix::test]
async fn a_group_keeps_its_key_when_the_first_of_its_systems_answers_last() {
    tokio::time::pause();
    let (one, two) = (System::new("g", "t"), System::new("g", "u"));
    let (is_first, told) = (AtomicBool::new(true), one.status);
    let late = Source::from_fn("zk:2181", move |_| {
        let hangs = is_first.swap(false, Ordering::SeqCst);
        let told = Observation::new(told.clone(), None);
        async move {
            tokio::time::sleep(if hangs { Duration::from_secs(60) } else { Duration::ZERO }).await;
            Some(told)
        }
    });
    let app = app!("", Dashboard::new([late, two.source()]));
    let mut body = Box::pin(get!(app, "/events").into_body());
    for _ in 0..5 {
        let (_, data) = next_events(body.as_mut()).await.unwrap().remove(0);
        let groups = data.get("patch").unwrap_or(&data).as_object().unwrap().clone();
        assert!(groups.keys().all(|key| key == "1"), "{groups:?}");
    }
}

#[actix::test]
async fn what_two_systems_of_a_group_say_alike_is_told_once() {
    let (mut one, mut two) = (System::new("g", "t"), System::new("g", "u"));
    two.status.consumer_id = "g_b".to_owned();
    for system in [&mut one, &mut two] {
        system.status.failing = "t 7 is held by ghost-0".to_owned();
    }
    let app = app!("", Dashboard::new([one.source(), two.source()]));
    let mut body = Box::pin(get!(app, "/events").into_body());
    loop {
        let (name, data) = next_events(body.as_mut()).await.unwrap().remove(0);
        let group = if name == "picture" { &data["0"] } else { &data["patch"]["0"] };
        if group.is_object() {
            assert_eq!(group["why"], serde_json::json!(["t 7 is held by ghost-0"]));
            break;
        }
    }
}

#[actix::test]
async fn systems_of_one_group_and_cluster_are_one_group_and_others_of_that_name_are_not() {
    let (one, mut two, three) = (System::new("g", "t"), System::new("g", "u"), System::new("g", "t"));
    two.status.consumer_id = "g_b".to_owned();
    let mut elsewhere = three.source();
    elsewhere.cluster = "zk2:2181".into();
    let app = app!("", Dashboard::new([one.source(), two.source(), elsewhere]));
    let mut body = Box::pin(get!(app, "/events").into_body());
    let groups = loop {
        let (_, data) = next_events(body.as_mut()).await.unwrap().remove(0);
        if let Some(groups) =
            data["patch"].as_object().or(data.as_object()).filter(|groups| groups.contains_key("0"))
        {
            break groups.clone();
        }
    };
    assert_eq!(groups.keys().collect::<Vec<_>>(), ["0", "2"]);
    assert_eq!(groups["0"]["members"].as_object().unwrap().keys().collect::<Vec<_>>(), ["g_a", "g_b"]);
    assert!(groups["0"]["topics"]["t"]["7"].is_object() && groups["0"]["topics"]["u"]["7"].is_object());
}

#[actix::test]
async fn what_a_system_had_that_has_shut_down_is_shown_as_others() {
    tokio::time::pause();
    let (one, mut two) = (System::new("g", "t"), System::new("g", "u"));
    two.status.consumer_id = "g_b".to_owned();
    let app = app!("", Dashboard::new([one.source(), two.source()]));
    let mut body = Box::pin(get!(app, "/events").into_body());
    // told of as a member, and then no more
    for turn in 0.. {
        assert!(turn < 20, "g_a is still there");
        let (_, data) = next_events(body.as_mut()).await.unwrap().remove(0);
        let group = data["patch"].get("0").or(data.get("0"));
        let told = group.and_then(|group| group["members"].get("g_a"));
        one.ended.fetch_or(told.is_some_and(Value::is_object), Ordering::SeqCst);
        if told == Some(&Value::Null) {
            break;
        }
    }
    assert_eq!(get!(app, "/readyz").status(), StatusCode::SERVICE_UNAVAILABLE);
    two.ended.store(true, Ordering::SeqCst);
    let mut last = None;
    while let Some(mut events) = next_events(body.as_mut()).await {
        last = events.pop();
    }
    assert_eq!(last.unwrap().0, "ended");
}

#[actix::test]
async fn a_change_of_a_thousand_partitions_is_short() {
    tokio::time::pause();
    let mut system = System::new("g", "t");
    system.status.partitions = (0..1000)
        .map(|partition| OwnedPartition { topic: "t".to_owned(), partition, ..OwnedPartition::default() })
        .collect();
    system.moves = true;
    let app = app!("", system.dashboard());
    let mut body = Box::pin(get!(app, "/events").into_body());
    let mut last = String::new();
    for _ in 0..20 {
        last = next_events(body.as_mut()).await.unwrap().remove(0).1["patch"].to_string();
    }
    assert!(last.contains("\"999\":{") && last.len() < 100_000, "{} bytes: {}", last.len(), &last[..500]);
}
