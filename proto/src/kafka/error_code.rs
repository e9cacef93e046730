//! Broker error codes, and the one table that says what each asks of us.

use std::fmt;

/// What to do about a broker's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disposition {
    /// No error.
    None,
    /// Send the same again to the same broker, after a backoff.
    Retry,
    /// Refresh metadata (after a backoff) and go to the partition's leader of then.
    FindLeader,
    /// The position is not in the log: apply `auto.offset.reset`.
    ResetOffset,
    /// Close the connection and open it anew: looks up the coordinator, or probes the broker's versions, again.
    Reconnect,
    /// Our membership is no longer what the request claims: rebalance.
    Rebalance,
    /// Trying again cannot help: report it, with topic or group, and stop what asked.
    Fatal,
}

macro_rules! error_codes {
    ($($code:literal $name:ident $disposition:ident $doc:literal;)*) => {
        /// A broker's error code (Kafka's `Errors`), for what a consumer may be answered.
        ///
        /// Each variant names its number and its [`Disposition`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(
                #[doc = concat!("(", stringify!($code), ", ", stringify!($disposition), ") ", $doc)]
                $name,
            )*
            /// Any other number: `FindLeader`, as the old consumer treats all that it does not know.
            Unknown(i16),
        }

        impl ErrorCode {
            /// All named codes.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number on the wire.
            pub const fn code(self) -> i16 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Unknown(code) => code,
                }
            }

            /// What the error asks of us.
            pub const fn disposition(self) -> Disposition {
                match self {
                    $(Self::$name => Disposition::$disposition,)*
                    Self::Unknown(_) => Disposition::FindLeader,
                }
            }

            /// What the error means, as a sentence for logs and messages.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $doc,)*
                    Self::Unknown(_) => "A code that this version does not know.",
                }
            }
        }

        impl From<i16> for ErrorCode {
            fn from(code: i16) -> Self {
                match code {
                    $($code => Self::$name,)*
                    other => Self::Unknown(other),
                }
            }
        }
    };
}

error_codes! {
    -1 UnknownServerError Retry "The broker failed in a way it has no code for; its log says more.";
    0 None None "No error.";
    1 OffsetOutOfRange ResetOffset "The offset lies before the log's start or after its end.";
    2 CorruptMessage Retry "The broker found a checksum wrong, in its log or in what we sent.";
    3 UnknownTopicOrPartition FindLeader "The broker does not host it: moved, deleted, or not yet created.";
    4 InvalidFetchSize Fatal "A fetch size below 0.";
    5 LeaderNotAvailable FindLeader "An election is under way.";
    6 NotLeaderOrFollower FindLeader "Leadership has moved.";
    7 RequestTimedOut Retry "The broker gave up waiting on other replicas.";
    8 BrokerNotAvailable FindLeader "The leader's broker is down.";
    9 ReplicaNotAvailable FindLeader "The replica is not on this broker yet.";
    10 MessageTooLarge Fatal "A produced batch is above `max.message.bytes`.";
    12 OffsetMetadataTooLarge Fatal "Commit metadata is above `offset.metadata.max.bytes`.";
    13 NetworkException Reconnect "The broker lost its connection before it could answer.";
    14 CoordinatorLoadInProgress Retry "The coordinator is still reading its offsets topic: not \"no offset\".";
    15 CoordinatorNotAvailable Reconnect "The coordinator is not up yet: look it up again.";
    16 NotCoordinator Reconnect "The coordinator has moved: look it up again.";
    17 InvalidTopic Fatal "A topic name that Kafka does not allow.";
    18 RecordListTooLarge Fatal "What was produced is larger than a log segment (`segment.bytes`).";
    19 NotEnoughReplicas Retry "Fewer in-sync replicas than `min.insync.replicas`.";
    20 NotEnoughReplicasAfterAppend Retry "Like 19, noticed after the append: trying again may duplicate.";
    21 InvalidRequiredAcks Fatal "`acks` other than -1, 0 or 1.";
    22 IllegalGeneration Rebalance "The group has moved on; for a commit without generation: a Kafka group of that name is active.";
    23 InconsistentGroupProtocol Fatal "The group's members share no assignor.";
    24 InvalidGroupId Fatal "An empty or refused group name.";
    25 UnknownMemberId Rebalance "The coordinator does not know the member; for a commit without member: as 22.";
    26 InvalidSessionTimeout Fatal "Outside the broker's group session bounds.";
    27 RebalanceInProgress Rebalance "The group is rebalancing.";
    28 InvalidCommitOffsetSize Fatal "The commit is too large for the offsets topic.";
    29 TopicAuthorizationFailed Fatal "We may not read (or write) the topic: an ACL is missing.";
    30 GroupAuthorizationFailed Fatal "We may not read the group: an ACL is missing.";
    31 ClusterAuthorizationFailed Fatal "We may not do this on the cluster: an ACL is missing.";
    32 InvalidTimestamp Fatal "A produced timestamp is outside the topic's bounds.";
    33 UnsupportedSaslMechanism Fatal "The listener does not offer that SASL mechanism.";
    34 IllegalSaslState Fatal "A request out of order in the SASL exchange, or on a listener without SASL.";
    35 UnsupportedVersion Reconnect "The broker does not speak that version (any more): probe its versions again.";
    41 NotController FindLeader "The controller has moved.";
    42 InvalidRequest Fatal "The broker refuses the request as malformed.";
    43 UnsupportedForMessageFormat Fatal "The topic's message format is too old, for example for a search by time.";
    44 PolicyViolation Fatal "A broker policy refuses it.";
    51 ConcurrentTransactions Retry "A transaction of that producer is still ending.";
    54 SecurityDisabled Fatal "The broker has no authorizer.";
    55 OperationNotAttempted Retry "Another part of the request failed first.";
    56 KafkaStorageError FindLeader "The leader's disk failed: leadership will move.";
    58 SaslAuthenticationFailed Fatal "Wrong credentials.";
    68 NonEmptyGroup Fatal "The group still has members.";
    69 GroupIdNotFound Fatal "No such group.";
    70 FetchSessionIdNotFound Retry "The fetch session is gone (evicted or restarted): begin a new one.";
    71 InvalidFetchSessionEpoch Retry "The fetch session is out of step: begin a new one.";
    72 ListenerNotFound FindLeader "The leader has no listener of our kind (yet).";
    74 FencedLeaderEpoch FindLeader "Our leader epoch is old: metadata is stale.";
    75 UnknownLeaderEpoch Retry "Our leader epoch is newer than the broker's: it lags behind.";
    76 UnsupportedCompressionType Fatal "The topic is configured for zstd, which needs Fetch 10 or later (Kafka 2.1).";
    77 StaleBrokerEpoch Retry "The broker has restarted in between.";
    78 OffsetNotAvailable Retry "A new leader does not know its high watermark yet.";
    79 MemberIdRequired Rebalance "Join again with the member id given.";
    81 GroupMaxSizeReached Fatal "The group is full (`group.max.size`).";
    82 FencedInstanceId Fatal "Another member uses our `group.instance.id`.";
    86 GroupSubscribedToTopic Fatal "A member of the group subscribes to the topic.";
    87 InvalidRecord Fatal "The broker refuses a produced record.";
    88 UnstableOffsetCommit Retry "Offsets of an open transaction are pending.";
    89 ThrottlingQuotaExceeded Retry "A quota is used up: wait for the throttle time.";
    100 UnknownTopicId FindLeader "The topic was deleted, or metadata is stale.";
    103 InconsistentTopicId FindLeader "The topic was deleted and made again.";
    110 FencedMemberEpoch Rebalance "The coordinator has fenced the member.";
    113 StaleMemberEpoch Rebalance "The member's epoch is old.";
}

impl ErrorCode {
    /// Whether this is code 0.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::None)
    }

    /// `Ok` for code 0, else the code as an error.
    pub const fn ok(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(code) => write!(f, "broker error {code}"),
            named => {
                let meaning = named.meaning().trim_end_matches('.');
                write!(f, "broker error {} ({named:?}): {meaning}", named.code())
            }
        }
    }
}

impl std::error::Error for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_the_round_trip() {
        for code in i16::MIN..=i16::MAX {
            assert_eq!(ErrorCode::from(code).code(), code);
        }
    }

    #[test]
    fn only_code_0_is_fine() {
        for code in ErrorCode::ALL {
            assert_eq!(code.disposition() == Disposition::None, code.is_ok(), "{code}");
        }
        assert_eq!(ErrorCode::Unknown(999).disposition(), Disposition::FindLeader);
    }

    #[test]
    fn an_error_reads_with_number_name_and_meaning() {
        let zstd = "broker error 76 (UnsupportedCompressionType): The topic is configured for zstd, which needs \
                    Fetch 10 or later (Kafka 2.1)";
        assert_eq!(ErrorCode::from(76).to_string(), zstd);
        assert_eq!(ErrorCode::from(999).to_string(), "broker error 999");
    }
}
