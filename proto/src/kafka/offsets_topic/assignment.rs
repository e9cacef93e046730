use crate::TopicPartition;
use crate::kafka::wire::{Reader, WireError, WireProblem};
use bytes::Bytes;

/// What a member of a group of Kafka's own consumers was given (`ConsumerProtocolAssignment`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerAssignment {
    /// Version of the consumers' protocol, which says nothing about the layout.
    pub version: i16,
    /// Its partitions, in the order of the assignment.
    pub partitions: Vec<TopicPartition>,
    /// What the assignor added for the member.
    pub user_data: Option<Bytes>,
}

impl ConsumerAssignment {
    /// Reads [`GroupMember::assignment`](super::GroupMember::assignment) of a group whose protocol type is `consumer`.
    ///
    /// No bytes are no partitions: a member that the leader left out. Later versions than we know (0 to 3) only append
    /// fields, and are read as far as we know them: so do Kafka's own consumers.
    ///
    /// # Errors
    /// [`WireError`] names the field that cannot be read; groups of other protocol types have other formats.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut r = Reader::new(bytes);
        let version = r.i16("ConsumerProtocolAssignment.version")?;
        if version < 0 {
            let problem = WireProblem::Version { version, min: 0, max: i16::MAX };
            return Err(WireError { what: "ConsumerProtocolAssignment.version", at: 0, problem });
        }
        let mut partitions = Vec::new();
        let what = "ConsumerProtocolAssignment.assigned_partitions";
        r.array(what, 6, |r| topic(r, &mut partitions))?;
        let user_data = r.nullable_bytes("ConsumerProtocolAssignment.user_data")?;
        Ok(Self { version, partitions, user_data })
    }
}

fn topic(r: &mut Reader, all: &mut Vec<TopicPartition>) -> Result<(), WireError> {
    let topic = r.string("ConsumerProtocolAssignment.assigned_partitions.topic")?;
    let what = "ConsumerProtocolAssignment.assigned_partitions.partitions";
    r.array(what, 4, |r| {
        let partition = r.i32(what)?;
        all.push(TopicPartition::new(topic.clone(), partition));
        Ok(())
    })?;
    Ok(())
}
