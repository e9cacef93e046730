//! Waiting for what can only be asked for again and again.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(25);
/// Long enough for anything on a loaded machine of two cores.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn check_patience(begun: Instant, what: &str, seen: &str) {
    assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}; last seen: {seen}");
}

/// Looks until there is an answer; panics with what was seen instead when it takes longer than [`PATIENCE`].
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(answer) => return answer,
            Err(seen) => check_patience(begun, what, &seen),
        }
        std::thread::sleep(PAUSE);
    }
}

/// [`until`] for a thread that has something else to do meanwhile.
pub async fn until_async<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(answer) => return answer,
            Err(seen) => check_patience(begun, what, &seen),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
