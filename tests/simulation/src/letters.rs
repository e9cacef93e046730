//! Dead letters: a record that is given up stands in their topic before it is acknowledged.

use std::rc::Rc;

use kafka_troupe_actors::testkit::MemoryBrokers;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use prost::Message as _;

use crate::faults::Fault;
use crate::history::History;
use crate::plan::Plan;
use crate::world::World;

/// Where they stand. No member subscribes to it.
pub const TOPIC: &str = "dead-letters";
const PARTITIONS: i32 = 2;

/// What a broker refuses them with, for a while: nobody leads it here, too few replicas, an acl is missing.
const REFUSALS: [ErrorCode; 4] = [
    ErrorCode::NotLeaderOrFollower,
    ErrorCode::NotEnoughReplicas,
    ErrorCode::RequestTimedOut,
    ErrorCode::TopicAuthorizationFailed,
];

const TROUBLE: [Fault; 3] = [refuse, move_leader, end_writer];

/// What may go wrong with them, where there are any.
pub fn faults(plan: &Plan) -> &'static [Fault] {
    if plan.writes_letters() && !plan.calm { &TROUBLE } else { &[] }
}

/// Creates their topic, and has each that is written noted.
pub fn prepare(brokers: &MemoryBrokers, history: &History) {
    brokers.create_topic(TOPIC, PARTITIONS as usize);
    let (read, history) = (brokers.clone(), history.clone());
    brokers.observe_produced(move |partition, first| {
        let records = read.records(partition).unwrap_or_default();
        for record in records.into_iter().filter(|record| record.offset >= first) {
            match DeadLetter::decode(record.value.unwrap_or_default()) {
                Ok(it) => history.buried(&TopicPartition::new(it.topic, it.partition), it.offset),
                Err(error) => {
                    history.violated(format!("what stands in {partition} is no dead letter: {error}"));
                }
            }
        }
    });
}

/// They can be written again.
pub fn heal(brokers: &MemoryBrokers) {
    brokers.refuse_produce(TOPIC, None);
}

fn refuse(world: &Rc<World>) {
    let Some(error) = world.chance.one_of(&REFUSALS) else { return };
    let time = world.chance.millis(10, 8_000);
    world.tell(format_args!("dead letters are refused with {error:?} for {time:?}"));
    world.history.count("refusals of dead letters");
    world.brokers.refuse_produce(TOPIC, Some(error));
    world.after(time, |world| heal(&world.brokers));
}

fn move_leader(world: &Rc<World>) {
    let partition = TopicPartition::new(TOPIC, world.chance.draw(|rng| rng.i32(..PARTITIONS)));
    let Some(broker) = world.chance.one_of(&world.brokers.up()) else { return };
    world.tell(format_args!("broker {broker} leads {partition}"));
    world.brokers.set_leader(&partition, Some(broker));
}

fn end_writer(world: &Rc<World>) {
    if let Some(member) = world.chance.one_of(&world.running()) {
        world.history.count("panics of actors");
        world.crash(&member, "dead-letter-writer");
    }
}
