//! A clock that stands, which leases follow.

use std::cell::Cell;

use actix::System;
use rustix::time::Timespec;
use tokio::time::Instant;

thread_local! {
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work` to its end in this thread, as an actix system of its own, on a clock of tokio's that stands while
/// anything can run. Leases follow that clock. There are no sockets.
pub fn on_paused_clock<T>(work: impl Future<Output = T>) -> T {
    let system = System::with_tokio_rt(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("a runtime without sockets asks the machine for nothing")
    });
    system.block_on(async {
        let _clock = FollowTokio::start();
        work.await
    })
}

/// While it lives, leases on this thread follow tokio's clock instead of the machine's.
struct FollowTokio;

impl FollowTokio {
    /// From now on, by the runtime in which it is called.
    fn start() -> Self {
        SINCE.set(Some(Instant::now()));
        Self
    }
}

impl Drop for FollowTokio {
    fn drop(&mut self) {
        SINCE.set(None);
    }
}

/// The time of the clock that is followed, if any is. It begins at one second: 0 is "never" for a lease.
pub(crate) fn now() -> Option<Timespec> {
    // first: it is asked before each record, also where no test holds the clock
    let since = SINCE.get()?;
    let passed = Instant::now().duration_since(since);
    let seconds = i64::try_from(passed.as_secs()).unwrap_or(i64::MAX - 1) + 1;
    Some(Timespec { tv_sec: seconds, tv_nsec: passed.subsec_nanos().into() })
}
