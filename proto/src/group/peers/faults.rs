//! What owner nodes say against the plan, and how to tell a person.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Owners;
use crate::TopicPartition;
use crate::group::assignor::{Plan, refused_before_0_10_2};
use crate::group::{GroupSnapshot, Owner, Strategy};
use crate::zk::ConsumerThreadId;
use crate::zk::topic_filter::TRANSACTION_STATE;

/// So many partitions are named in a sentence.
const NAMED: usize = 8;

/// A partition that is not owned by whom it falls to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The member that it falls to.
    pub(super) planned: Option<String>,
    /// The member that owns it.
    pub(super) owner: Option<String>,
}

/// A member that does not do what our plan says, although it has had the time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerFault {
    /// Its consumer id: the name of its node below `ids`.
    pub member: String,
    /// What it does instead.
    pub problem: Problem,
    /// The partitions concerned.
    pub partitions: BTreeSet<TopicPartition>,
    /// Why, as far as can be told.
    pub likely: Option<Likely>,
}

/// What a member does against our plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Problem {
    /// It owns nothing of what falls to it, and nobody else does: these partitions are read by nobody. So it is with a
    /// Scala member after its last attempt.
    GaveUp,
    /// Some of what falls to it is owned by nobody, and read by nobody.
    Unclaimed,
    /// It owns what falls to another, or to nobody.
    Holds {
        /// The member that it falls to by our plan.
        planned: Option<String>,
    },
}

impl Problem {
    /// The name for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::GaveUp => "gave_up",
            Self::Unclaimed => "unclaimed",
            Self::Holds { .. } => "holds",
        }
    }
}

/// What explains a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Likely {
    /// Scala members before 0.10.2 refuse `roundrobin` where topics or stream counts differ (KAFKA-2434).
    RefusesUnequalSubscriptions,
    /// What it owns is what falls to it by another strategy.
    PlansBy(Strategy),
    /// To members before 0.11 `__transaction_state` is not internal.
    TakesInTransactionState,
    /// The owner is no member that is planned for: not registered, or its record cannot be read.
    NotRegistered,
}

/// Partitions of others, and what is wrong with them. What falls to us, or is ours, is the machine's to settle; but
/// who holds what falls to us is told.
pub(super) fn wrong(plan: &Plan, owners: &Owners, own: &str) -> BTreeMap<TopicPartition, Wrong> {
    let all: BTreeSet<_> = plan.keys().chain(owners.keys()).collect();
    let mut found = BTreeMap::new();
    for tp in all {
        let planned = plan.get(tp).map(|thread| thread.consumer().to_owned());
        let owner = owners.get(tp).map(|owner| member_of(&owner.thread).to_owned());
        let ours_to_claim = owner.is_none() && planned.as_deref() == Some(own);
        if planned != owner && !ours_to_claim && owner.as_deref() != Some(own) {
            found.insert(tp.clone(), Wrong { planned, owner });
        }
    }
    found
}

/// The member that a thread belongs to; what is no thread id is told as it is.
fn member_of(thread: &str) -> &str {
    let dash = ConsumerThreadId::parse(thread).ok().map(|id| id.consumer().len());
    &thread[..dash.unwrap_or(thread.len())]
}

/// By member, what is to be reported.
pub(super) fn faults(
    wrong: &BTreeMap<TopicPartition, Wrong>,
    owners: &Owners,
    snapshot: &GroupSnapshot,
    strategy: Strategy,
) -> Vec<PeerFault> {
    let holders: BTreeSet<&str> = owners.values().map(|owner| member_of(&owner.thread)).collect();
    let mut found: BTreeMap<(&str, Problem), BTreeSet<TopicPartition>> = BTreeMap::new();
    for (tp, wrong) in wrong {
        let fault = match (&wrong.owner, &wrong.planned) {
            (Some(owner), planned) => (owner.as_str(), Problem::Holds { planned: planned.clone() }),
            (None, Some(planned)) if holders.contains(planned.as_str()) => {
                (planned.as_str(), Problem::Unclaimed)
            }
            (None, Some(planned)) => (planned.as_str(), Problem::GaveUp),
            (None, None) => continue,
        };
        found.entry(fault).or_default().insert(tp.clone());
    }
    let cause = Cause { owners, snapshot, strategy };
    let fault = |((member, problem), partitions): ((&str, Problem), BTreeSet<TopicPartition>)| PeerFault {
        likely: cause.of(member, &problem, &partitions),
        member: member.to_owned(),
        problem,
        partitions,
    };
    found.into_iter().map(fault).collect()
}

/// What a cause is looked for in.
struct Cause<'a> {
    owners: &'a Owners,
    snapshot: &'a GroupSnapshot,
    strategy: Strategy,
}

impl Cause<'_> {
    fn of(&self, member: &str, problem: &Problem, partitions: &BTreeSet<TopicPartition>) -> Option<Likely> {
        let range = self.strategy == Strategy::Range;
        match problem {
            Problem::Holds { .. } if self.snapshot.member(member).is_none() => Some(Likely::NotRegistered),
            Problem::Holds { planned: None }
                if partitions.iter().all(|tp| &*tp.topic == TRANSACTION_STATE) =>
            {
                Some(Likely::TakesInTransactionState)
            }
            Problem::GaveUp if !range && refused_before_0_10_2(self.snapshot) => {
                Some(Likely::RefusesUnequalSubscriptions)
            }
            Problem::GaveUp => None,
            Problem::Holds { .. } | Problem::Unclaimed => self.other_strategy(member).map(Likely::PlansBy),
        }
    }

    /// The strategy by which all that the member owns falls to it, if it does not by ours and that can be told and
    /// only one fits.
    fn other_strategy(&self, member: &str) -> Option<Strategy> {
        let known = |topic| self.snapshot.partitions.contains_key(topic);
        if !self.snapshot.subscribed_topics().iter().all(known) {
            return None;
        }
        let its = |owner: &Owner| member_of(&owner.thread) == member;
        let owned: Vec<_> = self.owners.iter().filter(|(_, owner)| its(owner)).map(|(tp, _)| tp).collect();
        let fits = |strategy: &Strategy| {
            let plan = strategy.assign_to(self.snapshot, member);
            owned.iter().all(|tp| plan.contains_key(*tp))
        };
        let all = [Strategy::Range, Strategy::RoundRobinBefore1, Strategy::RoundRobin];
        match all.into_iter().filter(fits).collect::<Vec<_>>()[..] {
            [strategy] if strategy != self.strategy => Some(strategy),
            _ => None,
        }
    }
}

/// A sentence for logs: who, what, and what to do.
impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, problem, partitions, likely } = self;
        let partitions = Named(partitions);
        match problem {
            Problem::GaveUp => write!(
                f,
                "member {member} owns nothing although {partitions} fall to it, so nobody reads them: it has given up, as a Scala consumer does after rebalance.max.retries; restart it, and if that does not last compare partition.assignment.strategy, troupe.roundrobin.peers and versions"
            )?,
            Problem::Unclaimed => write!(
                f,
                "member {member} does not own {partitions}, which fall to it, so nobody reads them: it plans differently, or cannot claim; see its log"
            )?,
            Problem::Holds { planned: Some(planned) } => write!(
                f,
                "member {member} owns {partitions}, which fall to member {planned}: they plan differently; compare partition.assignment.strategy, troupe.roundrobin.peers and the versions of all members"
            )?,
            Problem::Holds { planned: None } => {
                write!(f, "member {member} owns {partitions}, which by our plan fall to nobody")?;
            }
        }
        match likely {
            Some(likely) => write!(f, "; likely because {likely}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Likely {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RefusesUnequalSubscriptions => {
                "a Scala consumer before 0.10.2 refuses roundrobin where topics or stream counts differ between topics: subscribe all members alike, or use range in all"
            }
            Self::PlansBy(Strategy::Range) => "it plans by range: set partition.assignment.strategy alike in all",
            Self::PlansBy(Strategy::RoundRobinBefore1) => {
                "it plans by the roundrobin of Kafka before 1.0: set troupe.roundrobin.peers=before-1.0, if all Scala members are that old"
            }
            Self::PlansBy(Strategy::RoundRobin) => {
                "it plans by the roundrobin of Kafka 1.0: set troupe.roundrobin.peers=1.0, if all Scala members are that new"
            }
            Self::TakesInTransactionState => {
                "to a Scala consumer before 0.11 that topic is not internal: set troupe.internal.topics.peers=before-0.11, or keep the topic out of its filter"
            }
            Self::NotRegistered => "no registration of it can be read: its owner node was left behind or made by hand, or its record is broken",
        })
    }
}

/// The first few partitions, and how many more there are.
struct Named<'a>(&'a BTreeSet<TopicPartition>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().take(NAMED).map(TopicPartition::to_string).collect();
        f.write_str(&names.join(", "))?;
        match self.0.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
