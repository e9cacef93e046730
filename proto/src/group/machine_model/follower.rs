//! Followers that lag: reads are answered from an older state of the tree than writes meet.
//!
//! A view never goes back, and holds the session's own answered writes: each brings it to that moment. What
//! fires a watch is told when the follower learns of it. One that has lost the leader executes no write, and
//! so no heartbeat, but goes on answering reads, even of a session that the ensemble has ended since.

use std::collections::BTreeSet;

use super::state::{Note, Path, State, Tree};
use crate::group::{Effect, Input, Reason};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    tree: Tree,
    /// What has changed since.
    changed: BTreeSet<Path>,
    /// What fires when the follower learns of that.
    held: Vec<Note>,
}

pub fn is_read(call: &Effect) -> bool {
    matches!(call, Effect::ReadGroup { .. } | Effect::ReadOwner { .. } | Effect::Start { .. })
}

fn note(path: Path) -> Note {
    match path {
        Path::Ids => Note::Input(Input::Trigger(Reason::ConsumersChanged)),
        Path::Topics => Note::Input(Input::Trigger(Reason::PartitionsChanged)),
        Path::Owner(tp) => Note::OwnerChanged(tp),
    }
}

impl State {
    pub fn fall_behind(&mut self, name: usize) {
        let tree = self.server.tree.clone();
        let view = View { tree, changed: BTreeSet::new(), held: Vec::new() };
        self.processes[name].view = Some(Box::new(view));
    }

    /// The follower is where the leader is now, and may fall behind again.
    pub fn see(&mut self, name: usize) {
        let process = &mut self.processes[name];
        if let Some(view) = &mut process.view {
            view.tree.clone_from(&self.server.tree);
            view.changed.clear();
            process.inbox.extend(view.held.drain(..));
        }
    }

    pub fn catch_up(&mut self, name: usize) {
        self.see(name);
        self.processes[name].view = None;
    }

    /// What this process reads.
    pub fn look(&self, name: usize) -> &Tree {
        self.processes[name].view.as_ref().map_or(&self.server.tree, |view| &view.tree)
    }

    pub fn watch(&mut self, name: usize, path: Path) {
        match &mut self.processes[name].view {
            Some(view) if view.changed.contains(&path) => {
                let note = note(path);
                if !view.held.contains(&note) {
                    view.held.push(note);
                }
            }
            _ => {
                self.server.watches.insert((name, path));
            }
        }
    }

    pub fn fire(&mut self, path: &Path) {
        for (name, process) in self.processes.iter_mut().enumerate() {
            if let Some(view) = &mut process.view {
                view.changed.insert(path.clone());
            }
            if let Some(scala) = process.scala.as_mut().filter(|_| process.alive) {
                scala.is_told(path);
            }
            if !self.server.watches.remove(&(name, path.clone())) {
                continue;
            }
            match &mut process.view {
                Some(view) => view.held.push(note(path.clone())),
                None => process.inbox.push_back(note(path.clone())),
            }
        }
    }
}
