//! What may go wrong: each costs of the budget.

use std::collections::VecDeque;

use super::Group;
use super::state::{Note, State};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, Input};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process ends; its session lives on until it expires.
    Crash(usize),
    /// Paused or cut off for longer than the lease,
    /// after so many of the requests in flight were executed.
    LeaseEnds(usize, usize),
    /// Within the session after all: connected again.
    Return(usize),
    /// The server ends the session.
    Expire(usize),
    /// The client learns it, and has a new session. A create of the old one may still be executed in it
    /// (what the client has queued survives the reconnect); the driver sees whose node it is, and deletes it.
    NewSession(usize, bool),
    /// The connection breaks after so many of the requests in flight were executed; all answers are lost.
    Cut(usize, usize),
    /// Somebody else (a Scala member, a tool) deletes an owner node.
    Theft(TopicPartition),
    Leave(usize),
}

impl State {
    pub fn strike(&mut self, group: &Group, fault: Fault) {
        match fault {
            Fault::Crash(name) => {
                self.budget.crashes -= 1;
                self.processes[name].alive = false;
                self.lose_watches(name);
                self.rest(name);
            }
            Fault::LeaseEnds(name, executed) => {
                self.budget.pauses -= 1;
                for call in self.processes[name].calls.drain(..executed).collect::<Vec<_>>() {
                    let answer = self.execute(group, name, call);
                    self.processes[name].inbox.extend(answer);
                }
                self.processes[name].lease = false;
            }
            Fault::Return(name) => {
                self.processes[name].lease = true;
                self.reconnect(group, name, 0);
            }
            Fault::Expire(name) => {
                let session = self.processes[name].session;
                self.lose_watches(name);
                self.end_session(session);
            }
            Fault::NewSession(name, late) => self.replace_session(name, late),
            Fault::Cut(name, executed) => {
                self.budget.cuts -= 1;
                self.reconnect(group, name, executed);
            }
            Fault::Theft(tp) => {
                self.budget.thefts -= 1;
                let session = self.server.owners[&tp].session;
                self.stolen.insert((session, tp.clone()));
                self.delete(&tp);
            }
            Fault::Leave(name) => {
                self.budget.leaves -= 1;
                return self.input(group, name, Input::Shutdown);
            }
        }
        self.faulty = true;
    }

    /// Some requests were executed, none is answered; watches are gone; then the same session goes on. Owner
    /// nodes are read again and the machine is told to read the group again.
    fn reconnect(&mut self, group: &Group, name: usize, executed: usize) {
        let calls = std::mem::take(&mut self.processes[name].calls);
        for call in calls.iter().take(executed) {
            let _ = self.execute(group, name, call.clone());
        }
        self.lose_watches(name);
        let process = &mut self.processes[name];
        process.inbox.extend(calls.into_iter().filter_map(lost).map(Note::Input));
        process.inbox.push_back(Note::Input(Input::Reconnected));
        let session = process.session;
        let reads = process.watched.iter().map(|tp| Effect::ReadOwner { session, partition: tp.clone() });
        process.calls = reads.collect();
    }

    /// Answers of the old session may reach the machine at any later time.
    fn replace_session(&mut self, name: usize, late: bool) {
        let session = self.new_session();
        let create = self.processes[name].calls.iter().find_map(|call| match call {
            Effect::Claim { partition, thread, .. } if late => Some((partition.clone(), thread.clone())),
            _ => None,
        });
        let made = create.filter(|(tp, thread)| self.create(session, tp, thread) == ClaimAnswer::Created);
        let process = &mut self.processes[name];
        process.session = session;
        process.lease = true;
        process.watched.clear();
        let told = process.inbox.drain(..).filter_map(|note| match note {
            Note::Input(input) => Some(input),
            Note::OwnerChanged(_) | Note::Position { .. } => None,
        });
        let unanswered = std::mem::take(&mut process.calls).into_iter().filter_map(lost);
        process.late = told.chain(unanswered).filter(is_answer).collect();
        let news = [Input::SessionExpired, Input::SessionStarted];
        process.inbox = VecDeque::from(news.map(Note::Input));
        if let Some((partition, _)) = made {
            process.calls.push_back(Effect::Release { session, partition });
        }
    }
}

fn is_answer(input: &Input) -> bool {
    !matches!(input, Input::Trigger(_) | Input::SessionStarted | Input::SessionExpired | Input::Reconnected)
}

/// What the driver answers when it gets no answer.
fn lost(call: Effect) -> Option<Input> {
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
