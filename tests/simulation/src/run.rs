//! One run, from its seed to its verdict.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::time::Duration;

use kafka_troupe_actors::testkit::clock::on_paused_clock;
use tokio::time::{Instant, sleep};

use crate::history::Counts;
use crate::storage;
use crate::trace::Trace;
use crate::world::{State, World};
use crate::{faults, handling, verdict, worker};

/// Longest time until the group is well again after the last fault. A crash may take its session timeout, an actor
/// that panics often 5 s, a handler that failed often 10 s, and all of it a few rebalances.
const PATIENCE: Duration = Duration::from_secs(180);
/// Longest time until a group has moved its offsets after that: each member starts four times.
const WALK: Duration = Duration::from_secs(600);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What came of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Nothing, or the first thing that was wrong.
    pub wrong: Option<String>,
    /// How often things happened.
    pub counts: Counts,
    /// How long it was, by its own clock.
    pub lasted: Duration,
    /// The same for two runs that went the same way.
    pub fingerprint: u64,
    /// What happened, of a [`replay`].
    pub trace: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64) -> Report {
    in_a_thread(seed, false)
}

/// Runs a seed, and tells what happened, with the members' own log.
pub fn replay(seed: u64) -> Report {
    in_a_thread(seed, true)
}

/// A run has a thread of its own: nothing of it outlives it.
fn in_a_thread(seed: u64, traced: bool) -> Report {
    let thread = std::thread::Builder::new().name(format!("seed {seed}"));
    let running = thread.spawn(move || from_seed_to_verdict(seed, traced));
    match running.map(std::thread::JoinHandle::join) {
        Ok(Ok(report)) => report,
        _ => Report {
            seed,
            wrong: Some("the simulation itself panicked".to_owned()),
            counts: Counts::new(),
            lasted: Duration::ZERO,
            fingerprint: 0,
            trace: Vec::new(),
        },
    }
}

thread_local! {
    /// Panics of this thread's run, but for those that were meant.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Has the panics of a run noted instead of printed.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let noted = PANICS.with_borrow_mut(|panics| {
                let Some(panics) = panics else { return false };
                let what = panic.to_string();
                if !what.contains("was told to panic") && !what.contains(worker::MEANT) {
                    panics.push(what);
                }
                true
            });
            if !noted {
                usual(panic);
            }
        }));
    });
    PANICS.set(Some(Vec::new()));
}

fn from_seed_to_verdict(seed: u64, traced: bool) -> Report {
    note_panics();
    on_paused_clock(async move {
        let trace = Trace::new(traced);
        let _log = traced.then(|| log_to(trace.clone()));
        let began = Instant::now();
        let world = World::new(seed, trace.clone());
        let wrong = whole_run(&world).await;
        let panics = PANICS.take().unwrap_or_default();
        let panicked = panics.first().map(|what| format!("an actor panicked: {what}"));
        Report {
            seed,
            wrong: world.history.violation().or(panicked).or(wrong),
            counts: world.history.counts(),
            lasted: began.elapsed(),
            fingerprint: trace.fingerprint(),
            trace: trace.lines(),
        }
    })
}

fn log_to(trace: Trace) -> tracing::subscriber::DefaultGuard {
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .with_timer(trace.clone())
        .with_writer(move || trace.clone())
        .finish();
    tracing::subscriber::set_default(subscriber)
}

/// Trouble, then time to recover, then all leave. Says what is wrong.
async fn whole_run(world: &Rc<World>) -> Option<String> {
    for _ in 0..world.plan.members {
        world.join(false);
    }
    actix::spawn(storage::walk(Rc::clone(world)));
    actix::spawn(handling::resume(Rc::clone(world)));
    trouble(world).await;
    faults::heal(world);
    if !someone_takes_all(world) {
        world.join(true);
    }
    if !world.plan.auto_commit {
        commit_by_hand(world);
    }
    if let Some(wrong) = until_empty(world, "offsets are not moved", WALK, not_walked).await {
        return Some(wrong);
    }
    if let Some(wrong) = until_empty(world, "the group is not well", PATIENCE, verdict::missing).await {
        return Some(wrong);
    }
    let again = world.history.counted("again");
    // by key, what waits behind another of its key is given up with the partition, and what was done behind it comes
    // again
    let in_order = !world.plan.in_flight.is_by_key();
    if world.plan.calm && world.plan.auto_commit && in_order && again > 0 {
        return Some(format!("{again} records were handled again although nothing had failed"));
    }
    count_rebalances(world).await;
    for member in world.running() {
        world.leave(&member);
    }
    until_empty(world, "not all is given up", PATIENCE, |world| {
        let there = world.members(&[State::Running, State::Leaving]);
        let mut left = verdict::left_behind(world);
        left.extend(there.iter().map(|member| format!("{} is still there", member.name)));
        left
    })
    .await
}

/// Whether one member is of every topic: of those of the plan, for partitions of all to be owned. Offsets are moved by
/// who owns the partition, so where they move also of topics that were created.
fn someone_takes_all(world: &World) -> bool {
    let all: Vec<_> = match world.plan.storages.len() {
        1 => world.plan.topics.iter().map(|(topic, _)| Arc::from(topic.as_str())).collect(),
        _ => world.topics().into_keys().collect(),
    };
    let there = world.members(&[State::Starting, State::Running]);
    there.iter().any(|member| all.iter().all(|topic| member.takes(topic)))
}

/// Where the walk through the storages is, if it is not over.
fn not_walked(world: &World) -> Vec<String> {
    match world.walked.get() {
        true => Vec::new(),
        false => vec![format!("members start with {:?}", world.storage.get())],
    }
}

/// The application commits, now and then.
fn commit_by_hand(world: &Rc<World>) {
    let world = Rc::clone(world);
    actix::spawn(async move {
        loop {
            for member in world.running() {
                if let Some(handle) = world.handle(&member) {
                    // one that fails is followed by the next
                    let _ = handle.commit().await;
                }
            }
            sleep(LOOK).await;
        }
    });
}

/// What the members say of their rebalances, of those who are there at the end.
async fn count_rebalances(world: &World) {
    for member in world.running() {
        let Some(handle) = world.handle(&member) else { continue };
        let Ok(snapshot) = handle.metrics().await else { continue };
        let Some(rebalances) = snapshot.rebalances else { continue };
        world.history.add("rebalances", rebalances.count);
        for rebalance in rebalances.last {
            world.history.add("kept", rebalance.kept.into());
            world.history.add("moved between threads", rebalance.moved.into());
            world.history.add("waits for another", rebalance.waited_for.len() as u64);
        }
        let restarts = snapshot.actors.iter().map(|actor| actor.restarts).sum();
        world.history.add("restarts", restarts);
        world.history.add("handlers made anew", snapshot.streams.iter().map(|it| it.handler_restarts).sum());
    }
}

/// Things go wrong while records are produced.
async fn trouble(world: &Rc<World>) {
    let end = Instant::now() + world.plan.troubled;
    let producing = Rc::clone(world);
    actix::spawn(async move {
        while Instant::now() < end {
            produce(&producing);
            sleep(producing.chance.millis(10, 400)).await;
        }
    });
    while Instant::now() < end && world.history.violation().is_none() {
        sleep(world.chance.millis(10, world.plan.between_faults)).await;
        faults::strike(world);
    }
}

fn produce(world: &World) {
    if let Some(partition) = world.chance.one_of(&world.partitions()) {
        let values = world.chance.draw(|rng| rng.usize(1..=5));
        let key = |_| world.keys.one_of(&[Some("a"), Some("b"), Some("c"), None]).flatten();
        let records: Vec<_> = (0..values).map(|number| (key(number), "x")).collect();
        let end = world.brokers.append_keyed(&partition, &records);
        world.history.produced(&partition, end, records.iter().map(|(key, _)| *key));
    }
}

/// Waits until nothing is missing; says what is when that takes too long.
async fn until_empty(
    world: &Rc<World>,
    what: &str,
    patience: Duration,
    missing: impl Fn(&World) -> Vec<String>,
) -> Option<String> {
    let end = Instant::now() + patience;
    loop {
        let missing = missing(world);
        if missing.is_empty() || world.history.violation().is_some() {
            return None;
        }
        if Instant::now() >= end {
            return Some(format!("{what} after {patience:?}: {}", missing.join("; ")));
        }
        sleep(LOOK).await;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        write!(f, "seed {}: ", self.seed)?;
        match &self.wrong {
            Some(wrong) => write!(f, "WRONG: {wrong}")?,
            None => write!(f, "well")?,
        }
        write!(f, " ({:.0} s; {})", self.lasted.as_secs_f64(), counts.join(", "))
    }
}
