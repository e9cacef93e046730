//! Chunks as they come from a broker: 1 MiB of batches of 16 KiB, of values of 100 B with keys of 9 B.

use bytes::{Bytes, BytesMut};
use kafka_troupe::proto::kafka::records::{NewRecord, RecordBatchWriter};
use prost::Message as _;

/// What the values are, as JSON or Protobuf.
#[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
pub struct Order {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub customer: String,
    #[prost(uint32, tag = "3")]
    pub amount: u32,
    #[prost(string, tag = "4")]
    pub note: String,
}

/// What one fetch gave of one partition, from offset 0 on.
#[derive(Clone)]
pub struct Chunk {
    pub bytes: Bytes,
    pub records: i64,
}

impl Chunk {
    pub fn json() -> Self {
        Self::of(|Order { id, customer, amount, note }| {
            let json =
                format!(r#"{{"id":{id},"customer":"{customer}","amount":{amount},"note":"{note:.<42}"}}"#);
            json.into_bytes()
        })
    }

    pub fn protobuf() -> Self {
        Self::of(|order| Order { note: format!("{:.<81}", order.note), ..order }.encode_to_vec())
    }

    fn of(encode: impl Fn(Order) -> Vec<u8>) -> Self {
        let (mut bytes, mut records) = (BytesMut::new(), 0);
        while bytes.len() < 1 << 20 {
            let mut batch = RecordBatchWriter::new(records);
            for _ in 0..145 {
                let (id, amount) = (100_000 + records as u64, 10 + records as u32 % 90);
                let customer = format!("user-{}", 1_000 + id % 8_999);
                let key = customer.clone();
                let value = encode(Order { id, customer, amount, note: "by hand".to_owned() });
                assert_eq!(value.len(), 100, "{}", String::from_utf8_lossy(&value));
                batch.push(&NewRecord {
                    key: Some(key.as_bytes()),
                    value: Some(&value),
                    ..NewRecord::default()
                });
                records += 1;
            }
            bytes.extend_from_slice(&batch.finish().expect("a batch"));
        }
        Self { bytes: bytes.freeze(), records }
    }
}
