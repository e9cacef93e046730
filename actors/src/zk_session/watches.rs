//! The watches that are wanted. The client library arms none again after a reconnect, so each is read and armed
//! anew and its contents are compared: a change of meanwhile is told as if the watch had fired (INV-8).
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream;

use super::News;
use super::error::ZkError;
use super::holder::{ClientHolder, Live};
use super::operations;
use super::port::{NodeChange, Stat};

/// Watches read anew at one time, so that callers' operations find slots beside them.
const REREADS: usize = 16;

/// What of a node is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchKind {
    Children,
    Data,
}

/// One wanted watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchKey {
    pub(super) path: String,
    pub(super) kind: WatchKind,
}

impl WatchKey {
    pub(super) fn new(path: &str, kind: WatchKind) -> Self {
        Self { path: path.to_owned(), kind }
    }
}

/// What a node showed when it was read last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Missing,
    Children(Vec<String>),
    /// Which node, and its last change.
    Data {
        czxid: i64,
        mzxid: i64,
    },
}

impl Seen {
    pub(super) fn children(read: &Result<Vec<String>, ZkError>) -> Option<Self> {
        match read {
            Ok(names) => Some(Self::Children(names.clone())),
            Err(ZkError::NoNode(_)) => Some(Self::Missing),
            Err(_) => None,
        }
    }

    pub(super) fn of(stat: &Stat) -> Self {
        Self::Data { czxid: stat.czxid, mzxid: stat.mzxid }
    }

    pub(super) fn data(read: &Result<(Vec<u8>, Stat), ZkError>) -> Option<Self> {
        match read {
            Ok((_, stat)) => Some(Self::of(stat)),
            Err(ZkError::NoNode(_)) => Some(Self::Missing),
            Err(_) => None,
        }
    }
}

/// All wanted watches, with what was seen last; `None` until a read has been answered.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<BTreeMap<WatchKey, Option<Seen>>>);

impl Watches {
    fn map(&self) -> MutexGuard<'_, BTreeMap<WatchKey, Option<Seen>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn want(&self, key: WatchKey) {
        self.map().entry(key).or_default();
    }

    pub(super) fn unwatch(&self, path: &str) {
        let mut map = self.map();
        for kind in [WatchKind::Children, WatchKind::Data] {
            map.remove(&WatchKey::new(path, kind));
        }
    }

    /// Each is to be told as changed when it is read anew.
    pub(super) fn forget_seen(&self) {
        self.map().values_mut().for_each(|seen| *seen = None);
    }

    /// Notes what was read; true when it differs from what was seen before. A watch that is not wanted any more
    /// changes nothing.
    pub(super) fn saw(&self, key: &WatchKey, seen: Seen) -> bool {
        match self.map().get_mut(key) {
            Some(last) => last.replace(seen.clone()) != Some(seen),
            None => false,
        }
    }

    /// The wanted watches that `change` of `path` concerns.
    pub(super) fn concerned(&self, path: &str, change: NodeChange) -> Vec<WatchKey> {
        let concerns = |kind| match change {
            NodeChange::Created | NodeChange::Deleted => true,
            NodeChange::Data => kind == WatchKind::Data,
            NodeChange::Children => kind == WatchKind::Children,
        };
        let map = self.map();
        [WatchKind::Children, WatchKind::Data]
            .into_iter()
            .filter(|kind| concerns(*kind))
            .map(|kind| WatchKey::new(path, kind))
            .filter(|key| map.contains_key(key))
            .collect()
    }

    fn keys(&self) -> Vec<WatchKey> {
        self.map().keys().cloned().collect()
    }
}

/// Reads and arms every wanted watch anew, and tells each change.
pub(super) async fn reread(live: Arc<Live>, holder: Arc<ClientHolder>) {
    if let Ok(false) = operations::still_registered(&live).await {
        holder.tell(live.session, News::RegistrationMissing);
    }
    stream::iter(holder.watches.keys())
        .for_each_concurrent(REREADS, |key| reread_one(&live, &holder, key))
        .await;
}

async fn reread_one(live: &Live, holder: &ClientHolder, key: WatchKey) {
    let seen = match key.kind {
        WatchKind::Children => {
            let read = operations::read_children(live, &key.path, true).await;
            Seen::children(&read).ok_or(read.err())
        }
        WatchKind::Data => {
            let read = operations::read_data(live, &key.path, true).await;
            Seen::data(&read).ok_or(read.err())
        }
    };
    let changed = match seen {
        Ok(seen) => holder.watches.saw(&key, seen),
        // the next connection, or the next session, reads it anew
        Err(Some(ZkError::ConnectionLoss(_) | ZkError::SessionExpired(_))) => false,
        // not armed, and nothing else would read it again: its subscriber must
        Err(_) => true,
    };
    if changed {
        holder.tell(live.session, News::Changed(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_what_differs_from_the_last_read() {
        let watches = Watches::default();
        let key = WatchKey::new("/a", WatchKind::Children);
        let names = |names: &[&str]| Seen::Children(names.iter().map(ToString::to_string).collect());
        assert!(!watches.saw(&key, Seen::Missing), "not wanted");
        watches.want(key.clone());
        assert!(watches.saw(&key, Seen::Missing), "never read before");
        assert!(!watches.saw(&key, Seen::Missing));
        assert!(watches.saw(&key, names(&["x"])));
        watches.want(key.clone());
        assert!(!watches.saw(&key, names(&["x"])), "wanting again forgets nothing");
        watches.unwatch("/a");
        assert!(!watches.saw(&key, names(&[])));
    }

    #[test]
    fn an_event_concerns_what_is_wanted() {
        let watches = Watches::default();
        let (children, data) =
            (WatchKey::new("/a", WatchKind::Children), WatchKey::new("/a", WatchKind::Data));
        watches.want(children.clone());
        assert_eq!(watches.concerned("/a", NodeChange::Data), []);
        assert_eq!(watches.concerned("/a", NodeChange::Created), std::slice::from_ref(&children));
        watches.want(data.clone());
        assert_eq!(watches.concerned("/a", NodeChange::Deleted), [children.clone(), data.clone()]);
        assert_eq!(watches.concerned("/a", NodeChange::Children), [children]);
        assert_eq!(watches.concerned("/a", NodeChange::Data), [data]);
        assert_eq!(watches.concerned("/b", NodeChange::Deleted), []);
    }
}
