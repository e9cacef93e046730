use super::FetchResponse;
use crate::kafka::frame::{ApiKey, Request, VersionRange};
use crate::kafka::wire::Writer;
use std::sync::Arc;

/// The session epoch that asks for no session (with session id 0), or ends one.
pub const NO_SESSION_EPOCH: i32 = -1;
/// The session epoch that asks for a new session (session id 0, or that of the session to replace).
/// The next request then sends epoch 1, and so on; after `i32::MAX` comes 1.
pub const NEW_SESSION_EPOCH: i32 = 0;

/// Asks for the record sets of some partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// How long the broker may wait for `min_bytes`, in ms (`fetch.wait.max.ms`).
    pub max_wait_ms: i32,
    /// Bytes that end the wait (`fetch.min.bytes`).
    pub min_bytes: i32,
    /// Bytes that the response should not exceed; sent from version 3.
    pub max_bytes: i32,
    /// Leave out what aborted transactions wrote after the last stable offset; sent from version 4.
    /// Batches of aborted transactions still come, and are named by the response.
    pub read_committed: bool,
    /// From version 7: the session, or 0.
    pub session_id: i32,
    /// From version 7: [`NO_SESSION_EPOCH`], [`NEW_SESSION_EPOCH`], or the count within the session.
    pub session_epoch: i32,
    /// What to read; within a session only what is new or changed.
    pub topics: Vec<FetchTopic>,
    /// From version 7: what the session is to drop.
    pub forgotten: Vec<ForgottenTopic>,
    /// From version 11: our rack (`client.rack`), empty for none.
    pub rack: Arc<str>,
}

/// Partitions of one topic to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Which, and from where.
    pub partitions: Vec<FetchPartition>,
}

/// One partition to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPartition {
    /// Number.
    pub partition: i32,
    /// From version 9: the leader's epoch as metadata told it, or -1 to have none checked.
    pub leader_epoch: i32,
    /// The first offset wanted.
    pub offset: i64,
    /// Bytes of this partition that the response should not exceed (`fetch.message.max.bytes`).
    pub max_bytes: i32,
}

/// Partitions of one topic that a session is to drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Numbers.
    pub partitions: Vec<i32>,
}

impl Request for FetchRequest {
    const API: ApiKey = ApiKey::Fetch;
    const NAME: &'static str = "FetchRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 11);
    type Response = FetchResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        out.i32(-1); // replica_id: a consumer
        out.i32(self.max_wait_ms);
        out.i32(self.min_bytes);
        if version >= 3 {
            out.i32(self.max_bytes);
        }
        if version >= 4 {
            out.i8(self.read_committed.into());
        }
        if version >= 7 {
            out.i32(self.session_id);
            out.i32(self.session_epoch);
        }
        out.array("FetchRequest.topics", &self.topics, |out, topic| {
            out.string("FetchRequest.topics.topic", &topic.topic);
            out.array("FetchRequest.topics.partitions", &topic.partitions, |out, p| p.encode(version, out));
        });
        if version >= 7 {
            out.array("FetchRequest.forgotten_topics_data", &self.forgotten, |out, forgotten| {
                out.string("FetchRequest.forgotten_topics_data.topic", &forgotten.topic);
                let what = "FetchRequest.forgotten_topics_data.partitions";
                out.array(what, &forgotten.partitions, |out, partition| out.i32(*partition));
            });
        }
        if version >= 11 {
            out.string("FetchRequest.rack_id", &self.rack);
        }
    }
}

impl FetchPartition {
    fn encode(&self, version: i16, out: &mut Writer) {
        out.i32(self.partition);
        if version >= 9 {
            out.i32(self.leader_epoch);
        }
        out.i64(self.offset);
        if version >= 5 {
            out.i64(-1); // log_start_offset: followers only
        }
        out.i32(self.max_bytes);
    }
}
