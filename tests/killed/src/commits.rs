//! A commit each 100 records, whichever streams they came by.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_troupe::Offsets;
use tokio::sync::{Mutex, Semaphore};

use crate::journal::Journal;

/// Records from one commit to the next.
const EVERY: usize = 100;

/// Counts what is handled. A commit leaves out at most what each stream has in hand when it is made; and while one is
/// under way, no more than another [`EVERY`] records are handled. So what a kill leaves uncommitted is at most
/// 2 x [`EVERY`] records and one for each stream.
pub struct Commits {
    journal: Arc<Journal>,
    offsets: Offsets,
    handled: AtomicUsize,
    /// How many more may be handled before the commit that is under way is answered.
    allowed: Semaphore,
    /// One commit at a time.
    turn: Mutex<()>,
}

impl Commits {
    pub fn new(journal: Arc<Journal>, offsets: Offsets) -> Self {
        let allowed = Semaphore::new(2 * EVERY);
        Self { journal, offsets, handled: AtomicUsize::new(0), allowed, turn: Mutex::new(()) }
    }

    /// Waits until another record may be handled.
    pub async fn may_handle(&self) {
        if let Ok(permit) = self.allowed.acquire().await {
            permit.forget();
        }
    }

    /// A record is handled.
    pub fn handled(self: &Arc<Self>) {
        if (self.handled.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY) {
            let this = Arc::clone(self);
            actix::spawn(async move { this.commit().await.expect("the journal can be written to") });
        }
    }

    async fn commit(&self) -> std::io::Result<()> {
        let _turn = self.turn.lock().await;
        self.journal.committing()?;
        match self.offsets.commit().await {
            Ok(outcome) => {
                for (partition, outcome) in outcome.iter() {
                    match outcome {
                        Ok(committed) => self.journal.committed(partition, committed.offset)?,
                        Err(error) => self.journal.failed(&error.to_string())?,
                    }
                }
            }
            Err(error) => self.journal.failed(&error.to_string())?,
        }
        self.allowed.add_permits(EVERY);
        Ok(())
    }
}
