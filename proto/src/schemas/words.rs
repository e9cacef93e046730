//! The words for what is a number in Protobuf: in JSON, in metrics and on the dashboard.

use super::rebalance::v1::Outcome;
use super::status::v1::{HealthState, SessionState};

impl SessionState {
    /// The name in the schema, without the prefix that all have: `connected`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Suspended => "suspended",
            Self::Expired => "expired",
        }
    }
}

impl HealthState {
    /// The name in the schema, without the prefix that all have: `healthy`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Healthy => "healthy",
            Self::Rebalancing => "rebalancing",
            Self::Suspended => "suspended",
            Self::Failing => "failing",
        }
    }
}

impl Outcome {
    /// The name in the schema, without the prefix that all have: `session_lost`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Stable => "stable",
            Self::Superseded => "superseded",
            Self::BackingOff => "backing_off",
            Self::SessionLost => "session_lost",
            Self::ShutDown => "shut_down",
        }
    }
}
