//! Seeds that are always run, and some that nobody has run yet.

use std::time::{Duration, Instant};

use troupe_simulation::{Counts, Report, fresh_seed, replay, run};

/// How long fresh seeds are tried, on a machine that is slow or not.
const FRESH: Duration = Duration::from_secs(10);

/// The run is well, or all of it is told.
fn expect_well(seed: u64) -> Report {
    let report = run(seed);
    if report.wrong.is_some() {
        let replayed = replay(seed);
        let told = replayed.trace.len().saturating_sub(200);
        panic!(
            "{}\n{replayed}\nsee all of it with: cargo sim --seeds 1 --from {seed}",
            replayed.trace[told..].join("\n")
        );
    }
    report
}

fn sum(reports: impl IntoIterator<Item = Report>) -> Counts {
    let mut sum = Counts::new();
    for (what, count) in reports.into_iter().flat_map(|report| report.counts) {
        *sum.entry(what).or_default() += count;
    }
    sum
}

#[test]
fn fixed_seeds_are_well_and_show_what_they_are_to_show() {
    let counts = sum((1..=30).map(expect_well));
    for what in [
        "calm runs",
        "troubled runs",
        "records",
        "again",
        "moved",
        "commits",
        "kept",
        "moved between threads",
        "waits for another",
        "restarts",
        "handlers made anew",
        "starts",
        "kills",
        "leaves",
        "disconnects",
        "expiries",
        "cut off",
        "lags",
        "lost replies",
        "slow networks",
        "brokers down",
        "leader moves",
        "leaderless",
        "cut connections",
        "deleted records",
        "foreign deletions",
        "ensemble away",
        "partitions added",
        "topics created",
        "own commits",
        "panics of actors",
        "one in flight",
        "windows",
        "by key",
        "skipped",
        "dead letters",
        "refusals of dead letters",
        "stopped partitions",
        "pauses",
        "commits in kafka",
        "storages changed",
        "coordinator moves",
        "without coordinator",
        "coordinator refuses",
        "commits whose answer is lost",
        "unanswered commits",
        "late commits",
        "refused commits",
        "refused fetches of offsets",
        "unfenced commits that went back",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count > 0), "no {what} in {counts:?}");
    }
}

/// It panicked while the flush of a partition waited for its turn; the next one read where the partition stopped before
/// that was stored.
#[test]
fn a_restarted_coordinator_waits_for_the_flush_of_the_last() {
    expect_well(3041);
}

#[test]
fn fresh_seeds_are_well() {
    let first = fresh_seed();
    let (began, mut seed) = (Instant::now(), first);
    while began.elapsed() < FRESH {
        expect_well(seed);
        seed += 1;
    }
    println!("{} fresh seeds from {first} are well", seed - first);
}

#[test]
fn the_same_seed_goes_the_same_way() {
    for seed in [3, 55] {
        let (first, second) = (run(seed), replay(seed));
        assert_eq!(first.fingerprint, second.fingerprint, "{first}\n{second}");
        assert!(!second.trace.is_empty());
    }
    assert_ne!(run(3).fingerprint, run(4).fingerprint);
}
