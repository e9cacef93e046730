//! One produce request with a batch for each of many partitions.

use bytes::Bytes;
use kafka_troupe::proto::kafka::frame::{ApiKey, Request, Response, VersionRange};
use kafka_troupe::proto::kafka::wire::{Reader, WireError, Writer};

/// Of Produce: the first with magic 2.
pub const VERSION: i16 = 3;

pub struct Produce {
    pub topic: &'static str,
    /// Each with its partition.
    pub batches: Vec<(i32, Bytes)>,
}

impl Request for Produce {
    const API: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: VersionRange = VersionRange::new(VERSION, VERSION);
    type Response = Produced;

    fn encode(&self, _: i16, out: &mut Writer) {
        out.nullable_string("transactional_id", None);
        out.i16(1); // acks: of the leader
        out.i32(30_000);
        out.array("topics", &[self.topic], |out, topic| {
            out.string("topic", topic);
            out.array("partitions", &self.batches, |out, (partition, batch)| {
                out.i32(*partition);
                out.nullable_bytes("records", Some(batch));
            });
        });
    }
}

/// The error of each partition; 0 is none.
pub struct Produced(pub Vec<i16>);

impl Response for Produced {
    fn decode(_: i16, body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let topics = reader.array("topics", 6, |r| {
            r.string("topic")?;
            r.array("partitions", 22, |r| {
                r.i32("partition")?;
                let error = r.i16("error")?;
                r.i64("base_offset")?;
                r.i64("log_append_time")?;
                Ok(error)
            })
        })?;
        Ok(Self(topics.concat()))
    }
}
