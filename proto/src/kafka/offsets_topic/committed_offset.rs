use crate::kafka::wire::{Reader, WireError, WireProblem};
use std::sync::Arc;

/// A committed offset: value versions 0 (0.8.2), 1 (0.9 to 2.0, or with a time to expire), 2 (2.1-IV0), 3 (since 2.1)
/// and 4 (read since 3.5; 4.4.0 writes it, with the topic's id).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedOffset {
    /// Version of the value that it was read from.
    pub version: i16,
    /// The offset of the next record that the group will read.
    pub offset: i64,
    /// Epoch of the partition's leader at the last record read; since version 3 and KIP-320.
    pub leader_epoch: Option<i32>,
    /// What the member wrote beside it; empty for most.
    pub metadata: Arc<str>,
    /// When the broker took it, or the time that the commit itself named, in milliseconds since 1970.
    pub commit_timestamp: Option<i64>,
    /// When the broker may forget it, in milliseconds since 1970; only in version 1. Else the broker's
    /// `offsets.retention.minutes` counts.
    pub expire_timestamp: Option<i64>,
    /// Id of the topic (KIP-516), where version 4 names it: an offset of a topic that was made again is not one of this.
    pub topic_id: Option<[u8; 16]>,
}

impl CommittedOffset {
    /// Reads what follows the version; nothing for a version that we do not know.
    pub(super) fn decode(version: i16, r: Reader) -> Result<Option<Self>, WireError> {
        if !(0..=4).contains(&version) {
            return Ok(None);
        }
        let mut r = r.flexible(version >= 4);
        let offset = r.i64("OffsetCommitValue.offset")?;
        let leader_epoch = if version >= 3 { r.i32("OffsetCommitValue.leader_epoch")? } else { -1 };
        let metadata = r.string("OffsetCommitValue.metadata")?;
        let commit_timestamp = r.i64("OffsetCommitValue.commit_timestamp")?;
        let expire_timestamp = if version == 1 { r.i64("OffsetCommitValue.expire_timestamp")? } else { -1 };
        Ok(Some(Self {
            version,
            offset,
            leader_epoch: (leader_epoch != -1).then_some(leader_epoch),
            metadata,
            commit_timestamp: (commit_timestamp != -1).then_some(commit_timestamp),
            expire_timestamp: (expire_timestamp != -1).then_some(expire_timestamp),
            topic_id: topic_id(&mut r)?,
        }))
    }
}

/// Its tag is 0; all zeros are none.
fn topic_id(r: &mut Reader) -> Result<Option<[u8; 16]>, WireError> {
    let (what, at) = ("OffsetCommitValue.topic_id", r.position());
    let Some(field) = r.tagged_field(what, 0)? else { return Ok(None) };
    let wrong_size = |_| WireError { what, at, problem: WireProblem::Length(field.len() as i64) };
    let id = <[u8; 16]>::try_from(&field[..]).map_err(wrong_size)?;
    Ok((id != [0; 16]).then_some(id))
}
