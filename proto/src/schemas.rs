//! Messages that leave the process, in Protobuf: status, traces of rebalances, dead letters.
//!
//! Made by `prost` from `proto/schemas/*.proto`, whose comments are the documentation here. Packages are
//! versioned: within `v1` fields are only ever added.

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
    use super::status::v1::{OwnedPartition, Rebalances, Session, SessionState, StatusSnapshot};

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
            rebalances: Some(Rebalances { count: 1, last: vec![trace] }),
            ..Default::default()
        };
        assert_eq!(StatusSnapshot::decode(snapshot.encode_to_vec().as_slice()).unwrap(), snapshot);
    }

    proptest! {
        #[test]
        fn null_and_empty_stay_apart_in_dead_letters(key: Option<Vec<u8>>, value: Option<Vec<u8>>, header: Option<Vec<u8>>) {
            let headers = vec![Header { key: "h".into(), value: header.map(Into::into) }];
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
