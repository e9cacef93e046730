//! Who takes part, and over which connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::driver::Driver;
use super::scala::Scala;
use super::server::Op;
use crate::TopicPartition;
use crate::group::{Generation, Member, SessionNumber};
use crate::zk::ConsumerThreadId;

/// What an answer is for.
#[derive(Clone, Debug)]
pub enum Tag {
    Register(Generation),
    Group(Generation),
    Owner(TopicPartition),
    Claim(TopicPartition, ConsumerThreadId),
    ClaimRead(TopicPartition, ConsumerThreadId),
    MoveRead(TopicPartition, ConsumerThreadId),
    MoveSet(TopicPartition),
    ReleaseRead(TopicPartition),
    ReleaseDelete(TopicPartition),
    Position(TopicPartition, Generation),
    Flush(TopicPartition, Generation),
    FlushOffset(TopicPartition, Generation),
    FlushOwner(TopicPartition, Generation, (Option<i64>, i32)),
    Adopt(TopicPartition),
    Scala(TopicPartition),
    ScalaGroup,
    ScalaRegister,
    Ignored,
}

pub struct Call {
    pub session: SessionNumber,
    pub tag: Tag,
    pub op: Op,
    pub executed: bool,
}

/// A peer's connection and session.
pub struct Link {
    pub session: SessionNumber,
    pub up: bool,
    /// Nothing is delivered from then on; checked at each hand-over.
    pub lease_end: u64,
    /// When it last broke or came back.
    pub disturbed: u64,
    pub epoch: u64,
    pub lag: u64,
    pub last_arrival: u64,
    pub last_answer: u64,
    pub calls: BTreeMap<u64, Call>,
}

pub enum Kind {
    Troupe(Box<Driver>),
    Scala(Box<Scala>),
}

pub struct Peer {
    pub id: String,
    pub topics: BTreeMap<Arc<str>, u32>,
    pub alive: bool,
    /// Counts starts of the process.
    pub life: u64,
    pub paused_until: u64,
    pub link: Link,
    pub kind: Kind,
}

impl Peer {
    pub fn member(&self) -> Member {
        Member { id: self.id.clone(), topics: self.topics.clone() }
    }
}
