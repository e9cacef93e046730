//! The machine, shown by examples and held to its invariants in a world of faults.

#[path = "machine_tests/chance.rs"]
mod chance;
#[path = "machine_tests/checks.rs"]
pub(super) mod checks;
#[path = "machine_tests/connection.rs"]
mod connection;
#[path = "machine_tests/delivery.rs"]
mod delivery;
#[path = "machine_tests/driver.rs"]
mod driver;
#[path = "machine_tests/examples.rs"]
mod examples;
#[path = "machine_tests/faults.rs"]
mod faults;
#[path = "machine_tests/once_broken.rs"]
mod once_broken;
#[path = "machine_tests/peer.rs"]
mod peer;
#[path = "machine_tests/restart.rs"]
mod restart;
#[path = "machine_tests/scala.rs"]
mod scala;
#[path = "machine_tests/server.rs"]
mod server;
#[path = "machine_tests/story.rs"]
mod story;
#[path = "machine_tests/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::ops::Range;

use world::World;

/// So many different things must have been seen in a full run.
const RARE: usize = 14;

/// Which seeds: `TROUPE_SEEDS=FROM..TO`, else the first 2,000. A single seed prints what happens.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TROUPE_SEEDS") else { return 0..2_000 };
    let (from, to) = text.split_once("..").expect("TROUPE_SEEDS=FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn the_invariants_hold_in_a_world_of_faults() {
    let seeds = seeds();
    let trace = seeds.end - seeds.start == 1;
    let many = seeds.end - seeds.start >= 2_000;
    let mut seen = BTreeMap::new();
    let mut steps = 0;
    for seed in seeds {
        let world = World::new(seed, trace).run();
        steps += world.steps;
        for (what, times) in world.seen {
            *seen.entry(what).or_insert(0) += times;
        }
    }
    println!("{steps} events, {seen:#?}");
    assert!(!many || seen.len() == RARE, "not all that is checked happened: {seen:?}");
}
