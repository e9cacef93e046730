//! Waiting on a clock that stands.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long is waited for, on a clock that costs nothing: longer than any interval of the defaults.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(10);

/// Waits until something holds, for at most five minutes of the clock that stands, such as what a handler has done:
/// looks every 10 ms.
///
/// # Panics
/// With the place of the call and `what`, if it never does.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let what = what.to_owned();
    wait(PATIENCE, move || if holds() { Ok(()) } else { Err(what.clone()) })
}

/// Waits until nothing is missing.
#[track_caller]
pub(super) fn wait<M: Display>(
    patience: Duration,
    mut look: impl FnMut() -> Result<(), M>,
) -> impl Future<Output = ()> {
    let asked_at = Location::caller();
    async move {
        let began = Instant::now();
        while let Err(missing) = look() {
            assert!(began.elapsed() < patience, "{asked_at}: not within {patience:?}: {missing}");
            sleep(POLL).await;
        }
    }
}
