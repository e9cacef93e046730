//! When a member is killed, drawn from a seed.

use std::time::Duration;

use fastrand::Rng;

/// A moment in a member's life.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// Once it has handled so many records.
    Handled(usize),
    /// While it makes this one of its commits.
    Commit(usize),
    /// So long after its start: it joins, waits for those before it, claims, begins.
    Start(Duration),
    /// So long after another has joined it, or it another.
    Rebalance(Duration),
}

/// What comes next: how many members there are, and which of them is killed when.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// One, or two of which one lives on.
    pub members: usize,
    /// Of those that run, the oldest first.
    pub victim: usize,
    pub moment: Moment,
}

impl Kill {
    /// With so many records that come before it.
    pub fn draw(rng: &mut Rng, records: usize) -> Self {
        let members = rng.usize(1..=2);
        let up_to = |millis, rng: &mut Rng| Duration::from_millis(rng.u64(0..millis));
        let moment = match rng.u8(0..8) {
            0..3 => Moment::Handled(rng.usize(1..records / members)),
            3..6 => Moment::Commit(rng.usize(1..=records / 100 / members)),
            6 => Moment::Start(up_to(6000, rng)),
            _ => Moment::Rebalance(up_to(1000, rng)),
        };
        let members = if matches!(moment, Moment::Rebalance(_)) { 2 } else { members };
        Self { members, victim: rng.usize(0..members), moment }
    }
}
