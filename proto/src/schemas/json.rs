//! How what is a number in Protobuf, and means something else, is written as JSON.

use serde::Serializer;

use super::rebalance::v1::Outcome;
use super::status::v1::{HealthState, SessionState};

pub(super) fn session_state<S: Serializer>(state: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(SessionState::try_from(*state).map_or("", SessionState::word))
}

pub(super) fn health_state<S: Serializer>(state: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(HealthState::try_from(*state).map_or("", HealthState::word))
}

pub(super) fn outcome<S: Serializer>(outcome: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(Outcome::try_from(*outcome).map_or("", Outcome::word))
}

/// As ZooKeeper's own tools show it. It is beyond 2^53, where the numbers of JavaScript end.
pub(super) fn session_id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{id:#x}"))
}
