//! Where the dashboard learns how a system stands.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_troupe_proto::schemas::group::v1::GroupView;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::time::timeout;

use crate::ConsumerHandle;

/// How long a group that is read is waited for.
const PROMPT: Duration = Duration::from_secs(1);

type Answer = Pin<Box<dyn Future<Output = Option<Observation>> + Send>>;

/// How a system stands at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Observation {
    /// Its members.
    pub status: StatusSnapshot,
    /// Its whole group; none where nobody can tell, or when it was not asked for.
    pub group: Option<GroupView>,
}

impl Observation {
    /// Of both.
    pub fn new(status: StatusSnapshot, group: Option<GroupView>) -> Self {
        Self { status, group }
    }
}

/// A system to be shown: a [`ConsumerHandle`], or whatever tells a status, such as a member in another process.
#[derive(Clone)]
pub struct Source {
    pub(super) cluster: Arc<str>,
    observe: Arc<dyn Fn(bool) -> Answer + Send + Sync>,
}

impl Source {
    /// Of a function that tells how a system of `cluster` (for people: by rule its ZooKeeper) stands, and, if asked by
    /// `true`, how its group does. `None` once it has shut down; it is not asked again.
    pub fn from_fn<F, Fut>(cluster: &str, observe: F) -> Self
    where
        F: Fn(bool) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Observation>> + Send + 'static,
    {
        Self { cluster: cluster.into(), observe: Arc::new(move |group| Box::pin(observe(group))) }
    }

    pub(super) fn observe(&self, group: bool) -> Answer {
        (self.observe)(group)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl From<ConsumerHandle> for Source {
    fn from(system: ConsumerHandle) -> Self {
        let cluster = system.config().zookeeper_connect.to_string();
        let view = Arc::new(LastView::default());
        Self::from_fn(&cluster, move |group| {
            let (system, view) = (system.clone(), Arc::clone(&view));
            async move {
                let read = async { if group { view.read(&system).await } else { None } };
                let (status, group) = tokio::join!(system.metrics(), read);
                Some(Observation::new(status.ok()?, group))
            }
        })
    }
}

/// A group that is slow to read, as when a broker is away, comes late and holds nothing else up.
#[derive(Default)]
struct LastView {
    view: Mutex<Option<GroupView>>,
    is_reading: AtomicBool,
}

impl LastView {
    async fn read(self: &Arc<Self>, system: &ConsumerHandle) -> Option<GroupView> {
        if !self.is_reading.swap(true, Ordering::AcqRel) {
            let (this, system) = (Arc::clone(self), system.clone());
            let read = actix::spawn(async move {
                if let Ok(view) = system.group().await {
                    *this.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
                }
                this.is_reading.store(false, Ordering::Release);
            });
            // an error: it goes on, and what it finds is seen later
            let _ = timeout(PROMPT, read).await;
        }
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
