//! The machine in a small world of which every interleaving is checked (stateright).
//!
//! A state is all machines, their drivers' deliveries, the requests and answers in flight, and one abstract
//! ZooKeeper with its followers. Time is left out: a timer may ring whenever no request is under way, a handler may
//! take any time (beside a Scala member: that of two of its backoffs), a session expires at any time after its lease.
//! Faults, and timers that end a wait for another's node, are bounded by a budget, so that the space is finite. The
//! seeded world beside it (`machine_tests`) has what is left out here: time, larger groups, many faults in one run.
//!
//! What each scenario is about is said in `checking`, what must hold in `properties`, and `mutations` breaks each rule
//! once and says which of them the machine decides and which only the model's driver has.

#[path = "machine_model/checking.rs"]
mod checking;
#[path = "machine_model/driver.rs"]
mod driver;
#[path = "machine_model/faults.rs"]
mod faults;
#[path = "machine_model/follower.rs"]
mod follower;
#[path = "machine_model/legacy.rs"]
mod legacy;
#[path = "machine_model/mutations.rs"]
mod mutations;
#[path = "machine_model/offsets.rs"]
mod offsets;
#[path = "machine_model/properties.rs"]
mod properties;
#[path = "machine_model/restart.rs"]
mod restart;
#[path = "machine_model/server.rs"]
mod server;
#[path = "machine_model/state.rs"]
mod state;

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

use crate::TopicPartition;
use crate::group::Phase;
use faults::Fault;
use mutations::Mutation;
use state::{Budget, Process, Server, Stage, State};

/// One size of the model, and what its scenario is about.
#[derive(Clone, Debug)]
struct Group {
    /// Streams of each member that is stable in the first state.
    settled: &'static [u32],
    /// Streams of each that joins.
    joining: &'static [u32],
    /// What has happened since, in the first state.
    begun: fn() -> Vec<Action>,
    /// Which of all these are Scala members.
    scala: &'static [usize],
    partitions: i32,
    budget: Budget,
    /// Records of a partition.
    records: u8,
    /// Each record is committed as it is handed over.
    commits_each: bool,
    /// What becomes of a position that is not stored, or not in the log; without one it is the log's beginning,
    /// and nothing is stored.
    reset: Option<Reset>,
    /// There is a registration that nobody can read.
    unreadable: bool,
    wanted: &'static [&'static str],
    mutation: Option<Mutation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Smallest,
    Largest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// ZooKeeper executes the process's next request.
    Execute(usize),
    /// The process takes what its client has for it next.
    Take(usize),
    /// An answer of an ended session.
    Late(usize, usize),
    Ring(usize),
    Record(usize, TopicPartition),
    /// The last handler of a stopped partition is done.
    Drained(usize, TopicPartition),
    /// Or it is cut off at the deadline.
    HandlerCut(usize, TopicPartition),
    /// A position that is not stored or not in the log is made.
    Resolve(usize, TopicPartition),
    Store(usize, TopicPartition),
    Append(TopicPartition),
    /// A follower that lags is up to date.
    CatchUp(usize),
    /// A Scala member's next request.
    Scala(usize),
    ScalaRecord(usize, TopicPartition),
    /// A Scala member's backoff has passed.
    Wake(usize),
    Fault(Fault),
}

impl Group {
    fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The settled members join one after the other, undisturbed.
    fn first(&self) -> State {
        let mut state = State {
            processes: Vec::new(),
            server: Server::default(),
            budget: Budget::default(),
            ends: BTreeMap::new(),
            remade: BTreeSet::new(),
            repeated: BTreeSet::new(),
            delivered: BTreeMap::new(),
            stolen: BTreeSet::new(),
            broken: BTreeSet::new(),
            faulty: false,
        };
        // their watches and caches date from then; all other rules are broken later
        let early = [Mutation::OwnersUnwatched, Mutation::CachedByName];
        let mutation = self.mutation.filter(|mutation| early.contains(mutation));
        let whole = Self { mutation, records: 0, ..self.clone() };
        state.server.tree.partitions = self.partitions;
        for streams in self.settled {
            state.join(self, *streams);
            whole.run(&mut state);
        }
        for streams in self.joining {
            state.join(self, *streams);
        }
        state.budget = self.budget;
        for action in (self.begun)() {
            self.act(&mut state, action);
        }
        state
    }

    fn run(&self, state: &mut State) {
        let mut actions = Vec::new();
        loop {
            self.moves(state, &mut actions);
            let Some(action) = actions.drain(..).find(|action| !matches!(action, Action::Ring(_))) else {
                return;
            };
            self.act(state, action);
        }
    }

    fn moves(&self, state: &State, actions: &mut Vec<Action>) {
        let calls = state.processes.iter().any(|it| !it.calls.is_empty() || !it.inbox.is_empty());
        let steps =
            state.processes.iter().any(|it| it.alive && it.scala.as_ref().is_some_and(|it| it.has_step()));
        let busy = calls || steps;
        for (name, process) in state.processes.iter().enumerate().filter(|(_, process)| process.alive) {
            if process.scala.is_some() {
                legacy::actions(self, state, name, busy, actions);
                continue;
            }
            let next = process.calls.front();
            let connected = match process.cut_off {
                true => next.is_some_and(follower::is_read),
                false => process.lease && state.server.sessions.contains(&process.session),
            };
            if connected && next.is_some() {
                actions.push(Action::Execute(name));
            }
            if !process.inbox.is_empty() {
                actions.push(Action::Take(name));
            }
            if process.view.is_some() && !process.cut_off {
                actions.push(Action::CatchUp(name));
            }
            actions.extend((0..process.late.len()).map(|index| Action::Late(name, index)));
            let waits = process.machine.phase() == Phase::Claiming;
            let rings = process.machine.phase() == Phase::BackingOff || (waits && state.budget.rings > 0);
            if !busy && process.timer_is_due() && process.listing.is_none() && rings {
                actions.push(Action::Ring(name));
            }
            self.moves_of_deliveries(state, name, actions);
        }
        if state.budget.appends > 0 {
            let known = |tp: &TopicPartition| !state.remade.contains(tp);
            actions.extend(state.server.tree.partitions().filter(known).map(Action::Append));
        }
    }

    fn moves_of_deliveries(&self, state: &State, name: usize, actions: &mut Vec<Action>) {
        let process = &state.processes[name];
        for (tp, delivery) in &process.deliveries {
            match delivery.stage {
                Stage::Draining(_) => {
                    actions.push(Action::Drained(name, tp.clone()));
                    if delivery.patience == 0 && delivery.handed && !self.commits_each {
                        actions.push(Action::HandlerCut(name, tp.clone()));
                    }
                }
                Stage::Delivering if state.is_out_of_range(self, tp, delivery) => {
                    actions.push(Action::Resolve(name, tp.clone()));
                }
                Stage::Delivering if process.serves(delivery) && delivery.next < state.end(self, tp) => {
                    actions.push(Action::Record(name, tp.clone()));
                }
                Stage::Resolving => actions.push(Action::Resolve(name, tp.clone())),
                Stage::Storing(_) => actions.push(Action::Store(name, tp.clone())),
                Stage::Delivering | Stage::Positioning => {}
            }
        }
    }

    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Execute(name) => {
                // nothing that a process does by itself can tell an answer just come from one not yet sent
                let at_once = state.processes[name].inbox.is_empty();
                state.execute_next(self, name);
                if at_once {
                    state.take(self, name);
                }
            }
            Action::Take(name) => state.take(self, name),
            Action::Late(name, index) => {
                let input = state.processes[name].late.remove(index);
                state.input(self, name, input);
            }
            Action::Ring(name) => {
                let waits = state.processes[name].machine.phase() == Phase::Claiming;
                state.budget.rings -= u8::from(waits);
                if let Some(generation) = state.processes[name].timer.take() {
                    state.input(self, name, crate::group::Input::TimerRang { generation });
                }
            }
            Action::Record(name, tp) => state.record(self, name, &tp),
            Action::Drained(name, tp) => state.drained(self, name, &tp),
            Action::HandlerCut(name, tp) => state.cut_handler(self, name, &tp),
            Action::Resolve(name, tp) => state.resolve(self, name, &tp),
            Action::Store(name, tp) => state.store_reset(self, name, &tp),
            Action::Append(tp) => {
                state.budget.appends -= 1;
                let end = state.end(self, &tp) + 1;
                state.ends.insert(tp, end);
            }
            Action::CatchUp(name) => state.catch_up(name),
            Action::Scala(name) => state.scala_steps(name),
            Action::ScalaRecord(name, tp) => state.scala_record(name, &tp),
            Action::Wake(name) => state.scala_wakes(name),
            Action::Fault(fault) => state.strike(self, fault),
        }
    }
}

impl State {
    fn join(&mut self, group: &Group, streams: u32) {
        let (session, name) = (self.new_session(), self.processes.len());
        self.processes.push(match group.scala.contains(&name) {
            true => Process::scala(name, streams, session),
            false => Process::new(name, streams, session),
        });
    }

    fn execute_next(&mut self, group: &Group, name: usize) {
        let Some(call) = self.processes[name].calls.pop_front() else { return };
        let answer = self.execute(group, name, call);
        let process = &mut self.processes[name];
        if process.orphans > 0 {
            process.orphans -= 1;
        } else {
            process.inbox.extend(answer);
        }
    }
}

impl Model for Group {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.first()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.moves(state, actions);
        self.faults(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.act(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let wanted = self.wanted.iter().map(|what| properties::wanted(what));
        properties::properties().into_iter().chain(wanted).collect()
    }
}
