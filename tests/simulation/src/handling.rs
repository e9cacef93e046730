//! How handlers are fed, what becomes of what they fail on, and pauses.

use std::rc::Rc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{FailurePolicy, InFlight, Then};
use tokio::time::sleep;

use crate::chance::Chance;
use crate::letters;
use crate::world::World;

/// How often somebody looks after partitions that a policy has stopped.
const LOOK: Duration = Duration::from_secs(2);

/// What becomes of a record that a handler fails on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivingUp {
    /// Nothing: it is tried until it is done.
    Never,
    /// It is skipped at once.
    Skips,
    /// Its partition is stopped at once, until somebody resumes it.
    Stops,
    /// It is written to a dead-letter topic at once.
    Buries,
}

pub fn draw_in_flight(chance: &Chance) -> InFlight {
    let most = chance.draw(|rng| rng.usize(2..=20));
    let one = InFlight::one();
    chance.one_of(&[one, one, InFlight::window(most), InFlight::by_key(most)]).unwrap_or(one)
}

pub fn draw_giving_up(chance: &Chance) -> GivingUp {
    let never = GivingUp::Never;
    chance.one_of(&[never, never, GivingUp::Skips, GivingUp::Stops]).unwrap_or(never)
}

impl GivingUp {
    /// As a subscription says it.
    pub fn policy(self) -> FailurePolicy {
        match self {
            Self::Never => FailurePolicy::default(),
            Self::Skips => FailurePolicy::retry(0).then(Then::Skip),
            Self::Stops => FailurePolicy::retry(0),
            Self::Buries => FailurePolicy::retry(0).then(Then::DeadLetter(letters::TOPIC.into())),
        }
    }
}

/// Who looks after the application has what was stopped tried again.
pub async fn resume(world: Rc<World>) {
    loop {
        sleep(LOOK).await;
        for member in world.running() {
            let Some(handle) = world.handle(&member) else { continue };
            let Ok(status) = handle.metrics().await else { continue };
            let stopped = status.halted.into_iter().filter(|halted| halted.reason == "failed");
            let stopped: Vec<_> = stopped.map(|it| TopicPartition::new(it.topic, it.partition)).collect();
            world.history.add("stopped partitions", stopped.len() as u64);
            // an error: it has moved away meanwhile, and is tried there
            let _ = handle.resume(stopped).await;
        }
    }
}

/// The application pauses a topic for a while.
pub fn pause(world: &Rc<World>) {
    let topics: Vec<_> = world.topics().into_keys().collect();
    let Some(member) = world.chance.one_of(&world.running()) else { return };
    let (Some(topic), Some(handle)) = (world.chance.one_of(&topics), world.handle(&member)) else { return };
    let time = world.chance.millis(1, 4_000);
    world.tell(format_args!("{} pauses {topic} for {time:?}", member.name));
    world.history.count("pauses");
    actix::spawn(async move {
        // errors: the member has gone
        let _ = handle.pause_topic(&*topic).await;
        sleep(time).await;
        let _ = handle.resume_topic(&*topic).await;
    });
}
