//! Where the group stores its offsets, and how a running group goes from one storage to the next.

use std::rc::Rc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use tokio::time::sleep;

use crate::chance::Chance;
use crate::history::GROUP;
use crate::world::{State, World};

/// How often a walk looks whether it may go on.
const LOOK: Duration = Duration::from_millis(500);

/// `offsets.storage` and `dual.commit.enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    ZooKeeper,
    Both,
    Kafka,
}

impl Storage {
    pub fn properties(self) -> &'static str {
        match self {
            Self::ZooKeeper => "offsets.storage=zookeeper\n",
            Self::Both => "offsets.storage=kafka\ndual.commit.enabled=true\n",
            Self::Kafka => "offsets.storage=kafka\ndual.commit.enabled=false\n",
        }
    }

    pub fn in_zookeeper(self) -> bool {
        self != Self::Kafka
    }

    pub fn in_kafka(self) -> bool {
        self != Self::ZooKeeper
    }
}

/// The storages of a run, one after the other: the same for all of it, or there and back again.
pub fn draw(chance: &Chance) -> Vec<Storage> {
    use Storage::{Both, Kafka, ZooKeeper};
    match chance.draw(|rng| rng.u32(..4)) {
        0 => vec![ZooKeeper],
        1 => vec![Both],
        2 => vec![Kafka],
        _ => vec![ZooKeeper, Both, Kafka, Both, ZooKeeper],
    }
}

/// Goes through the storages. As the documentation says: members are restarted one by one, and the next storage comes
/// when all run with the last one and both stores hold what the larger of them held then.
pub async fn walk(world: Rc<World>) {
    for storage in world.plan.storages.iter().skip(1).copied() {
        sleep(world.chance.millis(1_000, 8_000)).await;
        caught_up(&world).await;
        world.tell(format_args!("from now on members start with {storage:?}"));
        world.storage.set(storage);
        restart_all(&world).await;
        world.history.count("storages changed");
    }
    caught_up(&world).await;
    world.walked.set(true);
}

/// All have the present storage.
async fn restart_all(world: &Rc<World>) {
    let all = [State::Starting, State::Running, State::Leaving];
    loop {
        let there = world.members(&all).into_iter();
        let old: Vec<_> = there.filter(|member| member.storage() != world.storage.get()).collect();
        if old.is_empty() {
            return;
        }
        if let Some(member) = old.iter().find(|member| member.state.get() == State::Running) {
            world.leave(member);
            while member.state.get() != State::Gone {
                sleep(LOOK).await;
            }
            world.join_again(member);
        }
        sleep(LOOK).await;
    }
}

/// Each store in use holds of each partition what the larger of both held at first.
async fn caught_up(world: &World) {
    let aims: Vec<_> = world.partitions().into_iter().map(|it| (held(world, &it), it)).collect();
    let storage = world.storage.get();
    let is_behind = |(aim, partition): &((i64, i64), TopicPartition)| {
        let (aim, (in_zookeeper, in_kafka)) = (aim.0.max(aim.1), held(world, partition));
        storage.in_zookeeper() && in_zookeeper < aim || storage.in_kafka() && in_kafka < aim
    };
    while aims.iter().any(is_behind) {
        sleep(LOOK).await;
    }
}

/// What ZooKeeper and Kafka hold of a partition; -1 is nothing.
fn held(world: &World, partition: &TopicPartition) -> (i64, i64) {
    let in_zookeeper = world.history.in_zookeeper(partition);
    (in_zookeeper.unwrap_or(-1), world.brokers.stored_offset(GROUP, partition).unwrap_or(-1))
}
