//! Waiting for a condition of another process, which can only be asked again and again.

use crate::ClusterError;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Long enough for a JVM on a loaded machine of two cores.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What one look at a condition saw.
pub(crate) enum Look<T> {
    Done(T),
    /// Not yet; the text tells the reader of a timeout what was seen instead.
    NotYet(String),
}

/// Looks every 20 ms until done, for at most [`PATIENCE`]; an error of `look` ends the wait.
pub(crate) fn until<T>(
    what: &str,
    mut look: impl FnMut() -> Result<Look<T>, ClusterError>,
) -> Result<T, ClusterError> {
    let begun = Instant::now();
    loop {
        match look()? {
            Look::Done(value) => return Ok(value),
            Look::NotYet(seen) if begun.elapsed() > PATIENCE => {
                return Err(ClusterError::TimedOut { what: what.to_owned(), within: PATIENCE, seen });
            }
            Look::NotYet(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}
