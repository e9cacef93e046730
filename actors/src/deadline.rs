//! A moment that can be brought forward while it is waited for.

use std::future::{Future, pending};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Never, as long as nobody has set it.
#[derive(Clone)]
pub(crate) struct Deadline(Arc<watch::Sender<Option<Instant>>>);

impl Deadline {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    pub(crate) fn get(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// Nothing is changed by a later one than the one that it has; whether it was.
    pub(crate) fn bring_forward(&self, to: Instant) -> bool {
        self.0.send_if_modified(|moment| {
            let is_earlier = moment.is_none_or(|moment| to < moment);
            *moment = Some(moment.filter(|_| !is_earlier).unwrap_or(to));
            is_earlier
        })
    }

    /// Waits for what is to be done by then; none when it is not.
    pub(crate) async fn bound<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.passed() => None,
        }
    }

    async fn passed(&self) {
        let mut moment = self.0.subscribe();
        loop {
            let until = *moment.borrow_and_update();
            let passes = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = passes => return,
                // we hold the sender
                _ = moment.changed() => {}
            }
        }
    }
}
