//! What may go wrong: each costs of the budget, or follows from what did.

use std::collections::{BTreeSet, VecDeque};

use super::restart::may_panic;
use super::state::{Note, Path, Process, State};
use super::{Action, Group, Mutation};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, Input, Phase, SessionNumber};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process ends; its session lives on until it expires.
    Crash(usize),
    /// Paused or cut off for longer than the lease,
    /// after so many of the requests in flight were executed.
    LeaseEnds(usize, usize),
    /// Its follower has answered no heartbeat for so long, though it answers reads.
    LeaseRunsOut(usize),
    /// Within the session after all: connected again.
    Return(usize),
    /// The server ends the session.
    Expire(usize),
    /// The client learns it, and has a new session. A write of the old one may still be executed in it: of a
    /// create the driver sees whose node it is, and deletes it; a delete or a set meets whatever node is there.
    NewSession(usize, bool),
    /// The connection breaks after so many of the requests in flight were executed; all answers are lost.
    Cut(usize, usize),
    /// Its follower falls behind.
    Lag(usize),
    /// Its follower loses the leader.
    Part(usize),
    /// Its follower finds the leader again, within the session.
    Rejoin(usize),
    /// The coordinator panics and is restarted.
    Panic(usize),
    /// Somebody else (a Scala member, a tool) deletes an owner node.
    Theft(TopicPartition),
    Leave(usize),
    /// It comes back with the same id and one stream more.
    ComeBack(usize),
    Grow,
    /// The topic is deleted and made again.
    Remake(TopicPartition),
    /// A tool sets the committed offset to the end of the log.
    Seek(TopicPartition),
}

impl Group {
    pub fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        for (name, process) in state.processes.iter().enumerate() {
            self.faults_of(state, name, process, actions);
            match process.scala {
                Some(_) => {}
                None => self.faults_of_machine(state, name, process, actions),
            }
        }
        let budget = state.budget;
        let mut push = |possible: bool, fault: Fault| {
            if possible {
                actions.push(Action::Fault(fault));
            }
        };
        for tp in state.server.tree.owners.keys() {
            push(budget.thefts > 0, Fault::Theft(tp.clone()));
            push(budget.remakes > 0, Fault::Remake(tp.clone()));
            push(budget.seeks > 0, Fault::Seek(tp.clone()));
        }
        push(budget.growths > 0, Fault::Grow);
    }

    fn faults_of(&self, state: &State, name: usize, process: &Process, actions: &mut Vec<Action>) {
        let mut push = |possible: bool, fault: Fault| {
            if possible {
                actions.push(Action::Fault(fault));
            }
        };
        let budget = state.budget;
        let session = state.server.sessions.contains(&process.session);
        let early = self.breaks(Mutation::ExpiryWithinLease) || process.scala.is_some();
        let unheard = self.breaks(Mutation::ReadsExtendLease) && process.cut_off;
        let expires = !process.alive || !process.lease || unheard || (early && budget.pauses > 0);
        push(process.alive && process.lease && session && budget.crashes > 0, Fault::Crash(name));
        push(session && expires, Fault::Expire(name));
        push(process.alive && !session, Fault::NewSession(name, false));
        push(!process.alive && !session && budget.returns > 0, Fault::ComeBack(name));
    }

    fn faults_of_machine(&self, state: &State, name: usize, process: &Process, actions: &mut Vec<Action>) {
        let mut push = |possible: bool, fault: Fault| {
            if possible {
                actions.push(Action::Fault(fault));
            }
        };
        let budget = state.budget;
        let session = state.server.sessions.contains(&process.session);
        let live = process.alive && process.lease && session;
        push(process.alive && session && (!process.lease || process.cut_off), Fault::Return(name));
        push(process.alive && session && process.cut_off, Fault::Rejoin(name));
        let reads_count = self.breaks(Mutation::ReadsExtendLease);
        push(process.alive && process.lease && process.cut_off && !reads_count, Fault::LeaseRunsOut(name));
        push(process.alive && !session && late_write(process).is_some(), Fault::NewSession(name, true));
        let sent = process.calls.len();
        for executed in BTreeSet::from([0, sent.min(1), sent]) {
            push(live && !process.cut_off && budget.pauses > 0, Fault::LeaseEnds(name, executed));
            push(live && !process.cut_off && budget.cuts > 0, Fault::Cut(name, executed));
        }
        push(live && process.view.is_none() && budget.lags > 0, Fault::Lag(name));
        push(live && process.view.is_none() && budget.partings > 0, Fault::Part(name));
        push(live && budget.panics > 0 && may_panic(process), Fault::Panic(name));
        let leaving = process.machine.phase() == Phase::Leaving;
        push(live && !leaving && process.listing.is_none() && budget.leaves > 0, Fault::Leave(name));
    }
}

impl State {
    pub fn strike(&mut self, group: &Group, fault: Fault) {
        match fault {
            Fault::Leave(name) => {
                self.budget.leaves -= 1;
                return self.input(group, name, Input::Shutdown);
            }
            Fault::ComeBack(name) => {
                self.budget.returns -= 1;
                let session = self.new_session();
                self.processes[name] = Process::new(name, self.processes[name].streams + 1, session);
                return;
            }
            Fault::Lag(name) => {
                self.budget.lags -= 1;
                return self.fall_behind(name);
            }
            Fault::Grow => {
                self.budget.growths -= 1;
                self.server.tree.partitions += 1;
                return self.fire(&Path::Topics);
            }
            Fault::Theft(tp) => {
                self.budget.thefts -= 1;
                self.delete_blindly(None, &tp);
            }
            Fault::Remake(tp) => {
                self.budget.remakes -= 1;
                self.ends.insert(tp.clone(), 0);
                self.delivered.remove(&tp);
                self.remade.insert(tp);
            }
            Fault::Seek(tp) => {
                self.budget.seeks -= 1;
                let end = self.end(group, &tp);
                self.server.tree.stored.insert(tp.clone(), end);
                self.delivered.insert(tp, end);
            }
            fault => self.strike_one(group, fault),
        }
        self.faulty = true;
    }

    fn strike_one(&mut self, group: &Group, fault: Fault) {
        match fault {
            Fault::Crash(name) => {
                self.budget.crashes -= 1;
                self.processes[name].alive = false;
                self.lose_watches(name);
                self.rest(name);
            }
            Fault::LeaseEnds(name, executed) => {
                self.budget.pauses -= 1;
                for _ in 0..executed {
                    self.execute_next(group, name);
                }
                self.processes[name].lease = false;
            }
            Fault::LeaseRunsOut(name) => self.processes[name].lease = false,
            Fault::Part(name) => {
                self.budget.partings -= 1;
                self.fall_behind(name);
                self.processes[name].cut_off = true;
            }
            Fault::Rejoin(name) => {
                self.processes[name].lease = true;
                self.processes[name].cut_off = false;
                self.catch_up(name);
            }
            Fault::Return(name) => {
                self.processes[name].lease = true;
                self.reconnect(group, name, 0);
            }
            Fault::Expire(name) => {
                let process = &self.processes[name];
                let session = process.session;
                if process.scala.is_some() && process.alive {
                    self.budget.pauses -= 1;
                }
                self.lose_watches(name);
                self.end_session(session);
            }
            Fault::NewSession(name, _) if self.processes[name].scala.is_some() => {
                self.scala_session_replaced(name);
            }
            Fault::NewSession(name, late) => self.replace_session(group, name, late),
            Fault::Cut(name, executed) => {
                self.budget.cuts -= 1;
                self.reconnect(group, name, executed);
            }
            Fault::Panic(name) => {
                self.budget.panics -= 1;
                self.panic(group, name);
            }
            fault => unreachable!("{fault:?}"),
        }
    }

    /// Some requests were executed, none is answered; watches are gone; then the same session goes on, on a
    /// server that is not behind: the first request there is a heartbeat. Owner nodes are read again and the
    /// machine is told to read the group again.
    fn reconnect(&mut self, group: &Group, name: usize, executed: usize) {
        let calls = std::mem::take(&mut self.processes[name].calls);
        for call in calls.iter().take(executed) {
            let _ = self.execute(group, name, call.clone());
        }
        self.lose_watches(name);
        let process = &mut self.processes[name];
        process.view = None;
        process.cut_off = false;
        let orphans = std::mem::take(&mut process.orphans);
        if process.listing.is_some() {
            process.inbox.clear();
            return self.list(name);
        }
        process.inbox.extend(calls.into_iter().skip(orphans).filter_map(lost).map(Note::Input));
        process.inbox.push_back(Note::Input(Input::Reconnected));
        let session = process.session;
        let reads = process.watched.iter().map(|tp| Effect::ReadOwner { session, partition: tp.clone() });
        if !group.breaks(Mutation::ReconnectUntold) {
            process.calls = reads.collect();
        }
    }

    /// A write of the session before: a delete or a set has read its node and knows only the version, which is that
    /// of any new node. Answers the node that was created.
    fn execute_in(&mut self, session: SessionNumber, write: Effect) -> Option<TopicPartition> {
        match write {
            Effect::Claim { partition, thread, .. } => {
                let made = self.create(session, &partition, &thread) == ClaimAnswer::Created;
                return made.then_some(partition);
            }
            Effect::Release { partition, .. } => self.delete_blindly(Some(session), &partition),
            Effect::Rethread { partition, thread, .. } => self.set_blindly(&partition, &thread),
            _ => {}
        }
        None
    }

    /// Answers of the old session may reach the machine at any later time.
    fn replace_session(&mut self, group: &Group, name: usize, late: bool) {
        self.lose_watches(name);
        let session = self.new_session();
        let orphans = self.processes[name].orphans;
        let write = late_write(&self.processes[name]).filter(|_| late);
        let made = write.and_then(|write| self.execute_in(session, write));
        let process = &mut self.processes[name];
        process.session = session;
        process.lease = true;
        process.view = None;
        process.cut_off = false;
        process.orphans = 0;
        process.watched.clear();
        let told = process.inbox.drain(..).filter_map(|note| match note {
            Note::Input(input) => Some(input),
            Note::OwnerChanged(_) | Note::Position { .. } => None,
        });
        let unanswered = std::mem::take(&mut process.calls).into_iter().skip(orphans).filter_map(lost);
        let answers = told.chain(unanswered).filter(is_answer);
        let answers = answers.collect();
        process.late = if process.listing.is_some() { Vec::new() } else { answers };
        let news = [Input::SessionExpired, Input::SessionStarted];
        process.inbox = VecDeque::from(news.map(Note::Input));
        if let Some(partition) = made
            && !group.breaks(Mutation::NextSessionCreateKept)
        {
            process.calls.push_back(Effect::Release { session, partition });
        }
    }
}

/// What may be executed in the next session.
fn late_write(process: &Process) -> Option<Effect> {
    let mut sent = process.calls.iter().skip(process.orphans);
    let is_write = |call: &&Effect| {
        matches!(call, Effect::Claim { .. } | Effect::Release { .. } | Effect::Rethread { .. })
    };
    sent.find(is_write).cloned()
}

fn is_answer(input: &Input) -> bool {
    !matches!(input, Input::Trigger(_) | Input::SessionStarted | Input::SessionExpired | Input::Reconnected)
}

pub fn session_of(call: &Effect) -> Option<SessionNumber> {
    match call {
        Effect::Release { session, .. }
        | Effect::Claim { session, .. }
        | Effect::Rethread { session, .. }
        | Effect::ReadOwner { session, .. }
        | Effect::Start { session, .. } => Some(*session),
        _ => None,
    }
}

/// What the driver answers when it gets no answer.
pub fn lost(call: Effect) -> Option<Input> {
    let why = || "no answer".to_owned();
    Some(match call {
        Effect::Register { generation } => Input::Registered { generation, outcome: Err(why()) },
        Effect::ReadGroup { generation } => Input::GroupRead { generation, outcome: Err(why()) },
        Effect::Release { session, partition } => Input::Released { session, partition, outcome: Err(why()) },
        Effect::Claim { session, partition, .. } | Effect::Rethread { session, partition, .. } => {
            Input::Claimed { session, partition, answer: ClaimAnswer::Unknown(why()) }
        }
        Effect::ReadOwner { session, partition } => {
            Input::OwnerRead { session, partition, outcome: Err(why()) }
        }
        Effect::Start { generation, partition, .. } => {
            Input::StartFailed { generation, partition, why: why() }
        }
        _ => return None,
    })
}
