//! The second client: requests encoded by `kafka-protocol`, which shares no code with Kafka's own clients or with
//! Troupe, to the only broker of a cluster.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::{self as wire, RequestHeader, ResponseHeader, TopicName, TransactionalId};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use troupe_cluster::{Broker, KafkaVersion};

use crate::topics::{PARTITIONS, Topic};

/// Long enough for a broker on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
const TIMEOUT_MS: i32 = 30_000;
/// The most that brokers allow: a transaction that is left open outlives the test.
const TRANSACTION_TIMEOUT_MS: i32 = 900_000;
/// Coordinators that load or move, and a transaction before that is still being ended.
const SOON: [i16; 6] = [3, 6, 14, 15, 16, 51];
const TOPIC: i8 = 2;

/// A connection, one request at a time.
pub struct Raw {
    stream: TcpStream,
    version: KafkaVersion,
    correlation: i32,
}

impl Raw {
    pub fn connect(broker: &Broker) -> Self {
        let stream = TcpStream::connect(broker.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, version: broker.version(), correlation: 0 }
    }

    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.correlation += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("differential")));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, R::header_version(version)).unwrap();
        request.encode(&mut frame, version).unwrap();
        self.stream.write_all(&i32::try_from(frame.len()).unwrap().to_be_bytes()).unwrap();
        self.stream.write_all(&frame).unwrap();
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        let mut body = Bytes::from(body);
        let header = ResponseHeader::decode(&mut body, R::Response::header_version(version)).unwrap();
        assert_eq!(header.correlation_id, self.correlation);
        R::Response::decode(&mut body, version).unwrap()
    }

    /// Asks until the answer is no code that passes by itself; panics with one that does not, or that stays.
    fn until_taken<T>(&mut self, what: &str, mut ask: impl FnMut(&mut Self) -> (i16, T)) -> T {
        let begun = Instant::now();
        loop {
            let (code, answer) = ask(self);
            match code {
                0 => return answer,
                _ if SOON.contains(&code) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => panic!("{what}: error code {code}"),
            }
        }
    }

    /// Error code and base offset.
    pub fn produce(&mut self, batch: &Batch<'_>) -> (i16, i64) {
        // from version 3 on sets are of magic 2 only; zstd is known from 7 on
        let version = match (batch.magic, batch.codec) {
            _ if self.version == KafkaVersion::V0_8_2_2 => 0,
            (_, "zstd") => 7,
            (2, _) => 3,
            _ => 2,
        };
        let partition = wire::produce_request::PartitionProduceData::default()
            .with_index(batch.partition)
            .with_records(Some(batch.records.clone()));
        let topic = wire::produce_request::TopicProduceData::default()
            .with_name(name(batch.topic))
            .with_partition_data(vec![partition]);
        let request = wire::ProduceRequest::default()
            .with_transactional_id(batch.transactional_id.map(id))
            .with_acks(-1)
            .with_timeout_ms(TIMEOUT_MS)
            .with_topic_data(vec![topic]);
        let response = self.call(version, &request);
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// The ends of a topic's partitions.
    pub fn ends(&mut self, topic: &str) -> Vec<i64> {
        let partition = |index| {
            let partition = wire::list_offsets_request::ListOffsetsPartition::default();
            partition.with_partition_index(index).with_timestamp(-1).with_max_num_offsets(1)
        };
        let asked = wire::list_offsets_request::ListOffsetsTopic::default()
            .with_name(name(topic))
            .with_partitions((0..PARTITIONS).map(partition).collect());
        let request =
            wire::ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![asked]);
        let old = self.version == KafkaVersion::V0_8_2_2;
        self.until_taken(&format!("ends of {topic}"), |raw| {
            let mut partitions = raw.call(i16::from(!old), &request).topics.remove(0).partitions;
            partitions.sort_by_key(|it| it.partition_index);
            let code = partitions.iter().map(|it| it.error_code).find(|code| *code != 0);
            let end = |it: &ListOffsetsPartitionResponse| {
                if old { it.old_style_offsets.first().copied().unwrap_or(-1) } else { it.offset }
            };
            (code.unwrap_or(0), partitions.iter().map(end).collect())
        })
    }

    /// Sets all the configuration that a topic has of its own.
    pub fn alter(&mut self, topic: &Topic, format: i8) {
        let config = |(name, value)| {
            wire::alter_configs_request::AlterableConfig::default()
                .with_name(StrBytes::from_static_str(name))
                .with_value(Some(StrBytes::from_static_str(value)))
        };
        let resource = wire::alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(StrBytes::from_static_str(topic.name))
            .with_configs(topic.configs(format).into_iter().map(config).collect());
        let request = wire::AlterConfigsRequest::default().with_resources(vec![resource]);
        self.until_taken("change of the format", |raw| (raw.call(0, &request).responses[0].error_code, ()));
    }
}

/// What goes to a partition.
pub struct Batch<'a> {
    pub topic: &'a str,
    pub partition: i32,
    pub magic: i8,
    pub codec: &'static str,
    pub records: Bytes,
    pub transactional_id: Option<&'a str>,
}

/// A producer that has transactions.
pub struct Transactional {
    pub id: String,
    pub producer_id: i64,
    pub epoch: i16,
}

impl Transactional {
    pub fn init(raw: &mut Raw, transactional_id: String) -> Self {
        let find = wire::FindCoordinatorRequest::default()
            .with_key(StrBytes::from_string(transactional_id.clone()))
            .with_key_type(1);
        raw.until_taken("the coordinator of transactions", |raw| (raw.call(1, &find).error_code, ()));
        let request = wire::InitProducerIdRequest::default()
            .with_transactional_id(Some(id(&transactional_id)))
            .with_transaction_timeout_ms(TRANSACTION_TIMEOUT_MS);
        raw.until_taken("a producer id", |raw| {
            let response = raw.call(0, &request);
            let (producer_id, epoch) = (response.producer_id.0, response.producer_epoch);
            (response.error_code, Self { id: transactional_id.clone(), producer_id, epoch })
        })
    }

    /// Before the first record that goes to a partition in a transaction.
    pub fn add(&self, raw: &mut Raw, topic: &str, partition: i32) {
        let topic = wire::add_partitions_to_txn_request::AddPartitionsToTxnTopic::default()
            .with_name(name(topic))
            .with_partitions(vec![partition]);
        let request = wire::AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(id(&self.id))
            .with_v3_and_below_producer_id(self.producer_id.into())
            .with_v3_and_below_producer_epoch(self.epoch)
            .with_v3_and_below_topics(vec![topic]);
        raw.until_taken("a partition in a transaction", |raw| {
            let response = raw.call(0, &request);
            let topic = &response.results_by_topic_v3_and_below[0];
            (topic.results_by_partition[0].partition_error_code, ())
        });
    }

    pub fn end(&self, raw: &mut Raw, commit: bool) {
        let request = wire::EndTxnRequest::default()
            .with_transactional_id(id(&self.id))
            .with_producer_id(self.producer_id.into())
            .with_producer_epoch(self.epoch)
            .with_committed(commit);
        raw.until_taken("the end of a transaction", |raw| (raw.call(0, &request).error_code, ()));
    }
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

fn id(transactional_id: &str) -> TransactionalId {
    TransactionalId(StrBytes::from_string(transactional_id.to_owned()))
}
