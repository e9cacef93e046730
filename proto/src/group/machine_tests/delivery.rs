//! Delivery as a machine's driver does it: position, records, stop, flush. Records are counted by the clock.

use std::collections::BTreeSet;

use super::driver::owner_of;
use super::peer::{Kind, Tag};
use super::server::{Op, Path, Reply};
use super::world::{DRAIN, Event, World};
use crate::TopicPartition;
use crate::group::commit::{Resolution, resolve};
use crate::group::{Generation, Input, SessionNumber};
use crate::zk::ConsumerThreadId;

/// Milliseconds in which one record is consumed.
const PACE: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Positioning,
    /// Since then.
    Delivering(u64),
    /// Asked to stop; handlers still run, or offsets are flushed.
    Draining,
}

#[derive(Clone, Debug)]
pub struct Delivery {
    pub thread: ConsumerThreadId,
    pub session: SessionNumber,
    pub stage: Stage,
    /// The next record's offset when it entered the stage.
    pub next: i64,
    /// Of the offset node, as read after the claim.
    version: Option<i32>,
    /// Whether a position was read: else there is nothing to flush.
    positioned: bool,
}

impl World {
    pub fn start(
        &mut self,
        peer: usize,
        generation: Generation,
        session: SessionNumber,
        tp: TopicPartition,
        thread: ConsumerThreadId,
    ) {
        let stage = Stage::Positioning;
        let delivery = Delivery { thread, session, stage, next: 0, version: None, positioned: false };
        if self.driver(peer).deliveries.insert(tp.clone(), delivery).is_some() {
            self.fail(&format!("{tp} is started twice"));
        }
        self.call(peer, session, Tag::Position(tp.clone(), generation), Op::ReadOffset(tp));
    }

    pub fn stop(&mut self, peer: usize, tp: TopicPartition, generation: Generation) {
        self.advance(peer, &tp);
        let Some(delivery) = self.driver(peer).deliveries.get_mut(&tp) else {
            self.fail(&format!("{tp} is stopped but was not started"));
        };
        delivery.stage = Stage::Draining;
        let life = self.peers[peer].life;
        self.soon(0, DRAIN, Event::Drained { peer, life, partition: tp, generation });
    }

    /// Counts what was delivered until now.
    pub fn advance(&mut self, peer: usize, tp: &TopicPartition) {
        let until = self.now.min(self.peers[peer].link.lease_end);
        let Some(delivery) = self.driver(peer).deliveries.get_mut(tp) else { return };
        if let Stage::Delivering(since) = delivery.stage {
            delivery.next += i64::try_from(until.saturating_sub(since) / PACE).expect("short");
            delivery.stage = Stage::Delivering(until.max(since));
            let next = delivery.next;
            let delivered = self.delivered.entry(tp.clone()).or_insert(0);
            *delivered = next.max(*delivered);
        }
    }

    pub fn cut(&mut self, peer: usize, tp: &TopicPartition) {
        self.advance(peer, tp);
        self.driver(peer).deliveries.remove(tp);
    }

    /// Another session, or none: what the old one delivered is counted, and ends here.
    pub fn freeze(&mut self, peer: usize) {
        if let Kind::Troupe(driver) = &self.peers[peer].kind {
            for tp in driver.deliveries.keys().cloned().collect::<Vec<_>>() {
                self.advance(peer, &tp);
            }
        }
    }

    pub fn drained(&mut self, peer: usize, tp: TopicPartition, generation: Generation) {
        let lease_end = self.peers[peer].link.lease_end;
        let now = self.now;
        match self.driver(peer).deliveries.get(&tp) {
            Some(delivery) if delivery.stage == Stage::Draining => {
                let (session, next, version) = (delivery.session, delivery.next, delivery.version);
                if !delivery.positioned || now >= lease_end {
                    return self.stopped(peer, tp, generation);
                }
                let write = Op::WriteOffset(tp.clone(), next, Some(version));
                self.call(peer, session, Tag::Flush(tp, generation), write);
            }
            _ => self.stopped(peer, tp, generation),
        }
    }

    pub fn stopped(&mut self, peer: usize, tp: TopicPartition, generation: Generation) {
        let deliveries = &mut self.driver(peer).deliveries;
        if deliveries.get(&tp).is_some_and(|delivery| delivery.stage == Stage::Draining) {
            deliveries.remove(&tp);
        }
        self.input(peer, Input::Stopped { generation, partitions: BTreeSet::from([tp]) });
    }

    pub fn positioned(
        &mut self,
        peer: usize,
        session: SessionNumber,
        tp: TopicPartition,
        generation: Generation,
        reply: Reply,
    ) {
        let now = self.now;
        let failed = !self.quiet && !self.clean && self.chance.percent(2);
        match self.driver(peer).deliveries.get_mut(&tp) {
            Some(delivery) if delivery.stage == Stage::Positioning && delivery.session == session => {
                if let (Reply::Offset(stored), false) = (reply, failed) {
                    delivery.next = stored.map_or(0, |(value, _)| value);
                    delivery.version = stored.map(|(_, version)| version);
                    delivery.positioned = true;
                    delivery.stage = Stage::Delivering(now);
                    return self.check_delivery_begins(peer, &tp);
                }
                self.driver(peer).deliveries.remove(&tp);
                let why = "no position".to_owned();
                self.input(peer, Input::StartFailed { generation, partition: tp, why });
            }
            _ => {}
        }
    }

    /// A fenced commit: set-if-version, and on another version the rule of `commit::resolve`.
    pub fn flushed(&mut self, peer: usize, session: SessionNumber, tag: Tag, reply: Reply) {
        match (tag, reply) {
            (Tag::Flush(tp, generation), Reply::Refused) => {
                self.call(peer, session, Tag::FlushOffset(tp.clone(), generation), Op::ReadOffset(tp));
            }
            (Tag::FlushOffset(tp, generation), Reply::Offset(Some((value, version)))) => {
                let read = Op::Read(Path::Owner(tp.clone()));
                self.call(peer, session, Tag::FlushOwner(tp, generation, (Some(value), version)), read);
            }
            (Tag::FlushOwner(tp, generation, stored), Reply::Owner(owner)) => {
                let Some(delivery) = self.driver(peer).deliveries.get(&tp).cloned() else {
                    return self.stopped(peer, tp, generation);
                };
                let owner = owner.map(owner_of);
                match resolve(stored, owner.as_ref(), session, &delivery.thread, delivery.next) {
                    Resolution::Write { value, version } => {
                        let write = Op::WriteOffset(tp.clone(), value, Some(Some(version)));
                        self.call(peer, session, Tag::Flush(tp, generation), write);
                    }
                    Resolution::Lost => self.stopped(peer, tp, generation),
                }
            }
            (Tag::Flush(tp, generation) | Tag::FlushOffset(tp, generation), _)
            | (Tag::FlushOwner(tp, generation, _), _) => self.stopped(peer, tp, generation),
            (tag, reply) => unreachable!("{tag:?} was answered {reply:?}"),
        }
    }
}
