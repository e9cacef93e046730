//! The group protocol itself: what every member must compute alike from the same znodes, and what one
//! member does about it.
//!
//! - [`GroupSnapshot`]: what one read of the group's znodes said.
//! - [`Strategy`]: the assignment rules, equal to the Scala consumer's answers (wire contract).
//! - [`Machine`]: the rebalance, decided as data: inputs in, effects out, no I/O.
//! - [`PeerCheck`]: which other members have given up or plan differently, by the owner nodes.
//! - [`InFlight`]: how many records a handler has at once; [`OffsetTracker`]: what may be acknowledged meanwhile.
//! - [`commit`]: the rules by which an offset node may be written.
//! - [`verify`]: whether a group is as it should be, from two looks at it.
//! - [`offsets_copy`]: what a group's offsets become in one store when they are copied there from the other.
//! - [`reset`]: which offset a group is to begin at when somebody says so by hand.
//! - [`FailurePolicy`]: what becomes of a record that could not be handled, or not decoded.

pub mod assignor;
pub mod commit;
mod failure;
#[cfg(test)]
mod golden;
mod in_flight;
mod machine;
pub mod offsets_copy;
pub mod peers;
pub mod reset;
mod snapshot;
pub mod verify;

pub use assignor::Strategy;
pub use failure::{Decision, FailurePolicy, Then};
pub use in_flight::{InFlight, Lanes, OffsetTracker};
pub use machine::{
    ClaimAnswer, Effect, Generation, Input, Machine, Owner, Phase, Progress, Reason, SessionNumber, Settings,
};
pub use peers::PeerCheck;
pub use snapshot::{GroupSnapshot, Member};
