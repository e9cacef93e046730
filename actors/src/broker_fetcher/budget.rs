//! What the fetchers of one broker ask for together: no more than their streams have room for.
//!
//! A stream has one room, whoever fetches for it, and what was asked for and has not come is not counted in it yet. So
//! a fetcher takes no more of it than the others have left. Nor more than an even share: most of the time a fetcher
//! waits for data, or for a broker that is dead, and what it has asked for meanwhile must not keep the others from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::stream_queue::Credit;

/// Shared by the fetchers of one broker. The default is that of one that has no fellows.
#[derive(Debug, Default)]
pub struct Budget {
    /// `num.consumer.fetchers`.
    fetchers: usize,
    /// Bytes that are on their way, by stream; only with more than one fetcher.
    asked: Mutex<BTreeMap<usize, usize>>,
}

/// Bytes that a request asks for; until its answer is taken in, they are not to be had by others.
pub(super) struct Asked {
    pub(super) bytes: usize,
    budget: Arc<Budget>,
    /// Their streams, which are kept so that no other one comes to stand at their place.
    parts: Vec<(Arc<Credit>, usize)>,
}

impl Budget {
    /// For so many fetchers.
    pub fn new(fetchers: u32) -> Self {
        Self { fetchers: usize::try_from(fetchers).unwrap_or(usize::MAX), asked: Mutex::default() }
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for up to `most` bytes for these streams. At least one byte, for which one batch comes, whatever its size.
    pub(super) fn ask(self: &Arc<Self>, streams: Vec<Arc<Credit>>, most: usize) -> Asked {
        let (budget, mut parts, mut bytes) = (Arc::clone(self), Vec::new(), 0_usize);
        if self.fetchers <= 1 {
            bytes = streams.iter().map(|stream| stream.free_bytes()).fold(0, usize::saturating_add).min(most);
            return Asked { bytes, budget, parts };
        }
        let mut asked = self.asked();
        for stream in streams {
            let (free, of_all) = (stream.free_bytes(), asked.entry(place(&stream)).or_default());
            let part = (free / self.fetchers).min(free.saturating_sub(*of_all)).min(most - bytes);
            *of_all += part;
            bytes += part;
            parts.push((stream, part));
        }
        drop(asked);
        Asked { bytes: bytes.max(1), budget, parts }
    }
}

impl Asked {
    /// As the protocol counts.
    pub(super) fn max_bytes(&self) -> i32 {
        i32::try_from(self.bytes).unwrap_or(i32::MAX)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let mut asked = self.budget.asked();
        for (stream, part) in &self.parts {
            if let Some(of_all) = asked.get_mut(&place(stream)) {
                *of_all -= part;
            }
        }
        asked.retain(|_, of_all| *of_all > 0);
    }
}

fn place(stream: &Arc<Credit>) -> usize {
    Arc::as_ptr(stream).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(room: usize) -> Arc<Credit> {
        Arc::new(Credit::new(10, room))
    }

    fn ask(budget: &Arc<Budget>, stream: &Arc<Credit>) -> Asked {
        budget.ask(vec![Arc::clone(stream)], 1_000)
    }

    #[test]
    fn fetchers_of_one_broker_ask_for_no_more_together_than_a_stream_has_room_for() {
        let (budget, busy, other) = (Arc::new(Budget::new(3)), stream(900), stream(300));
        // it waits for data, and what it has asked for may come at any time
        let waits = ask(&budget, &busy);
        assert_eq!(waits.bytes, 300);
        busy.take(500);
        let second = ask(&budget, &busy);
        assert_eq!(second.bytes, 100, "of 400, 300 are on their way");
        assert_eq!(ask(&budget, &busy).bytes, 1, "one batch, however little is left");
        assert_eq!(ask(&budget, &other).bytes, 100, "of another stream");
        busy.give_back(500);
        assert_eq!(ask(&budget, &busy).bytes, 300, "its share, whatever the others do");
        drop((waits, second));
        assert!(budget.asked().is_empty());
    }

    #[test]
    fn a_fetcher_without_fellows_asks_for_all_that_is_free() {
        let (budget, streams) = (Arc::new(Budget::new(1)), [stream(900), stream(300)]);
        let all = || streams.to_vec();
        let first = budget.ask(all(), 5_000);
        assert_eq!(
            [first.bytes, budget.ask(all(), 5_000).bytes, budget.ask(all(), 700).bytes],
            [1_200, 1_200, 700]
        );
        assert!(budget.asked().is_empty());
    }
}
