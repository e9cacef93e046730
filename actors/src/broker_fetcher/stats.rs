//! What a fetcher counts, for the metrics. Shared with the manager; outlives the actor.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counters of one fetcher, over its lives.
#[derive(Debug, Default)]
pub struct FetcherStats {
    connected: AtomicBool,
    partitions: AtomicUsize,
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    /// In microseconds.
    waited: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl FetcherStats {
    /// Whether the last request was answered.
    pub fn connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Partitions in the fetcher's rotation.
    pub fn partitions(&self) -> usize {
        self.partitions.load(Relaxed)
    }

    /// Fetch requests answered.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Bytes of record sets received.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Fetch requests and connections that failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    /// Time between requests and their answers, in all.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// The last failure of the connection or a request, in words.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn answered(&self, bytes: usize, took: Duration) {
        self.connected.store(true, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.waited.fetch_add(u64::try_from(took.as_micros()).unwrap_or_default(), Relaxed);
    }

    /// Notes a failure; says whether it is news, and not the last one over again.
    pub(super) fn failed(&self, why: &str) -> bool {
        self.errors.fetch_add(1, Relaxed);
        let was_connected = self.connected();
        self.disconnected();
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_owned());
        was_connected || last.as_deref() != Some(why)
    }

    pub(super) fn disconnected(&self) {
        self.connected.store(false, Relaxed);
        self.set_partitions(0);
    }

    pub(super) fn set_partitions(&self, partitions: usize) {
        self.partitions.store(partitions, Relaxed);
    }
}
