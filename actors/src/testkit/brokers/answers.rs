//! What the brokers answer.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as wire;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_troupe_proto::kafka::frame::ApiKey;
use kafka_troupe_proto::kafka::list_offsets::{EARLIEST, LATEST};
use tokio::time::{Instant, timeout_at};

use super::connection::HungUp;
use super::generation::{Generation, Take};
use super::{MemoryBrokers, PORT, Partition, RequestSeen, State, host_of};

/// A request that no broker takes: the connection ends.
#[derive(Debug, thiserror::Error)]
#[error("request of {bytes} bytes: {why}")]
struct RequestFailed {
    bytes: usize,
    why: String,
}

const OFFSET_OUT_OF_RANGE: i16 = 1;
pub(super) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const LEADER_NOT_AVAILABLE: i16 = 5;
const NOT_LEADER_FOR_PARTITION: i16 = 6;

impl MemoryBrokers {
    /// Correlation id and body of the answer; none to a request that is swallowed.
    pub(super) async fn answer(
        &self,
        broker: i32,
        mut request: Bytes,
        client: &HungUp,
    ) -> io::Result<Option<Bytes>> {
        let bytes = request.len();
        let failed = |why: String| io::Error::other(RequestFailed { bytes, why });
        let header = header(&mut request).map_err(|error| failed(error.to_string()))?;
        let (api, version) = (header.request_api_key, header.request_api_version);
        let generation = self.saw(RequestSeen { broker, api, version, bytes });
        let api = match generation.take(api, version) {
            Take::Answer(api) => api,
            Take::Swallow => return Ok(None),
            Take::Close => return Err(failed(format!("api {api} version {version} is not spoken"))),
        };
        let mut out = BytesMut::new();
        bytes::BufMut::put_i32(&mut out, header.correlation_id);
        if is_flexible(api.code(), version) {
            // no tagged fields
            bytes::BufMut::put_u8(&mut out, 0);
        }
        let encoded = match api {
            ApiKey::Fetch => match wire::FetchRequest::decode(&mut request, version) {
                Ok(request) => self.fetch(broker, request, version).await.encode(&mut out, version),
                Err(error) => Err(error),
            },
            ApiKey::ListOffsets => {
                wire::ListOffsetsRequest::decode(&mut request, version).and_then(|request| {
                    self.state().list_offsets(broker, request, version).encode(&mut out, version)
                })
            }
            ApiKey::Metadata => wire::MetadataRequest::decode(&mut request, version).and_then(|request| {
                self.state().metadata(broker, request, version).encode(&mut out, version)
            }),
            ApiKey::OffsetForLeaderEpoch => wire::OffsetForLeaderEpochRequest::decode(&mut request, version)
                .and_then(|request| self.state().epoch_ends(broker, request).encode(&mut out, version)),
            ApiKey::Produce => match wire::ProduceRequest::decode(&mut request, version) {
                Ok(request) => match self.produce(broker, request, version) {
                    Some(answer) => answer.encode(&mut out, version),
                    None => return Ok(None),
                },
                Err(error) => Err(error),
            },
            ApiKey::FindCoordinator => wire::FindCoordinatorRequest::decode(&mut request, version)
                .and_then(|_| self.state().find_coordinator().encode(&mut out, version)),
            ApiKey::OffsetFetch => {
                wire::OffsetFetchRequest::decode(&mut request, version).and_then(|request| {
                    self.state().fetch_offsets(broker, request, version).encode(&mut out, version)
                })
            }
            ApiKey::OffsetCommit => match wire::OffsetCommitRequest::decode(&mut request, version) {
                Ok(request) => match self.commit_offsets(broker, request, client).await? {
                    Some(answer) => answer.encode(&mut out, version),
                    None => return Ok(None),
                },
                Err(error) => Err(error),
            },
            _ => versions(generation).encode(&mut out, version),
        };
        encoded.map_err(|error| failed(error.to_string()))?;
        Ok(Some(out.freeze()))
    }

    /// Waits for data as long as asked for, as a broker does.
    async fn fetch(&self, broker: i32, mut request: wire::FetchRequest, version: i16) -> wire::FetchResponse {
        let session = self.state().sessions.begin(broker, &mut request);
        let session = match session {
            Ok(session) => session,
            Err(code) => return wire::FetchResponse::default().with_error_code(code),
        };
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
        let deadline = Instant::now() + wait;
        let limit = if version >= 3 { Limit::Whole } else { Limit::Partition };
        self.state().count_fetches(&request);
        loop {
            let changed = self.0.changed.notified();
            let (mut answer, bytes) = self.state().fetch(broker, &request, limit);
            let mut partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
            let is_due = bytes >= request.min_bytes
                || self.state().is_hasty
                || partitions.any(|partition| partition.error_code != 0);
            if is_due || timeout_at(deadline, changed).await.is_err() {
                let mut state = self.state();
                state.sessions.end(session, &mut answer);
                answer.throttle_time_ms = if version >= 1 { state.throttle_ms } else { 0 };
                return answer;
            }
        }
    }
}

/// Of the versions spoken here.
fn is_flexible(api: i16, version: i16) -> bool {
    api == ApiKey::Metadata.code() && version >= 9
}

fn header(request: &mut Bytes) -> Result<wire::RequestHeader, impl std::fmt::Display + use<>> {
    let word = |at: usize| request.get(at..at + 2).map_or(0, |word| i16::from_be_bytes([word[0], word[1]]));
    let version = if is_flexible(word(0), word(2)) { 2 } else { 1 };
    wire::RequestHeader::decode(request, version)
}

/// What a fetch is limited by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Each partition, which comes cut off there (below Fetch 3).
    Partition,
    /// Also the whole; a first batch comes whole.
    Whole,
}

fn versions(generation: Generation) -> wire::ApiVersionsResponse {
    let keys = generation.spoken().iter().map(|(api, low, high)| {
        wire::api_versions_response::ApiVersion::default()
            .with_api_key(api.code())
            .with_min_version(*low)
            .with_max_version(*high)
    });
    wire::ApiVersionsResponse::default().with_api_keys(keys.collect())
}

impl State {
    fn partition(&self, topic: &TopicName, index: i32) -> Option<&Partition> {
        self.topics.get(topic.as_str())?.get(usize::try_from(index).ok()?)
    }

    /// What `broker` leads, or the error that says why it does not.
    pub(super) fn led(&self, broker: i32, topic: &TopicName, index: i32) -> Result<&Partition, i16> {
        match self.partition(topic, index) {
            None => Err(UNKNOWN_TOPIC_OR_PARTITION),
            Some(partition) if partition.leader == Some(broker) => Ok(partition),
            Some(_) => Err(NOT_LEADER_FOR_PARTITION),
        }
    }

    fn count_fetches(&mut self, request: &wire::FetchRequest) {
        for topic in &request.topics {
            for asked in &topic.partitions {
                let partitions = self.topics.get_mut(topic.topic.as_str());
                let index = usize::try_from(asked.partition).unwrap_or(usize::MAX);
                if let Some(partition) = partitions.and_then(|it| it.get_mut(index)) {
                    partition.fetches += 1;
                }
            }
        }
    }

    fn fetch(
        &mut self,
        broker: i32,
        request: &wire::FetchRequest,
        limit: Limit,
    ) -> (wire::FetchResponse, i32) {
        let mut room = match limit {
            Limit::Partition => usize::MAX,
            Limit::Whole => usize::try_from(request.max_bytes).unwrap_or(0),
        };
        let mut total = 0;
        let mut topics = Vec::new();
        for topic in &request.topics {
            let mut partitions = Vec::new();
            for asked in &topic.partitions {
                let mut data = wire::fetch_response::PartitionData::default()
                    .with_partition_index(asked.partition)
                    .with_high_watermark(-1)
                    .with_last_stable_offset(-1)
                    .with_records(Some(Bytes::new()));
                let read = self.read(broker, &topic.topic, asked, (limit, room), total == 0);
                let mut refused = || self.refused.take(&topic.topic, asked.partition);
                match read.and_then(|read| refused().map_or(Ok(read), Err)) {
                    Ok((records, end)) => {
                        (room, total) = (room.saturating_sub(records.len()), total + records.len());
                        data = data.with_high_watermark(end).with_last_stable_offset(end);
                        data = data.with_records(Some(records));
                    }
                    Err(code) => data = data.with_error_code(code),
                }
                partitions.push(data);
            }
            topics.push(
                wire::fetch_response::FetchableTopicResponse::default()
                    .with_topic(topic.topic.clone())
                    .with_partitions(partitions),
            );
        }
        let total = i32::try_from(total).unwrap_or(i32::MAX);
        (wire::FetchResponse::default().with_responses(topics), total)
    }

    fn read(
        &self,
        broker: i32,
        topic: &TopicName,
        asked: &wire::fetch_request::FetchPartition,
        (limit, room): (Limit, usize),
        is_first: bool,
    ) -> Result<(Bytes, i64), i16> {
        let led = self.led(broker, topic, asked.partition)?;
        led.check_epoch(asked.current_leader_epoch)?;
        let log = &led.log;
        if !(log.start()..=log.end()).contains(&asked.fetch_offset) {
            return Err(OFFSET_OUT_OF_RANGE);
        }
        let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0).min(room);
        let records = log.read(asked.fetch_offset, most);
        if limit == Limit::Partition {
            return Ok((records.slice(..records.len().min(most)), log.end()));
        }
        // only the first record set of an answer may be larger than there is room
        let records = if is_first || records.len() <= most { records } else { Bytes::new() };
        Ok((records, log.end()))
    }

    fn list_offsets(
        &self,
        broker: i32,
        request: wire::ListOffsetsRequest,
        version: i16,
    ) -> wire::ListOffsetsResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let answer = wire::list_offsets_response::ListOffsetsPartitionResponse::default()
                    .with_partition_index(asked.partition_index);
                let found = self.led(broker, &topic.name, asked.partition_index).map(|partition| {
                    match asked.timestamp {
                        EARLIEST => Some(partition.log.start()),
                        LATEST => Some(partition.log.end()),
                        // all records have the time 0
                        time => (time <= 0).then(|| partition.log.start()),
                    }
                });
                match found {
                    Err(code) => answer.with_error_code(code),
                    Ok(offset) if version == 0 => answer.with_old_style_offsets(offset.into_iter().collect()),
                    Ok(offset) => answer.with_offset(offset.unwrap_or(-1)).with_timestamp(-1),
                }
            });
            wire::list_offsets_response::ListOffsetsTopicResponse::default()
                .with_partitions(partitions.collect())
                .with_name(topic.name.clone())
        });
        wire::ListOffsetsResponse::default()
            .with_throttle_time_ms(if version >= 2 { self.throttle_ms } else { 0 })
            .with_topics(topics.collect())
    }

    fn metadata(&self, broker: i32, request: wire::MetadataRequest, version: i16) -> wire::MetadataResponse {
        let unheard = self.unheard.as_ref().filter(|(its, _)| *its == broker).map(|(_, topic)| topic);
        let heard = self.topics.keys().filter(|name| Some(*name) != unheard);
        let all = || heard.map(|name| StrBytes::from_string(name.to_string()));
        let names: Vec<StrBytes> = match request.topics {
            // none is all of them, and so is an empty list in version 0
            None => all().collect(),
            Some(asked) if asked.is_empty() && version == 0 => all().collect(),
            Some(asked) => asked.into_iter().filter_map(|topic| topic.name.map(|name| name.0)).collect(),
        };
        let brokers = self.up().filter(|_| self.lonely != Some(broker)).map(|id| {
            wire::metadata_response::MetadataResponseBroker::default()
                .with_node_id(BrokerId(id))
                .with_host(StrBytes::from_string(host_of(id)))
                .with_port(PORT.into())
        });
        wire::MetadataResponse::default()
            .with_throttle_time_ms(if version >= 3 { self.throttle_ms } else { 0 })
            .with_brokers(brokers.collect())
            .with_controller_id(BrokerId(self.up().next().unwrap_or(-1)))
            .with_topics(names.into_iter().map(|name| self.topic_metadata(name)).collect())
    }

    fn topic_metadata(&self, name: StrBytes) -> wire::metadata_response::MetadataResponseTopic {
        let topic = wire::metadata_response::MetadataResponseTopic::default();
        let Some(partitions) = self.topics.get(name.as_str()) else {
            return topic.with_name(Some(TopicName(name))).with_error_code(UNKNOWN_TOPIC_OR_PARTITION);
        };
        let replicas: Vec<_> = self.brokers.keys().copied().map(BrokerId).collect();
        let partitions = partitions.iter().enumerate().map(|(index, partition)| {
            let code = if partition.leader.is_some() { 0 } else { LEADER_NOT_AVAILABLE };
            wire::metadata_response::MetadataResponsePartition::default()
                .with_partition_index(index as i32)
                .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
                .with_leader_epoch(partition.epoch.unwrap_or(-1))
                .with_error_code(code)
                .with_replica_nodes(replicas.clone())
                .with_isr_nodes(self.up().map(BrokerId).collect())
        });
        // a word that is an id, whatever its type is called
        let id = self.topic_ids.get(name.as_str()).map(|id| format!("{id:032x}")).unwrap_or_default();
        topic
            .with_partitions(partitions.collect())
            .with_topic_id(id.parse().unwrap_or_default())
            .with_is_internal(name.starts_with("__"))
            .with_name(Some(TopicName(name)))
    }
}
