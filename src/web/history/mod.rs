//! # History: the last half hour of the systems, and what pages are told of it
//!
//! - *Mailbox*: requests `Observe`, `Follow`, `Samples`, `Close`; internal `Sampled`.
//! - *State*: the last that each system told, a bounded memory of each group, and the picture that pages have.
//! - *Supervision*: none; it has no state that matters to consuming.
//! - *Talks to*: the systems by their handles, every 2 s until they have shut down; pages by a broadcast, which a slow
//!   page may fall behind of, and is then told all anew.

mod memory;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix::prelude::*;
use actix_web::web::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::patch::diff;
use super::picture::{Keys, Observed, Picture, picture, problems};
use super::source::{Observation, Source};
use memory::Memory;

/// How often the systems are asked.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// How long an answer may take: for a sample, twice what a system waits for one of its actors, and when somebody waits
/// for it, such as a liveness probe, for which one that does not answer has ended.
const PATIENCE: Duration = Duration::from_millis(2500);
const MORE_PATIENCE: Duration = Duration::from_secs(5);
/// While nobody looks and nothing rebalances, the group is read at every so manieth sample.
const UNSEEN: u64 = 15;
/// Events that a page may be behind.
const BEHIND: usize = 8;

/// How the systems stand now, in the order given: none for one that has shut down.
#[derive(Message)]
#[rtype(result = "Vec<Option<Observation>>")]
pub(super) struct Observe {
    pub(super) group: bool,
}

/// All that a page shows, and what will change of it.
#[derive(Message)]
#[rtype(result = "Following")]
pub(super) struct Follow;

/// The answer to [`Follow`].
#[derive(MessageResponse)]
pub(super) struct Following {
    pub(super) picture: Bytes,
    /// None when there will be no changes.
    pub(super) changes: Option<broadcast::Receiver<Bytes>>,
}

/// What the plots of a group show, or the lag of one of its partitions.
#[derive(Message)]
#[rtype(result = "Option<Value>")]
pub(super) struct Samples {
    pub(super) key: String,
    pub(super) partition: Option<(String, i32)>,
}

/// Let go of all pages, and stop.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Close;

/// Answers came: none for a system that has shut down, and for one that did not answer in time.
#[derive(Message)]
#[rtype(result = "()")]
struct Sampled(Vec<Answer>);

enum Answer {
    Ended,
    Silent,
    Told(Box<Observation>),
}

/// A system, and the last it told.
struct Watched {
    source: Source,
    last: Option<Observation>,
    ended: Option<i64>,
    silent: bool,
}

/// See the [module's page](self).
pub(super) struct History {
    systems: Vec<Watched>,
    memory: BTreeMap<String, Memory>,
    keys: Keys,
    picture: Picture,
    /// The same as JSON, which pages have; none while nobody looks.
    shown: Option<Value>,
    /// None once nothing changes any more.
    changes: Option<broadcast::Sender<Bytes>>,
    /// Whether answers are waited for.
    asking: bool,
    /// When they came last.
    sampled: Option<Instant>,
    /// Rebalances so far: after one more, the group is read.
    rebalances: u64,
    has_rebalanced: bool,
    turn: u64,
}

impl History {
    pub(super) fn new(sources: Vec<Source>) -> Self {
        let watched = |source| Watched { source, last: None, ended: None, silent: false };
        Self {
            systems: sources.into_iter().map(watched).collect(),
            memory: BTreeMap::new(),
            keys: Keys::new(),
            picture: Picture::new(),
            shown: None,
            changes: Some(broadcast::channel(BEHIND).0),
            asking: false,
            sampled: None,
            rebalances: 0,
            has_rebalanced: false,
            turn: 0,
        }
    }

    /// Asks all that have not shut down.
    fn ask(&self, group: bool, patience: Duration) -> impl Future<Output = Vec<Answer>> + use<> {
        join_all(self.systems.iter().map(|system| {
            let answer = system.ended.is_none().then(|| system.source.observe(group));
            async move {
                let Some(answer) = answer else { return Answer::Ended };
                match actix::clock::timeout(patience, answer).await {
                    Ok(Some(told)) => Answer::Told(Box::new(told)),
                    Ok(None) => Answer::Ended,
                    Err(_) => Answer::Silent,
                }
            }
        }))
    }

    fn sample(&mut self, ctx: &mut Context<Self>) {
        if self.asking || self.changes.is_none() {
            return;
        }
        self.asking = true;
        let group = self.is_seen() || self.has_rebalanced || self.turn.is_multiple_of(UNSEEN);
        let answers = self.ask(group, PATIENCE);
        self.turn += 1;
        answers.into_actor(self).map(|answers, this, ctx| this.handle(Sampled(answers), ctx)).spawn(ctx);
    }

    /// What pages are told, if any is open: the new picture's difference, and the new sample of each group.
    fn tell(&mut self, new: Picture) {
        let before = std::mem::replace(&mut self.picture, new);
        let shown = self.shown.take();
        if !self.is_seen() {
            return;
        }
        let (before, new) = (shown.unwrap_or_else(|| as_json(&before)), as_json(&self.picture));
        let samples: BTreeMap<_, _> =
            self.memory.iter().filter_map(|(key, memory)| Some((key, memory.last()?))).collect();
        let patch = diff(&before, &new).unwrap_or_else(|| json!({}));
        self.send(&event("change", &json!({ "patch": patch, "samples": samples })));
        self.shown = Some(new);
    }

    fn is_seen(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.receiver_count() > 0)
    }

    fn send(&self, event: &Bytes) {
        if let Some(changes) = &self.changes {
            // an error: nobody looks
            let _ = changes.send(event.clone());
        }
    }

    /// Nothing will change any more.
    fn end(&mut self, why: &str) {
        self.send(&event(why, &json!({})));
        self.changes = None;
    }
}

impl Actor for History {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.sample(ctx);
        ctx.run_interval(EVERY, Self::sample);
    }
}

impl Handler<Sampled> for History {
    type Result = ();

    fn handle(&mut self, Sampled(answers): Sampled, _: &mut Self::Context) {
        self.asking = false;
        self.sampled = Some(Instant::now());
        let now = now_ms();
        for (system, answer) in self.systems.iter_mut().zip(answers) {
            system.silent = matches!(answer, Answer::Silent);
            match answer {
                Answer::Told(told) => system.keep(*told),
                Answer::Ended => system.ended = system.ended.or(Some(now)),
                Answer::Silent => {}
            }
        }
        let observed: Vec<_> = self.systems.iter().map(Watched::observed).collect();
        let mut new = picture(now, &observed, &mut self.keys);
        for (key, group) in &mut new {
            let its =
                observed.iter().flatten().filter(|system| system.is_in(group) && system.ended.is_none());
            let problems = its.flat_map(|system| problems(&system.observation.status)).collect();
            self.memory.entry(key.clone()).or_default().note(group, problems);
        }
        let before = std::mem::replace(&mut self.rebalances, count(&observed));
        self.has_rebalanced = self.rebalances != before;
        drop(observed);
        self.tell(new);
        if self.systems.iter().all(|system| system.ended.is_some()) {
            self.end("ended");
        }
    }
}

impl Handler<Observe> for History {
    type Result = ResponseFuture<Vec<Option<Observation>>>;

    fn handle(&mut self, Observe { group }: Observe, _: &mut Self::Context) -> Self::Result {
        let answers = self.ask(group, MORE_PATIENCE);
        let told = |answer| if let Answer::Told(told) = answer { Some(*told) } else { None };
        Box::pin(async move { answers.await.into_iter().map(told).collect() })
    }
}

impl Handler<Follow> for History {
    type Result = Following;

    fn handle(&mut self, _: Follow, ctx: &mut Self::Context) -> Following {
        let picture = event("picture", self.shown.get_or_insert_with(|| as_json(&self.picture)));
        let changes = self.changes.as_ref().map(broadcast::Sender::subscribe);
        // the group may not have been read for a while; samples that are too close would tell no rates
        if self.sampled.is_none_or(|at| at.elapsed() >= EVERY / 2) {
            self.sample(ctx);
        }
        Following { picture, changes }
    }
}

impl Handler<Samples> for History {
    type Result = MessageResult<Samples>;

    fn handle(&mut self, asked: Samples, _: &mut Self::Context) -> Self::Result {
        let memory = self.memory.get(&asked.key);
        MessageResult(memory.map(|memory| match &asked.partition {
            Some(partition) => memory.lag_of(partition),
            None => memory.totals(),
        }))
    }
}

impl Handler<Close> for History {
    type Result = ();

    fn handle(&mut self, _: Close, _: &mut Self::Context) {
        self.end("closing");
    }
}

impl Watched {
    /// A group that was not asked for is as it was.
    fn keep(&mut self, mut told: Observation) {
        let before = self.last.take().and_then(|last| last.group);
        told.group = told.group.or(before);
        self.last = Some(told);
    }

    fn observed(&self) -> Option<Observed<'_>> {
        let (cluster, ended, silent) = (&*self.source.cluster, self.ended, self.silent);
        self.last.as_ref().map(|observation| Observed { cluster, observation, ended, silent })
    }
}

/// Names and numbers: they always can be written.
fn as_json(picture: &Picture) -> Value {
    serde_json::to_value(picture).unwrap_or_default()
}

/// Rebalances of all systems.
fn count(systems: &[Option<Observed<'_>>]) -> u64 {
    let statuses = systems.iter().flatten().map(|system| &system.observation.status);
    statuses.flat_map(|status| &status.rebalances).map(|rebalances| rebalances.count).sum()
}

/// A server-sent event. JSON has no line ends but in strings, where they are escaped.
pub(super) fn event(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
