//! The ensemble, the cluster and the members, and how members come and go.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kafka_troupe_actors::chaos::{CrashChild, Vanish};
use kafka_troupe_actors::consumer_system::Builder;
use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper};
use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem, Subscription};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::zk::topic_filter::{TopicFilter, TopicFilterError};

use crate::chance::Chance;
use crate::faults::{self, Fault};
use crate::history::{GROUP, History};
use crate::letters;
use crate::plan::Plan;
use crate::storage::Storage;
use crate::trace::Trace;
use crate::worker::{Bench, Patient, Quick, pull};

/// Everything that a run is made of.
pub struct World {
    pub plan: Plan,
    pub zookeeper: MemoryZooKeeper,
    pub brokers: MemoryBrokers,
    pub history: History,
    /// What may happen.
    pub faults: Vec<Fault>,
    /// Where members that start store offsets.
    pub storage: Cell<Storage>,
    /// It is the last storage.
    pub walked: Cell<bool>,
    /// What goes wrong and when.
    pub chance: Chance,
    /// What handlers do.
    handling: Chance,
    /// Keys of records.
    pub keys: Chance,
    /// Handlers do as they are told.
    pub steady: Arc<AtomicBool>,
    /// Longest way of a message, in milliseconds.
    pub pace: Arc<AtomicU64>,
    members: RefCell<Vec<Rc<Member>>>,
    started: Cell<usize>,
}

/// Once in so many starts a member that was killed comes back under its name.
const COMES_BACK: u32 = 3;

/// One process of the group.
pub struct Member {
    pub name: String,
    pub state: Cell<State>,
    subscribed: Subscribed,
    handle: RefCell<Option<ConsumerHandle>>,
    bench: Arc<Bench>,
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Starting,
    Running,
    Leaving,
    Gone,
}

/// What a member subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subscribed {
    /// By name, with so many streams each; the last of them is pulled, if so.
    Topics { topics: Vec<(String, u32)>, pulls: bool },
    /// Every topic, with so many streams in all.
    All(u32),
}

impl World {
    /// A cluster with topics, and nobody there yet.
    pub fn new(seed: u64, trace: Trace) -> Rc<Self> {
        let plan = Plan::new(seed);
        trace.tell(format_args!("{plan:?}"));
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(plan.brokers));
        let pace = Arc::new(AtomicU64::new(plan.pace));
        let (under_way, longest) = (Chance::new(seed, 1), Arc::clone(&pace));
        let delay = move || {
            let longest = longest.load(Ordering::SeqCst);
            // most messages are quick
            let most = if under_way.once_in(4) { longest } else { longest / 10 };
            under_way.millis(0, most)
        };
        let delay: kafka_troupe_actors::testkit::Pace = Arc::new(delay);
        zookeeper.set_pace(Arc::clone(&delay));
        brokers.set_pace(delay);
        let history = History::new(trace, &zookeeper, &brokers, plan.largest);
        brokers.register(&zookeeper);
        for (topic, partitions) in &plan.topics {
            brokers.create_topic(topic, *partitions);
        }
        if plan.writes_letters() {
            letters::prepare(&brokers, &history);
        }
        history.count(if plan.calm { "calm runs" } else { "troubled runs" });
        history.count(match plan.in_flight {
            one if one.is_one() => "one in flight",
            by_key if by_key.is_by_key() => "by key",
            _ => "windows",
        });
        let chance = Chance::new(seed, 2);
        Rc::new(Self {
            zookeeper,
            brokers,
            history,
            faults: faults::draw(&chance, &plan),
            storage: Cell::new(plan.storages[0]),
            walked: Cell::new(false),
            chance,
            handling: Chance::new(seed, 3),
            keys: Chance::new(seed, 5),
            steady: Arc::new(AtomicBool::new(plan.calm)),
            pace,
            members: RefCell::default(),
            started: Cell::new(0),
            plan,
        })
    }

    pub fn tell(&self, event: std::fmt::Arguments<'_>) {
        self.history.trace.tell(event);
    }

    /// All topics, but for that of dead letters, and how many partitions each has.
    pub fn topics(&self) -> BTreeMap<Arc<str>, usize> {
        let mut topics = self.brokers.topics();
        topics.remove(letters::TOPIC);
        topics
    }

    /// All their partitions.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        let topics = self.topics().into_iter();
        let partitions = |(topic, count): (Arc<str>, usize)| {
            (0..count as i32).map(move |partition| TopicPartition::new(Arc::clone(&topic), partition))
        };
        topics.flat_map(partitions).collect()
    }

    /// Members in these states.
    pub fn members(&self, states: &[State]) -> Vec<Rc<Member>> {
        let members = self.members.borrow();
        members.iter().filter(|member| states.contains(&member.state.get())).cloned().collect()
    }

    pub fn running(&self) -> Vec<Rc<Member>> {
        self.members(&[State::Running])
    }

    /// A member that subscribes to everything, if `whole`, else to what chance has.
    pub fn join(self: &Rc<Self>, whole: bool) {
        let killed = self.killed();
        let back = killed.filter(|_| self.chance.once_in(COMES_BACK));
        let name = back.unwrap_or_else(|| format!("m{}", self.started.get() + 1));
        self.join_as(name, self.draw_subscription(whole));
    }

    /// One that has left comes back under its name.
    pub fn join_again(self: &Rc<Self>, member: &Member) {
        self.join_as(member.name.clone(), member.subscribed.clone());
    }

    fn join_as(self: &Rc<Self>, name: String, subscribed: Subscribed) {
        let number = self.started.get() + 1;
        self.started.set(number);
        let member = Rc::new(Member {
            state: Cell::new(State::Starting),
            subscribed,
            handle: RefCell::default(),
            bench: Arc::new(Bench {
                member: name.clone(),
                process: format!("{name}#{number}"),
                storage: self.storage.get(),
                alive: AtomicBool::new(true),
                history: self.history.clone(),
                chance: self.handling.clone(),
                steady: Arc::clone(&self.steady),
                slow: self.plan.slow_handlers && !self.plan.calm,
                in_flight: self.plan.in_flight,
                giving_up: self.plan.giving_up,
            }),
            name,
        });
        self.tell(format_args!(
            "{} starts with {:?}, {:?}",
            member.name,
            member.subscribed,
            member.storage()
        ));
        self.members.borrow_mut().push(Rc::clone(&member));
        let world = Rc::clone(self);
        actix::spawn(async move { world.start(&member).await });
    }

    /// The name of one that was killed and is not there again.
    fn killed(&self) -> Option<String> {
        let members = self.members.borrow();
        let is_there = |name: &str| {
            members.iter().any(|member| member.name == name && member.state.get() != State::Gone)
        };
        let killed = members.iter().filter(|member| !member.bench.alive.load(Ordering::SeqCst));
        let mut names: Vec<_> = killed.map(|member| member.name.clone()).collect();
        names.retain(|name| !is_there(name));
        self.chance.one_of(&names)
    }

    async fn start(&self, member: &Member) {
        match self.builder(member).start().await {
            Ok(handle) => {
                self.tell(format_args!("{} runs", member.name));
                self.history.count("starts");
                for (topic, _) in member.pulled() {
                    for stream in handle.streams(topic) {
                        actix::spawn(pull(Arc::clone(&member.bench), stream));
                    }
                }
                member.handle.replace(Some(handle));
                member.state.set(State::Running);
            }
            Err(error) => {
                self.tell(format_args!("{} did not start: {error}", member.name));
                self.history.count("failed starts");
                member.state.set(State::Gone);
            }
        }
    }

    fn draw_subscription(&self, whole: bool) -> Subscribed {
        let chance = &self.chance;
        let streams = || chance.draw(|rng| rng.u32(1..=2));
        if chance.once_in(4) || whole && self.plan.storages.len() > 1 {
            return Subscribed::All(streams());
        }
        let named = self.plan.topics.iter().map(|(topic, _)| (topic.clone(), streams()));
        let mut topics: Vec<_> = named.collect();
        if !whole && chance.once_in(5) {
            topics.pop();
        }
        Subscribed::Topics { topics, pulls: chance.once_in(3) }
    }

    fn builder(&self, member: &Member) -> Builder {
        let builder = ConsumerSystem::builder(self.config(&member.name, member.storage()))
            .connector(Arc::new(self.zookeeper.connector(&member.bench.process)))
            .in_memory(self.brokers.clone());
        let (quick, patient) = (Arc::clone(&member.bench), Arc::clone(&member.bench));
        match &member.subscribed {
            Subscribed::All(streams) => match self.all_topics() {
                Ok(all) => {
                    let subscription = self.as_planned(Subscription::matching(all), *streams);
                    builder.subscription(subscription.handle(move || Patient(Arc::clone(&patient))))
                }
                Err(error) => unreachable!("it is a filter: {error}"),
            },
            Subscribed::Topics { topics, pulls } => {
                let last = topics.len() - 1;
                topics.iter().enumerate().fold(builder, |builder, (index, (topic, streams))| {
                    let (quick, patient) = (Arc::clone(&quick), Arc::clone(&patient));
                    let subscription = self.as_planned(Subscription::topic(topic), *streams);
                    builder.subscription(match index {
                        _ if *pulls && index == last => subscription.pull(),
                        0 => subscription.handle(move || Patient(Arc::clone(&patient))),
                        _ => subscription.handle(move || Quick(Arc::clone(&quick))),
                    })
                })
            }
        }
    }

    fn all_topics(&self) -> Result<TopicFilter, TopicFilterError> {
        match self.plan.writes_letters() {
            true => TopicFilter::black_list(letters::TOPIC),
            false => TopicFilter::white_list(".*"),
        }
    }

    fn as_planned(&self, subscription: Subscription, streams: u32) -> Subscription {
        let Plan { in_flight, giving_up, .. } = self.plan;
        subscription.streams(streams).in_flight(in_flight).on_failure(giving_up.policy())
    }

    fn config(&self, name: &str, storage: Storage) -> ConsumerConfig {
        let plan = &self.plan;
        let properties = format!(
            "zookeeper.connect=memory\ngroup.id={GROUP}\nconsumer.id={name}\nclient.id={name}\n\
             zookeeper.session.timeout.ms={}\nauto.commit.interval.ms={}\nrebalance.backoff.ms={}\n\
             auto.offset.reset={}\nauto.commit.enable={}\npartition.assignment.strategy={}\n\
             fetch.wait.max.ms=500\nnum.consumer.fetchers={}\n{}offsets.channel.backoff.ms={}\noffsets.channel.socket.timeout.ms={}\n",
            plan.session_timeout,
            plan.commit_interval,
            plan.backoff,
            if plan.largest { "largest" } else { "smallest" },
            plan.auto_commit,
            if plan.round_robin { "roundrobin" } else { "range" },
            plan.fetchers,
            storage.properties(),
            plan.channel_backoff,
            plan.channel_timeout
        );
        match ConsumerConfig::from_properties(&properties) {
            Ok(parsed) => parsed.config,
            Err(errors) => unreachable!("the properties are right: {errors:?}"),
        }
    }

    /// Leaves the group properly.
    pub fn leave(self: &Rc<Self>, member: &Rc<Member>) {
        let Some(handle) = member.handle.take() else { return };
        self.tell(format_args!("{} leaves", member.name));
        member.state.set(State::Leaving);
        let (world, member) = (Rc::clone(self), Rc::clone(member));
        actix::spawn(async move {
            handle.shutdown().await;
            world.tell(format_args!("{} has left", member.name));
            member.state.set(State::Gone);
        });
    }

    /// Is killed: nothing of it runs on, nobody is told.
    pub fn kill(&self, member: &Member) {
        let Some(handle) = member.handle.take() else { return };
        self.tell(format_args!("{} is killed", member.name));
        member.bench.alive.store(false, Ordering::SeqCst);
        self.zookeeper.vanish(&member.bench.process);
        self.brokers.cut(&member.name);
        handle.address().do_send(Vanish);
        member.state.set(State::Gone);
    }

    /// One of its actors panics.
    pub fn crash(&self, member: &Member, child: &str) {
        if let Some(handle) = &*member.handle.borrow() {
            self.tell(format_args!("{}: {child} panics", member.name));
            handle.address().do_send(CrashChild(child.to_owned()));
        }
    }

    /// Its handle, while it runs.
    pub fn handle(&self, member: &Member) -> Option<ConsumerHandle> {
        member.handle.borrow().clone()
    }

    /// Runs `later` after a while.
    pub fn after(self: &Rc<Self>, delay: Duration, later: impl FnOnce(&Rc<Self>) + 'static) {
        let world = Rc::clone(self);
        actix::spawn(async move {
            tokio::time::sleep(delay).await;
            later(&world);
        });
    }
}

impl Member {
    /// Its sessions in ZooKeeper are known by this.
    pub fn process(&self) -> &str {
        &self.bench.process
    }

    /// Where it stores offsets.
    pub fn storage(&self) -> Storage {
        self.bench.storage
    }

    /// Topics whose streams it pulls.
    fn pulled(&self) -> &[(String, u32)] {
        match &self.subscribed {
            Subscribed::Topics { topics, pulls: true } => &topics[topics.len() - 1..],
            Subscribed::Topics { .. } | Subscribed::All(_) => &[],
        }
    }

    /// Whether it subscribes to a topic.
    pub fn takes(&self, topic: &str) -> bool {
        match &self.subscribed {
            Subscribed::Topics { topics, .. } => topics.iter().any(|(name, _)| name == topic),
            Subscribed::All(_) => true,
        }
    }
}
