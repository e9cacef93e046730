//! Why a group is not as it should be.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// What is wrong.
    pub kind: ReasonKind,
    /// The topic; none where it is about a member or the group.
    pub topic: Option<String>,
    /// The partition's number.
    pub partition: Option<i32>,
    /// The node that shows it, relative to the chroot.
    pub path: String,
    /// The member: the owner, as its node names it, or the one that it is about.
    pub member: Option<String>,
    /// In words, without topic, partition and path.
    pub why: String,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ReasonKind {
    /// Nobody is registered.
    NoMember,
    /// A member's record or filter cannot be used.
    MemberUnreadable,
    /// A registration that no session holds.
    MemberWithoutSession,
    /// A partition that nobody owns.
    NotOwned,
    /// An owner that is no thread of a registered member.
    OwnerGone,
    /// An owner node that no session holds.
    OwnerWithoutSession,
    /// An owner node of another session than its member's registration.
    OtherSession,
    /// An owner that does not subscribe to the topic.
    OwnerNotSubscribed,
    /// An owner's thread beyond its number of streams.
    NoSuchStream,
    /// An offset node that holds no number.
    OffsetUnreadable,
    /// Records, and no offset.
    NoOffset,
    /// An offset beyond the end of the log.
    OffsetBeyondEnd,
    /// Records that nobody gets on with.
    OffsetStuck,
}

impl ReasonKind {
    /// Its name for programs, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoMember => "no_member",
            Self::MemberUnreadable => "member_unreadable",
            Self::MemberWithoutSession => "member_without_session",
            Self::NotOwned => "not_owned",
            Self::OwnerGone => "owner_gone",
            Self::OwnerWithoutSession => "owner_without_session",
            Self::OtherSession => "other_session",
            Self::OwnerNotSubscribed => "owner_not_subscribed",
            Self::NoSuchStream => "no_such_stream",
            Self::OffsetUnreadable => "offset_unreadable",
            Self::NoOffset => "no_offset",
            Self::OffsetBeyondEnd => "offset_beyond_end",
            Self::OffsetStuck => "offset_stuck",
        }
    }

    /// Whether only a commit can mend it, which a healthy group may not be due to make for a whole
    /// `auto.commit.interval.ms`.
    pub fn waits_for_commit(self) -> bool {
        matches!(self, Self::OffsetUnreadable | Self::NoOffset | Self::OffsetBeyondEnd | Self::OffsetStuck)
    }
}

impl Reason {
    pub(super) fn of_group(kind: ReasonKind, path: String, why: String) -> Self {
        Self { kind, topic: None, partition: None, path, member: None, why }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(topic), Some(partition)) = (&self.topic, self.partition) {
            write!(f, "{topic}-{partition}: ")?;
        }
        write!(f, "{} ({})", self.why, self.path)
    }
}
