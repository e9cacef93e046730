//! What goes wrong, one thing at a time, some of it at the same time.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::chance::Chance;
use crate::handling;
use crate::letters;
use crate::offsets_faults;
use crate::plan::Plan;
use crate::world::{State, World};

/// The actors of a member that can be made to panic.
const CHILDREN: [&str; 7] = [
    "zk-session",
    "rebalance-coordinator",
    "fetcher-manager",
    "offset-committer",
    "broker-fetchers",
    "stream-queue/orders-0",
    "stream-queue/payments-0",
];

/// Something that may happen.
pub type Fault = fn(&Rc<World>);

/// What may happen in a calm run.
const CALM: [Fault; 6] = [join, leave, move_leader, add_partitions, create_topic, commit];

/// What may happen else.
const TROUBLE: [Fault; 20] = [
    join,
    leave,
    kill,
    suspend,
    suspend_all,
    cut_off,
    lag,
    lose_reply,
    slow_network,
    stop_broker,
    move_leader,
    no_leader,
    cut_connections,
    add_partitions,
    create_topic,
    delete_records,
    rob,
    crash,
    crash_two,
    commit,
];

/// What happens in one run: all of it, or only some, which then meets more often.
pub fn draw(chance: &Chance, plan: &Plan) -> Vec<Fault> {
    let mut others = offsets_faults::draw(chance, plan);
    others.extend(letters::faults(plan));
    if plan.pauses {
        others.push(handling::pause);
    }
    if plan.calm {
        return [&CALM[..], &others].concat();
    }
    let mut faults = TROUBLE.to_vec();
    if chance.once_in(4) {
        faults.extend(others);
        return faults;
    }
    chance.draw(|rng| rng.shuffle(&mut faults));
    faults.truncate(chance.draw(|rng| rng.usize(2..=8)));
    faults.push(join);
    faults.extend(others);
    faults
}

/// Something happens.
pub fn strike(world: &Rc<World>) {
    if let Some(fault) = world.chance.one_of(&world.faults) {
        fault(world);
    }
}

/// Everything works again.
pub fn heal(world: &Rc<World>) {
    world.tell(format_args!("everything works again"));
    world.steady.store(true, Ordering::SeqCst);
    world.pace.store(world.plan.pace, Ordering::SeqCst);
    for broker in 0..world.plan.brokers {
        world.brokers.start(broker);
    }
    world.brokers.elect();
    world.brokers.heal_offsets();
    letters::heal(&world.brokers);
    for id in 1..=world.zookeeper.sessions().last().copied().unwrap_or_default() {
        world.zookeeper.reconnect(id);
        world.zookeeper.catch_up(id);
    }
}

fn join(world: &Rc<World>) {
    let there = world.members(&[State::Starting, State::Running, State::Leaving]);
    if there.len() < world.plan.most_members {
        world.join(false);
    }
}

fn leave(world: &Rc<World>) {
    if let Some(member) = world.chance.one_of(&world.running()) {
        world.history.count("leaves");
        world.leave(&member);
    }
}

fn kill(world: &Rc<World>) {
    if let Some(member) = world.chance.one_of(&world.running()) {
        world.history.count("kills");
        world.kill(&member);
    }
}

/// A session of a member that is there.
fn a_session(world: &World) -> Option<i64> {
    let member = world.chance.one_of(&world.running())?;
    world.chance.one_of(&world.zookeeper.sessions_of(member.process()))
}

/// The connection to ZooKeeper is lost, for less or more than the session timeout.
fn suspend(world: &Rc<World>) {
    let Some(id) = a_session(world) else { return };
    let time = world.chance.millis(10, world.plan.session_timeout * 2);
    world.tell(format_args!("session {id} is disconnected for {time:?}"));
    world.history.count("disconnects");
    world.zookeeper.suspend(id);
    world.after(time, move |world| {
        if !world.zookeeper.sessions().contains(&id) {
            world.history.count("expiries");
        }
        world.tell(format_args!("session {id} is connected again"));
        world.zookeeper.reconnect(id);
    });
}

/// The ensemble is not to be reached.
fn suspend_all(world: &Rc<World>) {
    let time = world.chance.millis(10, world.plan.session_timeout);
    world.tell(format_args!("nobody reaches ZooKeeper for {time:?}"));
    world.history.count("ensemble away");
    for id in world.zookeeper.sessions() {
        world.zookeeper.suspend(id);
        let more = world.chance.millis(0, 500);
        world.after(time + more, move |world| world.zookeeper.reconnect(id));
    }
}

/// An old consumer deletes an owner node without looking whose it is.
fn rob(world: &Rc<World>) {
    let Some(partition) = world.chance.one_of(&world.partitions()) else { return };
    world.tell(format_args!("somebody deletes the owner node of {partition}"));
    world.history.count("foreign deletions");
    // its owner hears of it at the latest when its session has ended
    let notice = Duration::from_millis(world.plan.session_timeout * 2) + Duration::from_secs(10);
    world.history.rob(&partition, notice);
}

/// Its server is apart from the leader; then it drops its clients, or finds the leader again.
fn cut_off(world: &Rc<World>) {
    let Some(id) = a_session(world) else { return };
    let time = world.chance.millis(100, world.plan.session_timeout * 3 / 2);
    world.tell(format_args!("session {id} is cut off from the leader for {time:?}"));
    world.history.count("cut off");
    world.zookeeper.cut_off(id);
    let drops = world.chance.once_in(2);
    world.after(time, move |world| {
        if !world.zookeeper.sessions().contains(&id) {
            world.history.count("expiries");
        }
        world.tell(format_args!("session {id} is no longer cut off (dropped: {drops})"));
        if drops {
            world.zookeeper.suspend(id);
            world.zookeeper.reconnect(id);
        } else {
            world.zookeeper.catch_up(id);
        }
    });
}

fn lag(world: &Rc<World>) {
    let Some(id) = a_session(world) else { return };
    let time = world.chance.millis(10, 3_000);
    world.tell(format_args!("the server of session {id} lags for {time:?}"));
    world.history.count("lags");
    world.zookeeper.lag(id);
    world.after(time, move |world| world.zookeeper.catch_up(id));
}

fn lose_reply(world: &Rc<World>) {
    let Some(id) = a_session(world) else { return };
    world.tell(format_args!("session {id} loses a reply"));
    world.history.count("lost replies");
    world.zookeeper.lose_reply(id);
}

fn slow_network(world: &Rc<World>) {
    let longest = world.chance.draw(|rng| rng.u64(50..=1_500));
    let time = world.chance.millis(1_000, 8_000);
    world.tell(format_args!("messages take up to {longest} ms for {time:?}"));
    world.history.count("slow networks");
    world.pace.store(longest, Ordering::SeqCst);
    world.after(time, |world| world.pace.store(world.plan.pace, Ordering::SeqCst));
}

fn stop_broker(world: &Rc<World>) {
    let Some(broker) = world.chance.one_of(&world.brokers.up()) else { return };
    let (elected, back) = (world.chance.millis(10, 3_000), world.chance.millis(500, 10_000));
    world.tell(format_args!("broker {broker} is down for {back:?}"));
    world.history.count("brokers down");
    world.brokers.stop(broker);
    world.after(elected, |world| world.brokers.elect());
    world.after(back, move |world| {
        world.brokers.start(broker);
        world.brokers.elect();
    });
}

fn move_leader(world: &Rc<World>) {
    let partition = world.chance.one_of(&world.partitions());
    let (Some(partition), Some(broker)) = (partition, world.chance.one_of(&world.brokers.up())) else {
        return;
    };
    world.tell(format_args!("broker {broker} leads {partition}"));
    world.history.count("leader moves");
    world.brokers.set_leader(&partition, Some(broker));
}

fn no_leader(world: &Rc<World>) {
    let Some(partition) = world.chance.one_of(&world.partitions()) else { return };
    let time = world.chance.millis(10, 5_000);
    world.tell(format_args!("nobody leads {partition} for {time:?}"));
    world.history.count("leaderless");
    world.brokers.set_leader(&partition, None);
    world.after(time, |world| world.brokers.elect());
}

fn cut_connections(world: &Rc<World>) {
    if let Some(member) = world.chance.one_of(&world.running()) {
        world.tell(format_args!("{} loses its brokers' connections", member.name));
        world.history.count("cut connections");
        world.brokers.cut(&member.name);
    }
}

fn add_partitions(world: &Rc<World>) {
    let topics: Vec<_> = world.topics().into_iter().collect();
    if let Some((topic, partitions)) = world.chance.one_of(&topics).filter(|(_, count)| *count < 10) {
        let more = world.chance.draw(|rng| rng.usize(1..=2));
        world.tell(format_args!("{topic} gets {more} partitions"));
        world.history.count("partitions added");
        world.brokers.create_topic(&topic, partitions + more);
    }
}

fn create_topic(world: &Rc<World>) {
    if world.topics().len() < 4 {
        let topic = format!("topic-{}", world.topics().len());
        world.tell(format_args!("{topic} is created"));
        world.history.count("topics created");
        world.brokers.create_topic(&topic, 2);
    }
}

/// Retention: what is old goes, handled or not.
fn delete_records(world: &Rc<World>) {
    // a position in the place of one that is gone would be the end of the log: what is between is lost, as it should
    if world.plan.largest {
        return;
    }
    let Some(partition) = world.chance.one_of(&world.partitions()) else { return };
    let Some((start, end)) = world.brokers.range(&partition) else { return };
    let offset = world.chance.draw(|rng| rng.i64(start..=end));
    world.tell(format_args!("{partition} has nothing before {offset} any more"));
    world.history.count("deleted records");
    world.brokers.delete_before(&partition, offset);
}

fn crash(world: &Rc<World>) {
    let member = world.chance.one_of(&world.running());
    if let (Some(member), Some(child)) = (member, world.chance.one_of(&CHILDREN)) {
        world.history.count("panics of actors");
        world.crash(&member, child);
    }
}

/// Two actors of one member panic at once.
fn crash_two(world: &Rc<World>) {
    let Some(member) = world.chance.one_of(&world.running()) else { return };
    for _ in 0..2 {
        if let Some(child) = world.chance.one_of(&CHILDREN) {
            world.history.count("panics of actors");
            world.crash(&member, child);
        }
    }
}

/// The application commits by itself.
fn commit(world: &Rc<World>) {
    let Some(member) = world.chance.one_of(&world.running()) else { return };
    let Some(handle) = world.handle(&member) else { return };
    let world = Rc::clone(world);
    actix::spawn(async move {
        let outcome = handle.commit().await.and_then(|outcome| outcome.all());
        world.history.count(if outcome.is_ok() { "own commits" } else { "failed own commits" });
    });
}
