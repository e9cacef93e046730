#![no_main]
//! The data of znodes that others write.

use kafka_troupe_proto::zk::{broker, offset, registration, topic, topic_ids::TopicIds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = broker::BrokerRegistration::parse(1, data);
    let _ = topic::partition_ids("topic", data);
    let _ = offset::parse_offset("/path", data);
    let _ = registration::unreadable_before_1_0(data);
    let ids = TopicIds::parse(data);
    assert_eq!(TopicIds::parse(ids.to_string().as_bytes()), ids);
    if let Ok(registration) = registration::Registration::parse("member", data) {
        let again = registration::Registration::parse("member", registration.to_json().as_bytes());
        assert!(again.is_ok(), "we do not read what we write: {again:?}");
    }
});
