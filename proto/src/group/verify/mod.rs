//! Whether a group is as it should be: every partition owned once, by a registered member, under a live session, with a
//! moving offset. What `VerifyConsumerRebalance` looked at (an owner that is a registered thread), and more.
//!
//! That a partition is owned once is what its node says: there is one. That a session lives is so too: nodes that a
//! session holds go with it, and the registration of a member is such a node.

mod looking;
mod reason;

use std::collections::BTreeMap;

use crate::TopicPartition;
use crate::group::Member;
use crate::schemas::group::v1::{GroupMember, GroupPartition, GroupView};
use crate::zk::ConsumerThreadId;
use crate::zk::paths::GroupPaths;
use crate::zk::registration::Subscription;
use crate::zk::topic_filter::INTERNAL_TOPICS;

pub use looking::Looking;
pub use reason::{Reason, ReasonKind};

/// What two looks at a group say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Why the group is not as it should be; none where it is.
    pub reasons: Vec<Reason>,
    /// What could not be told: without it the group is not known to be as it should be.
    pub unknown: Vec<String>,
}

impl Verdict {
    /// Nothing is wrong, and all could be told.
    pub fn is_good(&self) -> bool {
        self.reasons.is_empty() && self.unknown.is_empty()
    }

    /// All could be told, and nothing is wrong but what only commits can mend: members and owners are as they should be.
    pub fn is_settled(&self) -> bool {
        self.unknown.is_empty() && self.reasons.iter().all(|reason| reason.kind.waits_for_commit())
    }
}

/// The group as it was a while ago, against which it is judged.
struct Judged<'a> {
    before: BTreeMap<(&'a str, i32), &'a GroupPartition>,
    now: &'a GroupView,
    paths: GroupPaths,
}

/// Judges a group by two views of it, taken some time apart; the same one twice will do where nothing is behind.
///
/// Ownership and sessions are judged by the later one. An offset moves when nothing is behind it, or when more was
/// committed in the later view than in the earlier: in either store, for which of them members read is not told, and one
/// that they do not use any more may hold anything.
pub fn verify(earlier: &GroupView, later: &GroupView) -> Verdict {
    let before = earlier.partitions.iter().map(|it| ((it.topic.as_str(), it.partition), it)).collect();
    let judged = Judged { before, now: later, paths: GroupPaths::new(&later.group) };
    let mut verdict = Verdict { reasons: judged.members(), unknown: later.errors.clone() };
    for shown in later.partitions.iter().filter(|it| it.is_subscribed && it.exists == Some(true)) {
        verdict.reasons.extend(judged.ownership(shown));
        match judged.progress(shown) {
            Ok(reason) => verdict.reasons.extend(reason),
            // the reason is among the errors as a rule, once for all that lack the same
            Err(why) if verdict.unknown.is_empty() => verdict.unknown.push(why),
            Err(_) => {}
        }
    }
    verdict
}

impl Judged<'_> {
    fn members(&self) -> Vec<Reason> {
        if self.now.members.is_empty() {
            let why = "no member is registered".to_owned();
            return vec![Reason::of_group(ReasonKind::NoMember, self.paths.ids(), why)];
        }
        self.now.members.iter().filter_map(|member| self.member(member)).collect()
    }

    fn member(&self, member: &GroupMember) -> Option<Reason> {
        let (kind, why) = if !member.error.is_empty() {
            let why = format!("what {} subscribes to cannot be told: {}", member.id, member.error);
            (ReasonKind::MemberUnreadable, why)
        } else if member.session_id == 0 {
            let why = format!("no session holds the registration of {}: it never goes by itself", member.id);
            (ReasonKind::MemberWithoutSession, why)
        } else {
            return None;
        };
        let reason = Reason::of_group(kind, self.paths.id(&member.id), why);
        Some(Reason { member: Some(member.id.clone()), ..reason })
    }

    /// One reason at most: the first that explains the rest.
    fn ownership(&self, shown: &GroupPartition) -> Option<Reason> {
        let about = |kind, why| Some(self.about_owner(shown, kind, why));
        let Some(thread) = &shown.owner_thread else {
            return match shown.error.as_str() {
                "" => about(ReasonKind::NotOwned, "nobody owns it".to_owned()),
                why => about(ReasonKind::NotOwned, format!("no owner can be told: {why}")),
            };
        };
        let member =
            self.now.members.iter().find(|it| !shown.owner_is_missing && it.id == shown.owner_member);
        let Some(member) = member else {
            let forever =
                if shown.session_id == 0 { ", and no session holds the node: delete it" } else { "" };
            let why = format!("its owner {thread} is a thread of no registered member{forever}");
            return about(ReasonKind::OwnerGone, why);
        };
        if shown.session_id == 0 {
            let why = format!("no session holds the node of its owner {thread}: it never goes by itself");
            return about(ReasonKind::OwnerWithoutSession, why);
        }
        if shown.session_differs {
            let why = format!(
                "its owner {thread} holds it by session 0x{:x}, but is registered by 0x{:x}",
                shown.session_id, member.session_id
            );
            return about(ReasonKind::OtherSession, why);
        }
        self.stream(shown, thread, member)
    }

    fn stream(&self, shown: &GroupPartition, thread: &str, member: &GroupMember) -> Option<Reason> {
        let index = ConsumerThreadId::parse(thread).map_or(0, |id| id.index());
        match streams_for(member, &shown.topic)? {
            0 => {
                let why = format!("its owner {thread} does not subscribe to it");
                Some(self.about_owner(shown, ReasonKind::OwnerNotSubscribed, why))
            }
            streams if index >= streams => {
                let why = format!("its owner {thread} has {streams} streams for it, from 0");
                Some(self.about_owner(shown, ReasonKind::NoSuchStream, why))
            }
            _ => None,
        }
    }

    /// An error where it cannot be told.
    fn progress(&self, shown: &GroupPartition) -> Result<Option<Reason>, String> {
        let about = |kind, why| Ok(Some(self.about_offset(shown, kind, why)));
        if shown.owner_thread.is_some() && !shown.error.is_empty() {
            return about(ReasonKind::OffsetUnreadable, shown.error.clone());
        }
        let Some(end) = shown.log_end else {
            return Err(format!("the end of {}-{} is not known", shown.topic, shown.partition));
        };
        match committed(shown) {
            None if shown.log_start.unwrap_or(0) >= end => Ok(None),
            None => {
                about(ReasonKind::NoOffset, format!("no offset is committed, though its log ends at {end}"))
            }
            Some(_) if self.is_read(shown, end) => Ok(None),
            Some(committed) if committed > end => {
                let why = format!("the offset {committed} is committed, but its log ends at {end}");
                about(ReasonKind::OffsetBeyondEnd, why)
            }
            Some(now) => {
                let why = format!(
                    "it is {} behind, and the offset {now} that is committed does not move",
                    end - now
                );
                about(ReasonKind::OffsetStuck, why)
            }
        }
    }

    /// Whether one of its offsets is at the end of the log, or gets on towards it.
    fn is_read(&self, shown: &GroupPartition, end: i64) -> bool {
        let before = self.before.get(&(shown.topic.as_str(), shown.partition));
        let stores: [fn(&GroupPartition) -> Option<i64>; 2] =
            [|it| it.committed_zookeeper, |it| it.committed_kafka];
        stores.into_iter().any(|offset| match offset(shown) {
            Some(now) if now < end => {
                now > before.and_then(|before| offset(before).or(committed(before))).unwrap_or(-1)
            }
            now => now == Some(end),
        })
    }

    fn about_owner(&self, shown: &GroupPartition, kind: ReasonKind, why: String) -> Reason {
        Reason { path: self.paths.owner(&key(shown)), ..self.about_offset(shown, kind, why) }
    }

    fn about_offset(&self, shown: &GroupPartition, kind: ReasonKind, why: String) -> Reason {
        let id = shown.owner_thread.as_deref().and_then(|thread| ConsumerThreadId::parse(thread).ok());
        Reason {
            topic: Some(shown.topic.clone()),
            partition: Some(shown.partition),
            member: id.map(|id| id.consumer().to_owned()),
            ..Reason::of_group(kind, self.paths.offset(&key(shown)), why)
        }
    }
}

fn key(shown: &GroupPartition) -> TopicPartition {
    TopicPartition::new(shown.topic.as_str(), shown.partition)
}

/// The larger one counts, as for who reads on from there.
fn committed(shown: &GroupPartition) -> Option<i64> {
    shown.committed_zookeeper.max(shown.committed_kafka)
}

/// How many streams the member has for a topic that exists; none where that cannot be told.
fn streams_for(member: &GroupMember, topic: &str) -> Option<u32> {
    let (filter, streams) = (member.subscription.clone(), member.streams);
    let filtered = match member.pattern.as_str() {
        "static" => {
            return Some(member.topics.iter().find(|it| it.topic == topic).map_or(0, |it| it.streams));
        }
        "white_list" => Subscription::WhiteList { filter, streams },
        "black_list" => Subscription::BlackList { filter, streams },
        _ => return None,
    };
    // a member may have taken in Kafka's own topics, which others keep out of their filters
    let kept_out: &[&str] = if INTERNAL_TOPICS.contains(&topic) { &[] } else { INTERNAL_TOPICS };
    let expanded = Member::expand(member.id.as_str(), &filtered, &[topic.to_owned()], kept_out).ok()?;
    Some(expanded.topics.get(topic).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests;
