//! The heartbeat: an operation that passes the leader, changes nothing and fires no watch.
//!
//! It sets data with a version that no node has. `BadVersion` says that the leader still honours the session; a
//! follower that is cut off cannot say it. It runs beside the client, not in the actor, so that no mailbox delays
//! it, and extends the lease itself.
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{sleep, timeout};

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

/// Beats until the session is over, extending the lease to 2/3 of the timeout after each answered *send*.
pub(super) async fn beat(live: Arc<Live>, holder: Weak<ClientHolder>) {
    let session_timeout = live.client.session_timeout();
    let period = session_timeout / PER_TIMEOUT;
    let mut unanswered_since = None;
    loop {
        let sent = BootInstant::now();
        let since = *unanswered_since.get_or_insert(sent);
        let patience = session_timeout.saturating_sub(sent.since(since));
        let verdict = ask(&live, patience).await;
        let Some(holder) = holder.upgrade() else { return };
        match verdict {
            Verdict::Alive | Verdict::Missing => {
                unanswered_since = None;
                if !answered(&live, &holder, sent, verdict == Verdict::Missing) {
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
        tokio::select! {
            () = sleep(next) => {}
            () = live.wake.notified() => {}
        }
    }
}

/// One heartbeat, answered within `patience` or not.
async fn ask(live: &Live, patience: Duration) -> Verdict {
    let path = live.registered().unwrap_or_else(|| ROOT.to_owned());
    let answer = timeout(patience, live.client.beat(&path)).await;
    let verdict = answer.map_or(Verdict::Unanswered, judge);
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
fn answered(live: &Live, holder: &ClientHolder, sent: BootInstant, missing: bool) -> bool {
    if !holder.lease.extend_to(live.session, sent + live.client.session_timeout() * 2 / 3) {
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
}
