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

/// The time of day: what people and brokers are told goes by it, and nothing that we decide. While tests hold the
/// clock, it is in 1970.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + since_1970()
}

/// In milliseconds since 1970, as records, nodes and status have it.
pub(crate) fn millis(time: SystemTime) -> i64 {
    let millis = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

/// The time of day, as what has passed since 1970. While tests hold the clock, what has since they began.
pub(crate) fn since_1970() -> Duration {
    #[cfg(feature = "testkit")]
    if let Some(time) = crate::testkit::clock::now() {
        return Duration::try_from(time).unwrap_or_default();
    }
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
