//! Fetch sessions (KIP-227), as brokers have them.

use std::collections::BTreeMap;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{FetchRequest, FetchResponse, TopicName};

const NO_SESSION: i32 = 0;
const NEW_SESSION_EPOCH: i32 = 0;
const NO_SESSION_EPOCH: i32 = -1;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;

/// The sessions of all brokers; ids are never given twice.
#[derive(Default)]
pub(super) struct Sessions {
    by_id: BTreeMap<i32, Session>,
    last_id: i32,
}

struct Session {
    broker: i32,
    /// Of the next request.
    epoch: i32,
    /// In the order in which a response is filled: who got data is the last.
    partitions: Vec<Remembered>,
}

struct Remembered {
    topic: TopicName,
    asked: FetchPartition,
    /// As told last.
    high_watermark: i64,
}

impl Sessions {
    /// Names all partitions of its session in a request; says which session that is, and whether only news are told.
    pub(super) fn begin(&mut self, broker: i32, request: &mut FetchRequest) -> Result<(i32, bool), i16> {
        match request.session_epoch {
            NO_SESSION_EPOCH => Ok((NO_SESSION, false)),
            NEW_SESSION_EPOCH => {
                self.by_id.remove(&request.session_id);
                self.last_id += 1;
                let partitions = remember(&request.topics);
                self.by_id.insert(self.last_id, Session { broker, epoch: 1, partitions });
                Ok((self.last_id, false))
            }
            epoch => {
                let session = self.by_id.get_mut(&request.session_id);
                let session = session.filter(|it| it.broker == broker).ok_or(FETCH_SESSION_ID_NOT_FOUND)?;
                if session.epoch != epoch {
                    return Err(INVALID_FETCH_SESSION_EPOCH);
                }
                session.update(request);
                if session.partitions.is_empty() {
                    self.by_id.remove(&request.session_id);
                    return Ok((NO_SESSION, true));
                }
                Ok((request.session_id, true))
            }
        }
    }

    /// Notes what was told, and leaves out what is no news.
    pub(super) fn end(&mut self, (id, only_news): (i32, bool), answer: &mut FetchResponse) {
        answer.session_id = id;
        let Some(session) = self.by_id.get_mut(&id) else { return };
        // the answer has them in the session's order
        let mut remembered = std::mem::take(&mut session.partitions).into_iter();
        let (mut stay, mut go_back) = (Vec::new(), Vec::new());
        for topic in &mut answer.responses {
            topic.partitions.retain(|told| {
                let Some(mut it) = remembered.next() else { return true };
                debug_assert!(it.is(&topic.topic, told.partition_index));
                let had = std::mem::replace(&mut it.high_watermark, told.high_watermark);
                let has_records = told.records.as_ref().is_some_and(|records| !records.is_empty());
                (if has_records { &mut go_back } else { &mut stay }).push(it);
                !only_news || has_records || told.error_code != 0 || told.high_watermark != had
            });
        }
        stay.append(&mut go_back);
        session.partitions = stay;
        answer.responses.retain(|topic| !topic.partitions.is_empty());
    }

    /// The broker is gone, or has no room for them any more.
    pub(super) fn forget(&mut self, broker: i32) {
        self.by_id.retain(|_, session| session.broker != broker);
    }
}

impl Session {
    fn update(&mut self, request: &mut FetchRequest) {
        self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        for new in remember(&request.topics) {
            match self.partitions.iter_mut().find(|it| it.is(&new.topic, new.asked.partition)) {
                Some(known) => known.asked = new.asked,
                None => self.partitions.push(new),
            }
        }
        for gone in &request.forgotten_topics_data {
            self.partitions
                .retain(|it| !gone.partitions.iter().any(|partition| it.is(&gone.topic, *partition)));
        }
        let all = self.partitions.iter().map(|it| {
            FetchTopic::default().with_topic(it.topic.clone()).with_partitions(vec![it.asked.clone()])
        });
        request.topics = all.collect();
    }
}

impl Remembered {
    fn is(&self, topic: &TopicName, partition: i32) -> bool {
        self.topic == *topic && self.asked.partition == partition
    }
}

fn remember(topics: &[FetchTopic]) -> Vec<Remembered> {
    let of = |topic: &FetchTopic| {
        let name = topic.topic.clone();
        let new = move |asked: &FetchPartition| Remembered {
            topic: name.clone(),
            asked: asked.clone(),
            high_watermark: -1,
        };
        topic.partitions.iter().map(new).collect::<Vec<_>>()
    };
    topics.iter().flat_map(of).collect()
}
