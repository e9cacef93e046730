//! What a stream has room for: the link by which a slow handler slows the fetchers, and nobody else.

use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Mutex, PoisonError};

use actix::{Message, Recipient};

/// A stream that was full has room again; sent to the fetchers that found it full.
#[derive(Message, Clone, Copy, Debug)]
#[rtype(result = "()")]
pub struct CreditGranted;

/// Room in one stream's queue, counted in chunks and bytes.
///
/// A fetcher asks for a stream's partitions only while there is room, and one response may overrun it (a
/// partition cannot be asked for less than a batch); a full stream's partitions are left out of the next
/// fetch, so a slow stream never stops another.
pub struct Credit {
    max_chunks: usize,
    max_bytes: usize,
    chunks: AtomicUsize,
    bytes: AtomicUsize,
    /// Fetchers that found no room.
    waiting: Mutex<Vec<Recipient<CreditGranted>>>,
}

impl Credit {
    /// `queued.max.message.chunks`, and bytes.
    pub fn new(max_chunks: usize, max_bytes: usize) -> Self {
        Self {
            max_chunks,
            max_bytes,
            chunks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Whether the stream's partitions may be asked for.
    pub fn has_room(&self) -> bool {
        self.chunks.load(SeqCst) < self.max_chunks && self.bytes.load(SeqCst) < self.max_bytes
    }

    /// How many bytes more the stream would take.
    pub fn free_bytes(&self) -> usize {
        self.max_bytes.saturating_sub(self.bytes.load(SeqCst))
    }

    /// Chunks and bytes that are queued or being handled.
    pub fn used(&self) -> (usize, usize) {
        (self.chunks.load(SeqCst), self.bytes.load(SeqCst))
    }

    /// Has [`CreditGranted`] sent once there is room; `false` when there is room already.
    pub fn notify_when_room(&self, fetcher: Recipient<CreditGranted>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_room() {
            return false;
        }
        // a fetcher may ask again while it still waits for a stream that stays full; some have ended meanwhile
        waiting.retain(|other| other.connected() && *other != fetcher);
        waiting.push(fetcher);
        true
    }

    /// A chunk is on its way to the stream.
    pub fn take(&self, bytes: usize) {
        self.chunks.fetch_add(1, SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    /// A chunk is done with: handled, or dropped.
    pub fn give_back(&self, bytes: usize) {
        self.chunks.fetch_sub(1, SeqCst);
        self.bytes.fetch_sub(bytes, SeqCst);
        if self.has_room() {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            for fetcher in waiting {
                fetcher.do_send(CreditGranted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use actix::{Actor, Context, Handler};

    use super::*;

    struct Fetcher;

    impl Actor for Fetcher {
        type Context = Context<Self>;
    }

    impl Handler<CreditGranted> for Fetcher {
        type Result = ();

        fn handle(&mut self, _: CreditGranted, _: &mut Context<Self>) {}
    }

    #[actix::test]
    async fn a_fetcher_that_asks_again_waits_once_and_only_for_a_full_stream() {
        let (credit, fetcher) = (Credit::new(2, 100), Fetcher.start());
        assert!(!credit.notify_when_room(fetcher.clone().recipient()));
        credit.take(100);
        for _ in 0..3 {
            assert!(credit.notify_when_room(fetcher.clone().recipient()));
        }
        assert_eq!(credit.waiting.lock().expect("no test panics with it").len(), 1);
        credit.give_back(100);
        assert!(credit.waiting.lock().expect("no test panics with it").is_empty());
    }
}
