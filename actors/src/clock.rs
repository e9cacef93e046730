//! The clocks behind the lease. Timers ask [`tokio::time::Instant`], which a test may pause; these follow it only while
//! a test says so (feature `testkit`).

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
