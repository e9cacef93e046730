//! The clocks behind the lease, and the calendar. Timers ask [`tokio::time::Instant`], which a test may pause; these
//! follow it only while a test says so (feature `testkit`).

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Time since boot, suspended time included.
pub(crate) fn boot_time() -> Timespec {
    #[cfg(feature = "testkit")]
    if let Some(time) = crate::testkit::clock::now() {
        return time;
    }
    clock_gettime(ClockId::Boottime)
}

/// The kernel's coarse clock: moves once per timer tick (1 to 10 ms), and reading it takes a fraction of a precise
/// clock's reading.
#[inline]
pub(crate) fn tick() -> Timespec {
    #[cfg(feature = "testkit")]
    if let Some(time) = crate::testkit::clock::now() {
        return time;
    }
    clock_gettime(ClockId::MonotonicCoarse)
}

/// The time of day, in which records are stamped. While tests hold the clock, time since they began.
pub(crate) fn since_1970() -> Duration {
    #[cfg(feature = "testkit")]
    if let Some(time) = crate::testkit::clock::now() {
        return Duration::try_from(time).unwrap_or_default();
    }
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
