#![no_main]
//! A Fetch response, whole and as it arrives: whatever the whole decode accepts, the other reads the same.

use bytes::Bytes;
use kafka_troupe_proto::kafka::fetch::{FetchDecoder, FetchPart, FetchRequest, FetchResponse};
use kafka_troupe_proto::kafka::frame::{Request, Response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (version, split, body) = input;
    let version = i16::from(version) % (FetchRequest::VERSIONS.max + 1);
    let whole = FetchResponse::decode(version, Bytes::from(body.clone()));
    let walked = walk(version, &body, usize::from(split).min(body.len()));
    if let Ok(whole) = whole {
        let records = |response: &FetchResponse| {
            let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.map(|partition| partition.records.len()).collect::<Vec<_>>()
        };
        assert_eq!(walked, Some(records(&whole)));
    }
});

/// The sizes of the record sets; `None` for an error.
fn walk(version: i16, body: &[u8], split: usize) -> Option<Vec<usize>> {
    let mut decoder = FetchDecoder::new(version, body.len()).expect("a version of ours");
    let (mut at, mut arrived, mut sizes) = (0, split, Vec::new());
    loop {
        match decoder.next(&body[at..arrived.max(at)]) {
            Err(_) => return None,
            Ok(None) if arrived == body.len() => return None,
            Ok(None) => arrived = body.len(),
            Ok(Some((FetchPart::End, _))) => return Some(sizes),
            Ok(Some((part, consumed))) => {
                at += consumed;
                if let FetchPart::Partition { records_size, .. } = part {
                    at += records_size;
                    sizes.push(records_size);
                }
            }
        }
    }
}
