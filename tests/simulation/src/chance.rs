//! What is left to chance.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;

/// A seed that nobody has run, as are those after it: by the machine's clock.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64 % 1_000_000_000
}

/// A stream of random numbers that is shared; clones draw from the same one.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<Rng>>);

impl Chance {
    /// One of the seed's streams: what one draws does not change what another does.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Arc::new(Mutex::new(Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream))))
    }

    /// Draws.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True once in `times`.
    pub fn once_in(&self, times: u32) -> bool {
        self.draw(|rng| rng.u32(..times) == 0)
    }

    /// From `low` to `high` milliseconds.
    pub fn millis(&self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.draw(|rng| rng.u64(low..=high)))
    }

    /// One of them; none of none.
    pub fn one_of<T: Clone>(&self, all: &[T]) -> Option<T> {
        self.draw(|rng| rng.choice(all).cloned())
    }
}
