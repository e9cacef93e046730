//! The lease: until when this process may act for its ZooKeeper session.
//!
//! An ensemble expires us while a cut-off follower still answers reads, and a stopped process (SIGSTOP, a
//! suspended laptop, a paused virtual machine) learns of its expiry only after it has run on for a while. So the
//! right to hand over a record or to commit is a *deadline*, checked at each hand-over, not a message: after
//! SIGCONT the mailbox would drain first.
//!
//! * The deadline is 2/3 of the negotiated session timeout after the *send* of the last answered heartbeat, and less
//!   after a pause (`zk_session::heartbeat`). Reads never extend it.
//! * It is read against `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
//! * A late tick needs no case of its own: a heartbeat that was sent before a pause extends the deadline from its
//!   send, so after a pause longer than the lease only a heartbeat sent after it can open delivery again.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::Timespec;

use crate::clock;

/// Our number of a ZooKeeper session: one higher for each new session of this process; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionEpoch(pub u64);

/// A point in time since boot, suspended time included (`CLOCK_BOOTTIME`), in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The time now.
    pub fn now() -> Self {
        let time = clock::boot_time();
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// The time since `earlier`; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// What someone who checks a [`Lease`] for each of many records knows from the last check.
#[derive(Debug, Clone, Copy)]
pub struct LeaseCheck {
    /// The deadline that was ahead; 0 is none.
    deadline: u64,
    /// When that was.
    tick: Timespec,
}

impl Default for LeaseCheck {
    fn default() -> Self {
        Self { deadline: 0, tick: Timespec { tv_sec: 0, tv_nsec: 0 } }
    }
}

/// One shared deadline: delivery and commits are allowed before it (INV-1). Starts closed.
///
/// A check is one atomic load and one clock read; writers (one heartbeat in a sixth of the session timeout) take
/// a lock, so that a heartbeat answered late never opens a session that was closed meanwhile.
#[derive(Debug, Default)]
pub struct Lease {
    /// Nanoseconds of `CLOCK_BOOTTIME`; 0 is closed.
    deadline: AtomicU64,
    /// The session that the deadline speaks of.
    holder: AtomicU64,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    /// Sessions up to this one are over for good.
    closed: SessionEpoch,
}

impl Lease {
    /// A closed lease.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a record may be handed over or a commit sent now.
    pub fn is_live(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        deadline != 0 && BootInstant::now().0 < deadline
    }

    /// Whether `session` holds the lease now. A claim of an earlier session is not covered by the next one's lease.
    pub fn is_live_in(&self, session: SessionEpoch) -> bool {
        // deadline first, then holder: the writer stores the new holder before its deadline, so a deadline that
        // is followed by our own number was ours
        self.is_live() && self.holder.load(Ordering::Acquire) == session.0
    }

    /// [`is_live_in`](Self::is_live_in) for each of many records: reads the precise clock once per tick of the coarse
    /// one.
    ///
    /// No pause slips through, however short the tick's rest may be: while we do not run the coarse clock moves on,
    /// with every tick after SIGSTOP, and when the machine is suspended at the latest at that moment (the kernel
    /// brings it up to date before it stops it). So a check after a pause finds another tick, and reads the precise
    /// clock. What is given away is the end of the lease, by the rest of a tick: nothing against the third of the
    /// session timeout that lies behind it.
    #[inline]
    pub fn is_still_live_in(&self, session: SessionEpoch, last: &mut LeaseCheck) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        let tick = clock::tick();
        if deadline == 0 || deadline != last.deadline || tick != last.tick {
            // the tick was read first: a pause between the two counts as after this check
            if !self.is_live_in(session) {
                *last = LeaseCheck::default();
                return false;
            }
            *last = LeaseCheck { deadline, tick };
        }
        self.holder.load(Ordering::Acquire) == session.0
    }

    /// The time left; zero when closed or over.
    pub fn remaining(&self) -> Duration {
        let deadline = self.deadline.load(Ordering::Acquire);
        BootInstant(deadline).since(BootInstant::now())
    }

    /// Moves the deadline of `session` to `until` if that is later, and says whether the session may still do so.
    /// A closed session, or one older than the holder, changes nothing.
    pub fn extend_to(&self, session: SessionEpoch, until: BootInstant) -> bool {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = self.holder.load(Ordering::Acquire);
        if session <= writer.closed || session.0 < holder {
            return false;
        }
        if session.0 > holder {
            // the old deadline must not be read together with the new holder
            self.deadline.store(0, Ordering::Release);
            self.holder.store(session.0, Ordering::Release);
            self.deadline.store(until.0, Ordering::Release);
        } else {
            self.deadline.fetch_max(until.0, Ordering::AcqRel);
        }
        true
    }

    /// Ends `session` and all before it for good: delivery stops at the next check. A newer session's deadline
    /// stays.
    pub fn close(&self, session: SessionEpoch) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.closed = writer.closed.max(session);
        if self.holder.load(Ordering::Acquire) <= session.0 {
            self.deadline.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn starts_closed_and_lives_until_its_deadline() {
        let lease = Lease::new();
        assert!(!lease.is_live());
        assert_eq!(lease.remaining(), Duration::ZERO);
        assert!(lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR));
        assert!(lease.is_live());
        assert!(lease.remaining() > HOUR / 2);
    }

    #[test]
    fn a_heartbeat_sent_before_a_long_pause_opens_nothing() {
        let lease = Lease::new();
        let sent_long_ago = BootInstant(1);
        assert!(lease.extend_to(SessionEpoch(1), sent_long_ago + Duration::from_nanos(1)));
        assert!(!lease.is_live());
    }

    #[test]
    fn a_late_heartbeat_does_not_open_a_closed_session() {
        let lease = Lease::new();
        lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR);
        lease.close(SessionEpoch(1));
        assert!(!lease.is_live());
        assert!(!lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR));
        assert!(!lease.is_live());
        assert!(lease.extend_to(SessionEpoch(2), BootInstant::now() + HOUR));
        assert!(lease.is_live());
    }

    #[test]
    fn an_old_session_neither_closes_nor_extends_a_newer_one() {
        let lease = Lease::new();
        lease.extend_to(SessionEpoch(2), BootInstant::now() + HOUR);
        lease.close(SessionEpoch(1));
        assert!(lease.is_live());
        assert!(!lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR * 2));
        assert!(lease.remaining() <= HOUR);
    }

    #[test]
    fn a_shorter_extension_does_not_shorten_the_lease() {
        let lease = Lease::new();
        lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR);
        lease.extend_to(SessionEpoch(1), BootInstant::now());
        assert!(lease.is_live());
    }

    #[test]
    fn a_repeated_check_sees_the_end_and_a_change_of_session_at_once() {
        let (lease, mut last) = (Lease::new(), LeaseCheck::default());
        let mut is_live = |lease: &Lease, session| lease.is_still_live_in(SessionEpoch(session), &mut last);
        assert!(!is_live(&lease, 1));
        lease.extend_to(SessionEpoch(1), BootInstant::now() + HOUR);
        assert!(is_live(&lease, 1) && is_live(&lease, 1));
        lease.close(SessionEpoch(1));
        assert!(!is_live(&lease, 1));
        lease.extend_to(SessionEpoch(2), BootInstant::now() + HOUR);
        assert!(is_live(&lease, 2) && !is_live(&lease, 1));
        // of a heartbeat that was sent before a long pause
        lease.extend_to(SessionEpoch(3), BootInstant(1));
        assert!(!is_live(&lease, 3) && !is_live(&lease, 2));
    }
}
