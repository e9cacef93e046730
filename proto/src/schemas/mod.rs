//! Messages that leave the process, in Protobuf: status, traces of rebalances, dead letters, views of a group.
//!
//! Made by `prost` from `proto/schemas/*.proto`, whose comments are the documentation here. Packages are
//! versioned: within `v1` fields are only ever added.
//!
//! With the feature `serde` they can be written as JSON, field by field with the names of the schema. Enums are words
//! (`"connected"`), the session's id is in hexadecimal, as ZooKeeper's tools show it, what is absent is `null`.

#[cfg(feature = "serde")]
mod json;
mod words;

/// A member of a group at one moment.
pub mod status {
    /// Package `troupe.status.v1`.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/troupe.status.v1.rs"));
    }
}

/// What one rebalance of one member did.
pub mod rebalance {
    /// Package `troupe.rebalance.v1`.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/troupe.rebalance.v1.rs"));
    }
}

/// A whole group, as ZooKeeper shows it.
pub mod group {
    /// Package `troupe.group.v1`.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/troupe.group.v1.rs"));
    }
}

/// Records that a handler gave up on.
pub mod dead_letter {
    /// Package `troupe.dead_letter.v1`.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/troupe.dead_letter.v1.rs"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::dead_letter::v1::{DeadLetter, Header};
    use super::rebalance::v1::{Outcome, RebalanceTrace, WaitedFor};
    use super::status::v1::*;

    #[test]
    fn a_snapshot_comes_back() {
        let trace = RebalanceTrace {
            generation: 3,
            waited_for: vec![WaitedFor { holder: "g_b-0".into(), ..Default::default() }],
            outcome: Outcome::Stable.into(),
            ..Default::default()
        };
        let snapshot = StatusSnapshot {
            session: Some(Session { state: SessionState::Connected.into(), id: 7, ..Default::default() }),
            partitions: vec![OwnedPartition { high_watermark: Some(0), lag: None, ..Default::default() }],
            rebalances: Some(Rebalances { count: 1, last: vec![trace], ..Default::default() }),
            ..Default::default()
        };
        assert_eq!(StatusSnapshot::decode(snapshot.encode_to_vec().as_slice()).unwrap(), snapshot);
    }

    #[test]
    #[cfg(feature = "serde")]
    fn as_json_enums_are_words_and_no_number_is_beyond_those_of_javascript() {
        let session = |state: SessionState, id| Session { state: state.into(), id, ..Default::default() };
        let json = serde_json::to_value(session(SessionState::Suspended, 0x1000_0000_1234_5678)).unwrap();
        assert_eq!(
            (json["state"].as_str(), json["id"].as_str()),
            (Some("suspended"), Some("0x1000000012345678"))
        );
        let unknown = Session { state: 77, ..Default::default() };
        assert_eq!(serde_json::to_value(unknown).unwrap()["state"], "");
        let snapshot = StatusSnapshot {
            partitions: vec![OwnedPartition { topic: "a\"b".into(), lag: None, ..Default::default() }],
            rebalances: Some(Rebalances {
                last: vec![RebalanceTrace { outcome: Outcome::SessionLost.into(), ..Default::default() }],
                ..Default::default()
            }),
            health: Some(HealthStatus { state: HealthState::Failing.into(), why: vec!["x".into()] }),
            ..Default::default()
        };
        let json = serde_json::to_value(snapshot).unwrap();
        assert_eq!(json["partitions"][0]["topic"], "a\"b");
        assert!(json["partitions"][0]["lag"].is_null());
        assert_eq!(json["rebalances"]["last"][0]["outcome"], "session_lost");
        assert_eq!(json["health"], serde_json::json!({"state": "failing", "why": ["x"]}));
    }

    proptest! {
        #[test]
        fn null_and_empty_stay_apart_in_dead_letters(key: Option<Vec<u8>>, value: Option<Vec<u8>>, header: Option<Vec<u8>>) {
            let headers = vec![Header { key: "h".into(), value: header.map(Into::into), ..Default::default() }];
            let letter = DeadLetter {
                key: key.map(Into::into), value: value.map(Into::into), headers, attempts: 3, ..Default::default()
            };
            prop_assert_eq!(DeadLetter::decode(letter.encode_to_vec().as_slice()).unwrap(), letter);
        }

        #[test]
        fn any_bytes_decode_or_fail(data: Vec<u8>) {
            let _ = StatusSnapshot::decode(data.as_slice());
            let _ = DeadLetter::decode(data.as_slice());
        }
    }
}
