//! What goes wrong with offsets stored in Kafka.

use std::rc::Rc;
use std::time::Duration;

use kafka_troupe_actors::testkit::OffsetsFault;
use kafka_troupe_proto::TopicPartition;

use crate::chance::Chance;
use crate::faults::Fault;
use crate::plan::Plan;
use crate::world::World;

/// Nothing of it costs a duplicate.
const CALM: [Fault; 1] = [move_coordinator_at_once];

const TROUBLE: [Fault; 8] = [
    move_coordinator,
    no_coordinator,
    refuse,
    lose_answer,
    leave_unanswered,
    commit_late,
    refuse_commit,
    refuse_fetch,
];

/// A commit is carried out so long after it was sent, at most.
pub const LATEST: Duration = Duration::from_secs(20);

/// Codes that pass: a topic that the coordinator has not heard of, the coordinator's own troubles, a time-out.
const PASSING: [i16; 6] = [-1, 3, 7, 14, 15, 16];
/// An acl is missing.
const FORBIDDEN: [i16; 2] = [29, 30];

/// What happens in one run.
pub fn draw(chance: &Chance, plan: &Plan) -> Vec<Fault> {
    if !plan.storages.iter().any(|storage| storage.in_kafka()) {
        return Vec::new();
    }
    if plan.calm {
        return CALM.to_vec();
    }
    let mut faults = TROUBLE.to_vec();
    chance.draw(|rng| rng.shuffle(&mut faults));
    faults.truncate(chance.draw(|rng| rng.usize(1..=TROUBLE.len())));
    faults
}

fn move_to_one(world: &World, loading: Duration) {
    let Some(broker) = world.chance.one_of(&world.brokers.up()) else { return };
    world.tell(format_args!("broker {broker} coordinates the groups, once it has loaded for {loading:?}"));
    world.history.count("coordinator moves");
    world.brokers.set_coordinator(Some(broker), loading);
}

fn move_coordinator_at_once(world: &Rc<World>) {
    move_to_one(world, Duration::ZERO);
}

fn move_coordinator(world: &Rc<World>) {
    move_to_one(world, world.chance.millis(0, 5_000));
}

fn no_coordinator(world: &Rc<World>) {
    let time = world.chance.millis(10, 8_000);
    world.tell(format_args!("nobody coordinates the groups for {time:?}"));
    world.history.count("without coordinator");
    world.brokers.set_coordinator(None, Duration::ZERO);
    world.after(time, |world| world.brokers.elect());
}

fn refuse(world: &Rc<World>) {
    let (code, time) = (world.chance.one_of(&PASSING).unwrap_or(14), world.chance.millis(10, 6_000));
    world.tell(format_args!("the coordinator answers {code} for {time:?}"));
    world.history.count("coordinator refuses");
    world.brokers.refuse_offsets(code, time);
}

fn lose_answer(world: &Rc<World>) {
    spoil(world, "commits whose answer is lost", OffsetsFault::CommitAnswerLost);
}

fn leave_unanswered(world: &Rc<World>) {
    spoil(world, "unanswered commits", OffsetsFault::CommitUnanswered);
}

fn commit_late(world: &Rc<World>) {
    spoil(
        world,
        "late commits",
        OffsetsFault::CommitLate(world.chance.millis(10, LATEST.as_millis() as u64)),
    );
}

fn refuse_commit(world: &Rc<World>) {
    if let Some((partition, code)) = a_refusal(world) {
        spoil(world, "refused commits", OffsetsFault::CommitRefused(partition, code));
    }
}

/// Several times: an offset that is not there is looked for twice.
fn refuse_fetch(world: &Rc<World>) {
    let Some((partition, code)) = a_refusal(world) else { return };
    for _ in 0..world.chance.draw(|rng| rng.u32(1..=4)) {
        let fault = OffsetsFault::FetchRefused(partition.clone(), code);
        spoil(world, "refused fetches of offsets", fault);
    }
}

fn a_refusal(world: &World) -> Option<(TopicPartition, i16)> {
    let partition = world.chance.one_of(&world.partitions())?;
    Some((partition, world.chance.one_of(&[&PASSING[..], &FORBIDDEN].concat())?))
}

fn spoil(world: &World, what: &'static str, fault: OffsetsFault) {
    world.tell(format_args!("next: {fault:?}"));
    world.history.count(what);
    world.brokers.spoil_offsets(fault);
}
