//! How to reach the ensemble, in the old consumer's terms.
use std::time::Duration;

use kafka_troupe_proto::zk::connect_string::ConnectString;

use super::error::ZkError;
use super::establish::MIN_SESSION_TIMEOUT;

/// How to reach the ensemble.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Servers and chroot (`zookeeper.connect`).
    pub servers: ConnectString,
    /// Session timeout to ask for (`zookeeper.session.timeout.ms`, 6 s); the ensemble bounds it by its tick. Longer
    /// rides over longer pauses, but a dead member's partitions wait as long.
    pub session_timeout: Duration,
    /// Longest time until a session stands (`zookeeper.connection.timeout.ms`, 6 s).
    pub connection_timeout: Duration,
    /// Longest time for the answer to one operation (6 s); a request made of several has three times as long.
    pub operation_timeout: Duration,
}

impl SessionConfig {
    /// The defaults of the old consumer for the ensemble `servers`.
    pub fn new(servers: ConnectString) -> Self {
        let six = Duration::from_secs(6);
        Self { servers, session_timeout: six, connection_timeout: six, operation_timeout: six }
    }

    pub(super) fn check(&self) -> Result<(), ZkError> {
        if self.session_timeout < MIN_SESSION_TIMEOUT {
            let asked = self.session_timeout;
            return Err(ZkError::Config(format!(
                "zookeeper.session.timeout.ms: {asked:?} is too short; at least {MIN_SESSION_TIMEOUT:?}"
            )));
        }
        Ok(())
    }
}
