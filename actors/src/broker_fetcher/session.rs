//! Fetch sessions (KIP-227, from Fetch 7): what the broker remembers of what we ask for, so that a request names only
//! what changed. No sockets, no clock.
//!
//! ```text
//!        ask: all, epoch 0           answered with an id
//! none ---------------------> asked ---------------------> session: ask what changed, epoch 1, 2, ...
//!  ^                            |  answered with id 0          |
//!  '----------------------------+-----------------------------'  70, 71, id 0, or a new connection
//! ```
//!
//! A broker answers each request for *every* partition of the session that has news: so what is not to be fetched now,
//! for want of room, must be forgotten, and is added again later. Below Fetch 7, and where a broker has no room for
//! another session, every request names all. Old ids are named once more in the request that replaces them, so that
//! brokers need not keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::fetch::{
    FetchHead, FetchPartition, FetchTopic, ForgottenTopic, NEW_SESSION_EPOCH,
};

/// No session.
const NO_SESSION: i32 = 0;

/// What one broker remembers of what we ask it for.
#[derive(Debug, Default)]
pub(super) struct FetchSession {
    id: i32,
    /// Of the next request: [`NEW_SESSION_EPOCH`] where it is to begin a session.
    epoch: i32,
    /// What the broker has once the last request is answered.
    known: BTreeMap<TopicPartition, FetchPartition>,
    /// The next request begins anew.
    renew: bool,
}

/// What a request says of its session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) session_id: i32,
    pub(super) session_epoch: i32,
    /// What the broker does not have yet, or otherwise.
    pub(super) topics: Vec<FetchTopic>,
    /// What it is to leave out from now on.
    pub(super) forgotten: Vec<ForgottenTopic>,
}

/// What an answer says of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continued {
    /// The partitions are told.
    Yes,
    /// The broker has lost the session: nothing is told, and the next request begins a new one.
    Lost,
}

impl FetchSession {
    /// The next request begins anew: there is another connection, or something in it must be told anew.
    pub(super) fn renew(&mut self) {
        self.renew = true;
    }

    /// A new claim of a partition that the broker knows: it would not tell again what the old one was told.
    pub(super) fn renew_if_knows(&mut self, partition: &TopicPartition) {
        self.renew |= self.known.contains_key(partition);
    }

    /// Words the request for exactly these partitions, in this order.
    pub(super) fn ask(&mut self, wanted: &[(TopicPartition, FetchPartition)]) -> Asked {
        if std::mem::take(&mut self.renew) {
            self.begin_anew();
        }
        let mut topics = Vec::new();
        for (key, asked) in wanted {
            match self.known.get_mut(key) {
                Some(known) if known == asked => continue,
                Some(known) => *known = *asked,
                None => drop(self.known.insert(key.clone(), *asked)),
            }
            push_by_topic(&mut topics, key, *asked);
        }
        Asked {
            session_id: self.id,
            session_epoch: self.epoch,
            topics,
            forgotten: self.forget_all_but(wanted),
        }
    }

    fn forget_all_but(&mut self, wanted: &[(TopicPartition, FetchPartition)]) -> Vec<ForgottenTopic> {
        let mut topics: Vec<ForgottenTopic> = Vec::new();
        if self.known.len() == wanted.len() {
            return topics;
        }
        let wanted: BTreeSet<_> = wanted.iter().map(|(key, _)| key).collect();
        self.known.retain(|key, _| {
            let stays = wanted.contains(key);
            match topics.last_mut() {
                _ if stays => {}
                Some(last) if last.topic == key.topic => last.partitions.push(key.partition),
                _ => {
                    let (topic, partitions) = (Arc::clone(&key.topic), vec![key.partition]);
                    topics.push(ForgottenTopic { topic, partitions });
                }
            }
            stays
        });
        topics
    }

    /// The answer to the last request.
    ///
    /// # Errors
    /// The broker refused the request as a whole.
    pub(super) fn answered(&mut self, head: &FetchHead) -> Result<Continued, ErrorCode> {
        let was_new = self.epoch == NEW_SESSION_EPOCH;
        match head.error {
            ErrorCode::None => {}
            ErrorCode::FetchSessionIdNotFound | ErrorCode::InvalidFetchSessionEpoch if !was_new => {
                self.begin_anew();
                return Ok(Continued::Lost);
            }
            error => {
                self.begin_anew();
                return Err(error);
            }
        }
        if head.session_id == NO_SESSION || !(was_new || head.session_id == self.id) {
            // told all the same
            self.begin_anew();
            self.id = head.session_id;
        } else {
            self.id = head.session_id;
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
        Ok(Continued::Yes)
    }

    /// The id stays: the broker drops that session when it begins the next.
    fn begin_anew(&mut self) {
        self.epoch = NEW_SESSION_EPOCH;
        self.known.clear();
    }
}

/// In their order; a topic may come up more than once.
fn push_by_topic(topics: &mut Vec<FetchTopic>, key: &TopicPartition, asked: FetchPartition) {
    match topics.last_mut() {
        Some(last) if last.topic == key.topic => last.partitions.push(asked),
        _ => topics.push(FetchTopic { topic: Arc::clone(&key.topic), partitions: vec![asked] }),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
