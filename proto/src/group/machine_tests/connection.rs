//! Connections: requests arrive, are executed and answered in order; or the connection breaks.

use std::collections::BTreeMap;

use super::peer::{Call, Kind, Link, Tag};
use super::server::{Op, Reply};
use super::world::{Event, SESSION_TIMEOUT, World};
use crate::group::SessionNumber;

impl World {
    pub fn open_link(&mut self) -> Link {
        let lag = if self.chance.percent(30) { self.chance.between(5, 40) } else { 0 };
        Link {
            session: self.server.open(),
            up: true,
            lease_end: u64::MAX,
            disturbed: self.now,
            epoch: 0,
            lag,
            last_arrival: 0,
            last_answer: 0,
            calls: BTreeMap::new(),
        }
    }

    /// Sends a request; with a session that is not the client's any more, or no connection, it is lost.
    pub fn call(&mut self, peer: usize, session: SessionNumber, tag: Tag, op: Op) {
        let link = &self.peers[peer].link;
        if !link.up || link.session != session {
            let life = self.peers[peer].life;
            return self.soon(1, 30, Event::Lost { peer, life, session, tag });
        }
        let at = (self.now + self.chance.between(1, 8)).max(link.last_arrival);
        self.scheduled += 1;
        let call = self.scheduled;
        let link = &mut self.peers[peer].link;
        link.last_arrival = at;
        link.calls.insert(call, Call { session, tag, op, executed: false });
        let epoch = link.epoch;
        self.at(at, Event::Arrive { peer, epoch, call });
    }

    pub fn arrive(&mut self, peer: usize, epoch: u64, id: u64) {
        // the Scala client asks again by itself
        let asks_again = matches!(self.peers[peer].kind, Kind::Scala(_));
        let losses = if self.quiet || self.clean || asks_again { 0 } else { 3 };
        let (lost, unsent) = (self.chance.percent(losses), self.chance.percent(50));
        let link = &mut self.peers[peer].link;
        if link.epoch != epoch {
            return;
        }
        let (lag, answer) = (link.lag, link.last_answer);
        let Some(call) = link.calls.get_mut(&id) else { return };
        call.executed = true;
        let (session, op) = (call.session, call.op.clone());
        let mut reply = Reply::Lost;
        if !(lost && unsent) {
            reply = self.server.execute(self.now, session, lag, op);
        }
        if lost {
            reply = Reply::Lost;
        }
        let at = (self.now + self.chance.between(1, 8)).max(answer);
        self.peers[peer].link.last_answer = at;
        self.at(at, Event::Answer { peer, epoch, call: id, reply });
    }

    /// The connection breaks; it comes back after `for_ms`, or never (`None`: the process died).
    pub fn disconnect(&mut self, peer: usize, for_ms: Option<u64>, fresh: bool) {
        let sent = self.now.saturating_sub(self.chance.between(0, SESSION_TIMEOUT / 6 + 16));
        let heard = self.chance.between(sent, self.now);
        let link = &mut self.peers[peer].link;
        link.up = false;
        link.epoch += 1;
        link.disturbed = self.now;
        link.lease_end = sent + SESSION_TIMEOUT * 2 / 3;
        let (session, epoch) = (link.session, link.epoch);
        self.server.forget_watches(session);
        self.at(heard + SESSION_TIMEOUT, Event::Expire { peer, session, epoch });
        self.lose_calls(peer, for_ms.unwrap_or(SESSION_TIMEOUT));
        if let Some(for_ms) = for_ms {
            let life = self.peers[peer].life;
            self.at(self.now + for_ms, Event::Reconnect { peer, life, fresh });
        }
    }

    /// The first of the requests on their way may still get through, before the client is back: its first
    /// request on a new connection is a heartbeat that passes the leader.
    fn lose_calls(&mut self, peer: usize, within: u64) {
        let calls = std::mem::take(&mut self.peers[peer].link.calls);
        let (session, life) = (self.peers[peer].link.session, self.peers[peer].life);
        let mut late = Vec::new();
        let mut through = true;
        for call in calls.into_values() {
            through = through && self.chance.percent(60);
            if through && !call.executed {
                late.push(call.op.clone());
            }
            match &mut self.peers[peer].kind {
                Kind::Scala(scala) => scala.again.push((call.tag, call.op)),
                Kind::Troupe(_) => {
                    self.at(self.now + 1, Event::Lost { peer, life, session: call.session, tag: call.tag });
                }
            }
        }
        if !late.is_empty() {
            self.soon(0, within.saturating_sub(1), Event::Late { session, ops: late });
        }
    }

    pub fn reconnect(&mut self, peer: usize, fresh: bool) {
        let session = self.peers[peer].link.session;
        if self.server.is_alive(session) && !fresh {
            let lag = if self.chance.percent(30) { self.chance.between(5, 40) } else { 0 };
            let link = &mut self.peers[peer].link;
            (link.up, link.lease_end, link.lag) = (true, u64::MAX, lag);
            link.epoch += 1;
            link.disturbed = self.now;
            return self.connected_again(peer);
        }
        self.freeze(peer);
        let link = self.open_link();
        let old = std::mem::replace(&mut self.peers[peer].link, link);
        self.peers[peer].link.epoch = old.epoch + 1;
        self.session_replaced(peer);
    }

    /// What is in flight will be executed, but nobody waits for its answer.
    pub fn orphan_calls(&mut self, peer: usize) {
        self.peers[peer].link.calls.values_mut().for_each(|call| call.tag = Tag::Ignored);
    }
}
