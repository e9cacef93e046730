//! What callers ask for, made of the port's single operations. Each runs beside the client, in one session.
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::error::{ZkCall, ZkError};
use super::holder::Live;
use super::port::{NodeMode, Stat, ZkFuture};
use super::watches::{WatchKey, WatchKind, Watches};
use super::{Claim, Registered};

/// Pause before asking again after a lost answer.
const RETRY: Duration = Duration::from_millis(100);
/// Attempts against nodes that come and go between two operations.
const ATTEMPTS: usize = 8;

/// `work`, ended with `Timeout` after `limit`.
pub(super) async fn within<T>(
    limit: Duration,
    call: ZkCall,
    work: impl Future<Output = Result<T, ZkError>>,
) -> Result<T, ZkError> {
    timeout(limit, work).await.unwrap_or(Err(ZkError::Timeout { call, after: limit }))
}

/// Names of the children. With `watch` the answer `NoNode` has armed a watch as well, on the node's creation.
pub(super) async fn read_children(live: &Live, path: &str, watch: bool) -> Result<Vec<String>, ZkError> {
    for _ in 0..ATTEMPTS {
        match live.client.children(path, watch).await {
            Err(ZkError::NoNode(_)) if watch && live.client.exists(path, true).await?.is_some() => {}
            read => return read,
        }
    }
    Err(ZkError::NoNode(ZkCall::new("get children of", path)))
}

/// Data and stat. With `watch` the answer `NoNode` has armed a watch as well, on the node's creation.
pub(super) async fn read_data(live: &Live, path: &str, watch: bool) -> Result<(Vec<u8>, Stat), ZkError> {
    for _ in 0..ATTEMPTS {
        match live.client.data(path, watch).await {
            Err(ZkError::NoNode(_)) if watch && live.client.exists(path, true).await?.is_some() => {}
            read => return read,
        }
    }
    Err(ZkError::NoNode(ZkCall::new("get data of", path)))
}

/// Creates an ephemeral node, with its parents, or says whose node is there.
///
/// A lost answer is settled by asking again: the create passes the leader after the first, so it finds the node if
/// the first has run, and the first cannot run any more if it has not. A node that stands there with our data and
/// our session is ours. With `watches` a node that is in the way is watched.
pub(super) async fn create_ephemeral(
    live: &Live,
    path: &str,
    data: &[u8],
    watches: Option<&Watches>,
) -> Result<Claim, ZkError> {
    let claim = claim(live, path, data, watches).await;
    if !claim.as_ref().is_err_and(ZkError::is_in_doubt) {
        live.settle(path);
    }
    claim
}

async fn claim(live: &Live, path: &str, data: &[u8], watches: Option<&Watches>) -> Result<Claim, ZkError> {
    for _ in 0..ATTEMPTS {
        match create_again(live, path, data).await {
            Ok(()) => {
                if let Some(owner) = own_id(live, path, data).await? {
                    return Ok(Claim::Created { owner });
                }
            }
            Err(ZkError::NodeExists(_)) => {
                if let Some(claim) = look_at_holder(live, path, data, watches).await? {
                    return Ok(claim);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(ZkError::NoNode(ZkCall::new("create", path)))
}

/// Our session's id; while it is unknown, read from the node at `path` that was just made with `data`. `None`: the
/// node is gone again.
async fn own_id(live: &Live, path: &str, data: &[u8]) -> Result<Option<i64>, ZkError> {
    if let Some(id) = live.id() {
        return Ok(Some(id));
    }
    match settled(|| live.client.data(path, false)).await {
        Ok((held, stat)) if held == data => {
            live.learn_id(stat.ephemeral_owner);
            Ok(Some(stat.ephemeral_owner))
        }
        Ok(_) | Err(ZkError::NoNode(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whose node stands at `path`; `None`: it is gone again.
async fn look_at_holder(
    live: &Live,
    path: &str,
    data: &[u8],
    watches: Option<&Watches>,
) -> Result<Option<Claim>, ZkError> {
    if let Some(watches) = watches {
        // before the watch is set, or it could fire unheard
        watches.want(WatchKey::new(path, WatchKind::Data));
    }
    let (held, stat) = match settled(|| live.client.data(path, watches.is_some())).await {
        Ok(read) => read,
        Err(ZkError::NoNode(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let owner = stat.ephemeral_owner;
    let ours = match live.id() {
        Some(id) => id == owner,
        None => held == data && live.may_be_ours(path, owner),
    };
    if ours && held == data {
        live.learn_id(owner);
        return Ok(Some(Claim::Created { owner }));
    }
    Ok(Some(Claim::Exists { data: held, stat }))
}

/// Asks until there is an answer. For reads, and for writes that may run twice.
async fn settled<T>(ask: impl Fn() -> ZkFuture<T>) -> Result<T, ZkError> {
    loop {
        match ask().await {
            Err(error) if error.is_in_doubt() => sleep(RETRY).await,
            answer => return answer,
        }
    }
}

/// Creates an ephemeral node and its parents; after a lost answer again, so `NodeExists` may be our own.
async fn create_again(live: &Live, path: &str, data: &[u8]) -> Result<(), ZkError> {
    let mut orphaned = 0;
    loop {
        let mut doubt = Doubt { live, path, answered: false };
        let answer = live.client.create(path, data.to_vec(), NodeMode::Ephemeral).await;
        doubt.answered = !answer.as_ref().is_err_and(ZkError::is_in_doubt);
        match answer {
            Err(error) if error.is_in_doubt() => sleep(RETRY).await,
            Err(ZkError::NoNode(_)) if orphaned < ATTEMPTS => {
                orphaned += 1;
                make_parents(live, path).await?;
            }
            answer => return answer,
        }
    }
}

/// Notes that a create's answer has not come, be it lost or waited for no longer.
struct Doubt<'a> {
    live: &'a Live,
    path: &'a str,
    answered: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.live.doubt(self.path);
        }
    }
}

/// Makes the missing parents of `path`, persistent and empty; never the chroot.
async fn make_parents(live: &Live, path: &str) -> Result<(), ZkError> {
    let mut missing = Vec::new();
    for parent in ancestors(path) {
        if settled(|| live.client.exists(parent, false)).await?.is_some() {
            break;
        }
        missing.push(parent);
    }
    for parent in missing.into_iter().rev() {
        match settled(|| live.client.create(parent, Vec::new(), NodeMode::Persistent)).await {
            Ok(()) | Err(ZkError::NodeExists(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The parents of `path`, nearest first, without the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
        .skip(1)
        .take_while(|parent| !parent.is_empty())
}

/// Creates a persistent node, with its parents. After a lost answer the node of this call counts as `NodeExists`.
pub(super) async fn create_persistent(live: &Live, path: &str, data: &[u8]) -> Result<(), ZkError> {
    for _ in 0..ATTEMPTS {
        match live.client.create(path, data.to_vec(), NodeMode::Persistent).await {
            Err(ZkError::NoNode(_)) => make_parents(live, path).await?,
            answer => return answer,
        }
    }
    Err(ZkError::NoNode(ZkCall::new("create", path)))
}

/// Deletes a node; one that is not there is as good. After a lost answer an ephemeral node is deleted again only
/// if it still is this session's: another's may stand there by now.
pub(super) async fn delete(live: &Live, path: &str, version: Option<i32>) -> Result<(), ZkError> {
    // first, else the heartbeat would miss what we take away ourselves
    let registered = live.forget_registered(path);
    let deleted = delete_settled(live, path, version).await;
    if registered && deleted.is_err() {
        live.set_registered(path);
    }
    deleted
}

async fn delete_settled(live: &Live, path: &str, version: Option<i32>) -> Result<(), ZkError> {
    loop {
        let error = match live.client.delete(path, version).await {
            Ok(()) | Err(ZkError::NoNode(_)) => return Ok(()),
            Err(error) if error.is_in_doubt() => error,
            Err(error) => return Err(error),
        };
        match (stat_at_leader(live, path).await?, live.id()) {
            (None, _) => return Ok(()),
            (Some(stat), Some(id)) if stat.ephemeral_owner == id => {}
            (Some(stat), Some(_)) if stat.ephemeral_owner != 0 => return Ok(()),
            _ => return Err(error),
        }
    }
}

/// The stat of a node after everything that the leader has decided so far: a plain read on a lagging follower
/// might miss a write that we sent over an earlier connection.
async fn stat_at_leader(live: &Live, path: &str) -> Result<Option<Stat>, ZkError> {
    match settled(|| live.client.beat(path)).await {
        Err(ZkError::NoNode(_)) => return Ok(None),
        Err(ZkError::BadVersion(_) | ZkError::NoAuth(_)) | Ok(_) => {}
        Err(error) => return Err(error),
    }
    settled(|| live.client.exists(path, false)).await
}

/// Registers this member: creates its ids node, and waits for that of a session which is about to end (a fixed
/// `consumer.id` started again after a crash, KAFKA-1387) for at most 3/2 of the session timeout: a server rounds
/// an expiry up to its next tick, and a tick is at most half the shortest session timeout it grants.
pub(super) async fn register(live: &Live, path: &str, data: &[u8]) -> Result<Registered, ZkError> {
    let deadline = Instant::now() + register_wait(live.client.session_timeout());
    loop {
        let holder = match create_ephemeral(live, path, data, None).await? {
            Claim::Created { owner } => return registered(live, path, owner).await,
            Claim::Exists { stat, .. } if live.id() == Some(stat.ephemeral_owner) => {
                live.client.set_data(path, data.to_vec(), Some(stat.version)).await?;
                return registered(live, path, stat.ephemeral_owner).await;
            }
            Claim::Exists { stat, .. } => stat.ephemeral_owner,
        };
        let gone = settled(|| live.client.exists(path, true)).await?.is_none();
        if !gone && timeout_at(deadline, live.look_again.notified()).await.is_err() {
            return Err(ZkError::Held { call: ZkCall::new("register", path), holder });
        }
    }
}

/// Longest wait of a registration for another session's node.
pub(super) fn register_wait(session_timeout: Duration) -> Duration {
    session_timeout * 3 / 2
}

async fn registered(live: &Live, path: &str, id: i64) -> Result<Registered, ZkError> {
    live.set_registered(path);
    live.wake.notify_one();
    if !still_registered(live).await? {
        return Err(ZkError::NoNode(ZkCall::new("register", path)));
    }
    Ok(Registered { session: live.session, id })
}

/// Watches our ids node for its deletion, and says whether it stands and is ours, or there is none. The heartbeat
/// alone would not see that another's node has taken its place.
pub(super) async fn still_registered(live: &Live) -> Result<bool, ZkError> {
    let Some(path) = live.registered() else { return Ok(true) };
    let stat = settled(|| live.client.exists(&path, true)).await?;
    let ours = stat.is_some_and(|stat| Some(stat.ephemeral_owner) == live.id());
    Ok(ours || !live.forget_registered(&path))
}

#[cfg(test)]
mod tests {
    use super::ancestors;

    #[test]
    fn ancestors_end_below_the_root() {
        assert_eq!(ancestors("/a/b/c").collect::<Vec<_>>(), ["/a/b", "/a"]);
        assert_eq!(ancestors("/a").count(), 0);
    }
}
