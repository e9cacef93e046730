//! What is served, and how.

use actix::Addr;
use actix_web::http::header::{self, Accept, Header, Quality};
use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, Data, Query};
use actix_web::{HttpRequest, HttpResponse, Route, Scope, guard};
use kafka_troupe_proto::health::Health;
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::events::events;
use super::history::{History, Observe, Samples};
use super::source::Observation;
use crate::metrics::{CONTENT_TYPE, render};

/// Nothing from elsewhere, nothing inline, and nobody frames or sends it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const PROTOBUF: &str = "application/x-protobuf";

/// The files of the page, by name and type.
pub(super) const FILES: [(&str, &str, &str); 10] = [
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("lists.css", "text/css; charset=utf-8", include_str!("page/lists.css")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("dom.js", "text/javascript; charset=utf-8", include_str!("page/dom.js")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("page/live.js")),
    ("partitions.js", "text/javascript; charset=utf-8", include_str!("page/partitions.js")),
    ("plots.js", "text/javascript; charset=utf-8", include_str!("page/plots.js")),
    ("lists.js", "text/javascript; charset=utf-8", include_str!("page/lists.js")),
];

pub(super) fn scope(path: &str, history: Addr<History>) -> Scope {
    let path = path.trim_end_matches('/');
    // the last segment is all that a browser behind a proxy needs to come back
    let below = format!("{}/", path.rsplit('/').next().unwrap_or_default());
    let mut routes = web::scope("").wrap(headers());
    for (name, kind, text) in FILES {
        let file = move || async move { HttpResponse::Ok().content_type(kind).body(text) };
        routes = routes.route(&format!("/{name}"), get().to(file));
    }
    let routes = routes
        .route("/metrics", get().to(metrics))
        .route("/healthz", get().to(readiness))
        .route("/readyz", get().to(readiness))
        .route("/livez", get().to(liveness))
        .route("/status", get().to(status))
        .route("/group", get().to(group))
        .route("/history", get().to(samples))
        .route("/events", get().to(events));
    let scope = web::scope(path).app_data(Data::new(history));
    if path.is_empty() {
        return scope.service(routes);
    }
    let moved = move || {
        let there = (header::LOCATION, below.clone());
        async move { HttpResponse::TemporaryRedirect().insert_header(there).finish() }
    };
    scope.route("", get().to(moved)).service(routes)
}

/// By GET, or by HEAD, as some probes ask.
fn get() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// What every answer carries.
fn headers() -> DefaultHeaders {
    DefaultHeaders::new()
        .add((header::CONTENT_SECURITY_POLICY, POLICY))
        .add((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .add((header::REFERRER_POLICY, "no-referrer"))
        .add((header::CACHE_CONTROL, "no-store"))
}

async fn readiness(history: Data<Addr<History>>) -> HttpResponse {
    health(&history, Health::is_ready).await
}

async fn liveness(history: Data<Addr<History>>) -> HttpResponse {
    health(&history, Health::is_live).await
}

/// 200 when all systems are `well`.
async fn health(history: &Addr<History>, well: impl Fn(&Health) -> bool) -> HttpResponse {
    let systems = observe(history, false).await;
    let all: Vec<_> = systems
        .iter()
        .map(|system| match system {
            Some(system) => {
                (Health::of(&system.status), system.status.group.as_str(), system.status.consumer_id.as_str())
            }
            None => (Health::Ended, "", ""),
        })
        .collect();
    let is_well = !all.is_empty() && all.iter().all(|(health, ..)| well(health));
    let systems = all.iter().map(|(health, group, consumer_id)| {
        let why = if let Health::Failing { why } = health { why.as_slice() } else { &[] };
        json!({ "group": group, "consumer_id": consumer_id, "health": health.as_str(), "why": why })
    });
    let body = json!({ "well": is_well, "systems": systems.collect::<Vec<_>>() });
    let mut answer = if is_well { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(body)
}

/// Of those that run: a system that has shut down leaves no series.
async fn metrics(history: Data<Addr<History>>) -> HttpResponse {
    let systems = observe(&history, false).await.into_iter().flatten();
    let snapshots: Vec<_> = systems.map(|system| system.status).collect();
    HttpResponse::Ok().content_type(CONTENT_TYPE).body(render(&snapshots))
}

/// Which of several systems is asked for.
#[derive(Deserialize)]
struct Which {
    /// From 0, in the order given to the dashboard.
    #[serde(default)]
    system: usize,
}

/// Whose samples are asked for.
#[derive(Deserialize)]
struct Of {
    /// Of which group: its key in the picture.
    #[serde(default)]
    group: usize,
    topic: Option<String>,
    partition: Option<i32>,
}

async fn observe(history: &Addr<History>, group: bool) -> Vec<Option<Observation>> {
    // an error: its arbiter has ended, and the systems with it
    history.send(Observe { group }).await.unwrap_or_default()
}

async fn status(history: Data<Addr<History>>, which: Query<Which>, request: HttpRequest) -> HttpResponse {
    let mut systems = observe(&history, false).await;
    match systems.get_mut(which.system) {
        None => unknown(&which),
        Some(system) => message(
            &request,
            system.take().map(|system| system.status),
            "the system has shut down, or does not answer",
        ),
    }
}

async fn group(history: Data<Addr<History>>, which: Query<Which>, request: HttpRequest) -> HttpResponse {
    let mut systems = observe(&history, true).await;
    match systems.get_mut(which.system) {
        None => unknown(&which),
        Some(system) => {
            message(&request, system.take().and_then(|system| system.group), "the group cannot be read")
        }
    }
}

/// As Protobuf when that is asked for before JSON.
fn message(request: &HttpRequest, message: Option<impl Message + Serialize>, missing: &str) -> HttpResponse {
    let Some(message) = message else {
        return HttpResponse::ServiceUnavailable().json(json!({ "error": missing }));
    };
    let mut accept = Accept::parse(request).unwrap_or_else(|_| Accept::star());
    accept.0.retain(|range| range.quality > Quality::ZERO);
    let ranked = accept.ranked();
    let wanted = |kind: &str| ranked.iter().position(|range| range.essence_str() == kind);
    match (wanted(PROTOBUF), wanted("application/json")) {
        (Some(protobuf), json) if json.is_none_or(|json| protobuf < json) => {
            HttpResponse::Ok().content_type(PROTOBUF).body(message.encode_to_vec())
        }
        _ => HttpResponse::Ok().json(message),
    }
}

fn unknown(which: &Which) -> HttpResponse {
    HttpResponse::NotFound().json(json!({ "error": format!("there is no system {}", which.system) }))
}

async fn samples(history: Data<Addr<History>>, Query(of): Query<Of>) -> HttpResponse {
    let asked = Samples { key: of.group.to_string(), partition: of.topic.zip(of.partition) };
    match history.send(asked).await {
        Ok(Some(samples)) => HttpResponse::Ok().json(samples),
        Ok(None) => {
            HttpResponse::NotFound().json(json!({ "error": format!("there is no group {}", of.group) }))
        }
        Err(_) => HttpResponse::ServiceUnavailable().json(json!({ "error": "the dashboard has ended" })),
    }
}
