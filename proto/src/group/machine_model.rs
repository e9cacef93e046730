//! The machine in a small world of which every interleaving is checked (stateright).
//!
//! A state is all machines, their drivers' deliveries, the requests and answers in flight, and one abstract
//! ZooKeeper. Time is left out: a timer may ring whenever no request is under way, a handler may take any
//! time, a session expires at any time after its lease. Faults, and timers that end a wait for
//! another's node, are bounded by a budget, so that the space is finite. The seeded world beside it (`machine_tests`) has what
//! is left out here: Scala members, time, followers that lag, panics of the coordinator.

#[path = "machine_model/checking.rs"]
mod checking;
#[path = "machine_model/driver.rs"]
mod driver;
#[path = "machine_model/faults.rs"]
mod faults;
#[path = "machine_model/mutations.rs"]
mod mutations;
#[path = "machine_model/properties.rs"]
mod properties;
#[path = "machine_model/server.rs"]
mod server;
#[path = "machine_model/state.rs"]
mod state;

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

use crate::TopicPartition;
use crate::group::{Effect, Phase};
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
    partitions: i32,
    budget: Budget,
    /// Records of a partition.
    records: u8,
    /// Each record is committed as it is handed over.
    commits_each: bool,
    wanted: &'static [&'static str],
    mutation: Option<Mutation>,
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
            delivered: BTreeMap::new(),
            stolen: BTreeSet::new(),
            broken: BTreeSet::new(),
            faulty: false,
        };
        // their watches date from then; all other rules are broken later
        let mutation = self.mutation.filter(|mutation| *mutation == Mutation::OwnersUnwatched);
        let whole = Self { mutation, records: 0, ..self.clone() };
        for streams in self.settled {
            state.join(*streams);
            whole.run(&mut state);
        }
        for streams in self.joining {
            state.join(*streams);
        }
        state.budget = self.budget;
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
        let busy =
            state.processes.iter().any(|process| !process.calls.is_empty() || !process.inbox.is_empty());
        for (name, process) in state.processes.iter().enumerate().filter(|(_, process)| process.alive) {
            let connected = process.lease && state.server.sessions.contains(&process.session);
            if connected && !process.calls.is_empty() {
                actions.push(Action::Execute(name));
            }
            if !process.inbox.is_empty() {
                actions.push(Action::Take(name));
            }
            actions.extend((0..process.late.len()).map(|index| Action::Late(name, index)));
            let waits = process.machine.phase() == Phase::Claiming;
            let rings = process.machine.phase() == Phase::BackingOff || (waits && state.budget.rings > 0);
            if !busy && process.timer_is_due() && rings {
                actions.push(Action::Ring(name));
            }
            for (tp, delivery) in &process.deliveries {
                match delivery.stage {
                    Stage::Draining(_) => actions.push(Action::Drained(name, tp.clone())),
                    Stage::Delivering if process.serves(delivery) && delivery.next < self.records => {
                        actions.push(Action::Record(name, tp.clone()));
                    }
                    Stage::Delivering | Stage::Positioning => {}
                }
            }
        }
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        let mut push = |possible: bool, fault: Fault| {
            if possible {
                actions.push(Action::Fault(fault));
            }
        };
        let budget = state.budget;
        for (name, process) in state.processes.iter().enumerate() {
            let session = state.server.sessions.contains(&process.session);
            let early = self.breaks(Mutation::ExpiryWithinLease) && budget.pauses > 0;
            let live = process.alive && process.lease && session;
            push(live && budget.crashes > 0, Fault::Crash(name));
            push(process.alive && !process.lease && session, Fault::Return(name));
            push(session && (!process.alive || !process.lease || early), Fault::Expire(name));
            let claims = process.calls.iter().any(|call| matches!(call, Effect::Claim { .. }));
            push(process.alive && !session, Fault::NewSession(name, false));
            push(process.alive && !session && claims, Fault::NewSession(name, true));
            let sent = process.calls.len();
            for executed in BTreeSet::from([0, sent.min(1), sent]) {
                push(live && budget.pauses > 0, Fault::LeaseEnds(name, executed));
                push(live && budget.cuts > 0, Fault::Cut(name, executed));
            }
            let leaving = process.machine.phase() == Phase::Leaving;
            push(live && !leaving && budget.leaves > 0, Fault::Leave(name));
        }
        for tp in state.server.owners.keys() {
            push(budget.thefts > 0, Fault::Theft(tp.clone()));
        }
    }

    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Execute(name) => {
                // nothing that a process does by itself can tell an answer just come from one not yet sent
                let at_once = state.processes[name].inbox.is_empty();
                if let Some(call) = state.processes[name].calls.pop_front()
                    && let Some(note) = state.execute(self, name, call)
                {
                    state.processes[name].inbox.push_back(note);
                }
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
            Action::Fault(fault) => state.strike(self, fault),
        }
    }
}

impl State {
    fn join(&mut self, streams: u32) {
        let session = self.new_session();
        self.processes.push(Process::new(self.processes.len(), streams, session));
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
