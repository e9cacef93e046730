//! A scope for actix-web apps: metrics, health, status, and a dashboard of the consumer groups that the app takes part
//! in (feature `web`).
//!
//! ```no_run
//! use actix_web::{App, HttpServer};
//! use kafka_troupe::web::{self, Dashboard};
//!
//! # async fn serve(consumer: kafka_troupe::ConsumerHandle) -> std::io::Result<()> {
//! let dashboard = Dashboard::new([consumer]); // once, whatever number of workers the server has
//! HttpServer::new(move || App::new().service(web::scope("/troupe", &dashboard)))
//!     .bind("127.0.0.1:8080")?
//!     .run()
//!     .await
//! # }
//! ```
//!
//! | route | what |
//! |---|---|
//! | `/` | the dashboard, for people |
//! | `/metrics` | Prometheus text |
//! | `/healthz`, `/readyz` | 200 when every system consumes, 503 with why not |
//! | `/livez` | 200 unless a restart of the process would help |
//! | `/status` | the [`StatusSnapshot`] as JSON; `application/x-protobuf` by `Accept` |
//! | `/group` | the whole group, other members too, likewise: a [`GroupView`](crate::GroupView) |
//! | `/history` | what the dashboard's plots show, as JSON |
//! | `/events` | server-sent events: a whole `picture`, then each `change` |
//!
//! Of several systems, `/status?system=1` and `/group?system=1` pick one, counted from 0 in the order given; the first
//! without it. Health and metrics are of all.
//!
//! All links are relative, so the scope works under any path and behind proxies that strip one. The page loads nothing
//! from elsewhere and its Content-Security-Policy forbids it; names that others chose are only ever text. The scope
//! shows a lot and asks nobody who they are: put it behind what guards your other internal pages.
//!
//! # What it costs
//! Each system is asked every 2 s, and its group is read from ZooKeeper as often while a page is open, else every 30 s
//! and after a rebalance. Kept are, per group, half an hour of totals (900 samples), the lag of at most 2,000 partitions
//! over 10 minutes, 300 rebalances, as many members that came or went, and 200 errors: at most 6 MB. A page is sent what
//! has changed since the last sample, and a whole picture when it falls behind.
//!
//! # At the end
//! When a system has shut down nothing is sampled any more; pages show what was last known and say so, look every 10 s
//! for the next process in its place, and `/status` and the like answer 503. Connections of `/events` end then, when the
//! process is told to end by a signal that it handles (as actix-web's server does), and by [`Dashboard::close`]: call it
//! before you stop a server by hand, whose graceful stop waits for open connections.

mod events;
mod history;
mod patch;
mod picture;
mod routes;
mod source;

use std::fmt;

use actix::prelude::*;
use actix_web::Scope;
#[cfg(doc)]
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;

use history::{Close, History};
pub use source::{Observation, Source};

/// What the scope shows: the systems, and their last half hour. Make it once per process, and clone it.
#[derive(Clone)]
pub struct Dashboard {
    history: Addr<History>,
}

impl Dashboard {
    /// Begins to watch these systems: `ConsumerHandle`s, or other [`Source`]s.
    ///
    /// # Panics
    /// Outside an actix System.
    pub fn new<S: Into<Source>>(systems: impl IntoIterator<Item = S>) -> Self {
        let sources = systems.into_iter().map(Into::into).collect();
        Self { history: History::new(sources).start() }
    }

    /// Ends the connections of open pages, which then say that the server has gone, and watches no more.
    pub fn close(&self) {
        self.history.do_send(Close);
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").finish_non_exhaustive()
    }
}

/// The routes below `path`, such as `/troupe`, or `""` for a server of its own.
pub fn scope(path: &str, dashboard: &Dashboard) -> Scope {
    routes::scope(path, dashboard.history.clone())
}

#[cfg(test)]
mod tests;
