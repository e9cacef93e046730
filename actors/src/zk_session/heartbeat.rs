//! The heartbeat: an operation that passes the leader, changes nothing and fires no watch.
//!
//! It sets data with a version that no node has. `BadVersion` says that the leader still honours the session; a
//! follower that is cut off cannot say it. It runs beside the client, not in the actor, so that no mailbox delays
//! it, and extends the lease itself.
//!
//! An answer proves less than it seems. The leader learns that a follower's clients live only from the follower's
//! answers to its pings, one each half tick; that a client writes does not count. So after a pause the leader may
//! answer a heartbeat and still count the timeout from before the pause. What we rely on is older: a heartbeat that was
//! answered a quarter of the timeout (half of the longest tick) before another was sent is known to the leader when it
//! answers that other one. See [`Proof`].
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::News;
use super::error::ZkError;
use super::holder::{ClientHolder, Live};
use super::port::{Stat, ZkEvent};
use crate::lease::BootInstant;

/// Heartbeats in one session timeout.
const PER_TIMEOUT: u32 = 6;
/// Where the heartbeat goes before we are registered.
const ROOT: &str = "/";

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The leader honours the session.
    Alive,
    /// So it does, but the node is gone.
    Missing,
    Unanswered,
    Expired,
    /// The client pairs replies with the wrong requests.
    Wrong(String),
}

/// How long the ensemble lets a session live, by the answers to its heartbeats.
struct Proof {
    session_timeout: Duration,
    /// Send and answer of heartbeats: the last that the leader knows of for sure, and what came after it.
    beats: VecDeque<(BootInstant, BootInstant)>,
}

impl Proof {
    /// Of a session that was made after `opened`.
    fn new(session_timeout: Duration, opened: BootInstant) -> Self {
        Self { session_timeout, beats: [(opened, opened)].into() }
    }

    /// Until when a lease may last, now that a heartbeat is answered: 2/3 of the timeout after its send, but not after
    /// a timeout that began with the send of the last one that the leader knows of. A server grants no timeout under
    /// two ticks unless told so.
    fn lease(&mut self, sent: BootInstant, answered: BootInstant) -> BootInstant {
        self.beats.push_back((sent, answered));
        let quarter = self.session_timeout / 4;
        while self.beats.get(1).is_some_and(|(_, answered)| *answered + quarter <= sent) {
            self.beats.pop_front();
        }
        let known = self.beats[0].0;
        (sent + self.session_timeout * 2 / 3).min(known + self.session_timeout)
    }
}

/// Beats until the session is over, extending the lease with each answer.
pub(super) async fn beat(live: Arc<Live>, opened: BootInstant, holder: Weak<ClientHolder>) {
    let session_timeout = live.client.session_timeout();
    let period = session_timeout / PER_TIMEOUT;
    let mut unanswered_since = None;
    let mut proof = Proof::new(session_timeout, opened);
    loop {
        let sent = BootInstant::now();
        let since = *unanswered_since.get_or_insert(sent);
        let patience = session_timeout.saturating_sub(sent.since(since));
        let verdict = ask(&live, patience).await;
        let Some(holder) = holder.upgrade() else { return };
        match verdict {
            Verdict::Alive | Verdict::Missing => {
                unanswered_since = None;
                let lease = proof.lease(sent, BootInstant::now());
                if !answered(&live, &holder, lease, verdict == Verdict::Missing) {
                    return;
                }
            }
            Verdict::Unanswered if BootInstant::now().since(since) < session_timeout => {}
            Verdict::Unanswered => {
                let why = format!("no heartbeat answered for {session_timeout:?}");
                return holder.tell(live.session, News::Lost { why });
            }
            Verdict::Expired => return holder.tell(live.session, News::Client(ZkEvent::Expired)),
            Verdict::Wrong(why) => return holder.tell(live.session, News::Lost { why }),
        }
        drop(holder);
        let next = period.saturating_sub(BootInstant::now().since(sent));
        // until then, or until one is wanted
        let _ = timeout(next, live.wake.notified()).await;
    }
}

/// One heartbeat, answered within `patience` or not. A server that does not answer for a third of the timeout is left
/// for another, which has at least a sixth of the timeout until the lease ends; a server without another is asked on a
/// new connection after two thirds, when the lease is over anyway: its address may stand for several.
async fn ask(live: &Live, patience: Duration) -> Verdict {
    let path = live.registered().unwrap_or_else(|| ROOT.to_owned());
    let mut answer = live.client.beat(&path);
    let third = live.client.session_timeout() / 3;
    let (asked, mut verdict) = (Instant::now(), Verdict::Unanswered);
    for (limit, or_connect_again) in [(third, false), (third * 2, true), (patience, true)] {
        if let Ok(answer) = timeout_at(asked + patience.min(limit), &mut answer).await {
            verdict = judge(answer);
            break;
        }
        if limit < patience {
            live.client.leave_server(or_connect_again);
        }
    }
    if verdict == Verdict::Missing && live.forget_registered(&path) {
        return Verdict::Missing;
    }
    // a node that nobody claims to have is no loss: the leader has answered
    if verdict == Verdict::Missing { Verdict::Alive } else { verdict }
}

fn judge(answer: Result<Stat, ZkError>) -> Verdict {
    match answer {
        // without the right to write the leader says so before it looks at the version
        Err(ZkError::BadVersion(_) | ZkError::NoAuth(_)) => Verdict::Alive,
        Err(ZkError::NoNode(_)) => Verdict::Missing,
        Err(ZkError::ConnectionLoss(_) | ZkError::Timeout { .. }) => Verdict::Unanswered,
        Err(ZkError::SessionExpired(_)) => Verdict::Expired,
        Err(other) => Verdict::Wrong(other.to_string()),
        Ok(stat) => Verdict::Wrong(format!("a heartbeat was answered with a version: {}", stat.version)),
    }
}

/// Extends the lease and tells what is new; false when the session is over.
fn answered(live: &Live, holder: &ClientHolder, lease: BootInstant, missing: bool) -> bool {
    if !holder.lease.extend_to(live.session, lease) {
        return false;
    }
    if live.verify() {
        holder.tell(live.session, News::Verified);
    }
    if missing {
        holder.tell(live.session, News::RegistrationMissing);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::error::ZkCall;
    use super::*;

    #[test]
    fn only_an_answer_of_the_leader_is_alive() {
        let call = || ZkCall::new("set data of", "/x");
        assert_eq!(judge(Err(ZkError::BadVersion(call()))), Verdict::Alive);
        assert_eq!(judge(Err(ZkError::NoAuth(call()))), Verdict::Alive);
        assert_eq!(judge(Err(ZkError::NoNode(call()))), Verdict::Missing);
        assert_eq!(judge(Err(ZkError::ConnectionLoss(call()))), Verdict::Unanswered);
        assert_eq!(judge(Err(ZkError::SessionExpired(call()))), Verdict::Expired);
        assert!(matches!(judge(Err(ZkError::NodeExists(call()))), Verdict::Wrong(_)));
        assert!(matches!(judge(Ok(Stat::new(1, 1, 7, 0))), Verdict::Wrong(_)));
    }

    /// Leases of a session of 12 s, in seconds, by when it was opened, and send and answer of its heartbeats.
    fn leases<const N: usize>(opened: u64, beats: [(u64, u64); N]) -> [u64; N] {
        let second = |seconds| BootInstant::default() + Duration::from_secs(seconds);
        let mut proof = Proof::new(Duration::from_secs(12), second(opened));
        beats.map(|(sent, answered)| {
            proof.lease(second(sent), second(answered)).since(BootInstant::default()).as_secs()
        })
    }

    #[test]
    fn a_lease_is_two_thirds_of_the_timeout_while_heartbeats_are_regular() {
        assert_eq!(leases(0, [(0, 0), (2, 2), (4, 4), (6, 6), (8, 9)]), [8, 10, 12, 14, 16]);
    }

    #[test]
    fn a_lease_ends_with_the_timeout_that_the_leader_counts() {
        // stood still for 9 s, and a regular one again
        assert_eq!(leases(0, [(0, 0), (2, 2), (11, 11), (13, 13), (15, 15)]), [8, 10, 14, 14, 23]);
        // an answer that took 7 s: the one that it answers may have been told to the leader, or not
        assert_eq!(leases(0, [(0, 0), (2, 9), (9, 9), (11, 11), (13, 13)]), [8, 10, 12, 12, 21]);
        // stood still between the session's creation and its first heartbeat
        assert_eq!(leases(0, [(7, 7), (9, 9), (11, 11)]), [12, 12, 19]);
    }
}
