//! Troupe against real ZooKeeper and Kafka servers.
//!
//! - [`group`]: members as processes that join, leave, die and come again.
//! - [`faults`]: servers that are restarted under load.
//! - [`ensemble`]: three ZooKeeper servers that lose their leader, their quorum, or one another.
//! - [`kept`]: what stays with its member flows on through rebalances.
//! - [`identity`]: one `consumer.id`, twice.
//! - [`rebalances`], [`brokers`]: cases that people met in the field.
//! - [`listener`]: the application is asked before partitions go and before they start.
//! - [`mixed`]: one group of ours and the old Scala consumer.
//! - [`interleavings`], [`grown`]: two of these cases, at length.
//! - [`peers`]: other members that have given up or plan differently.
//! - [`systems`]: whole members in this process; the panic of each of their actors.
//! - [`handlers`], [`streams`]: how records come to their consumer, and when they count as handled.
//! - [`filters`], [`added`]: which topics, by filter or name, from the start or later.
//! - [`znodes`]: what stands in ZooKeeper, byte by byte.
//! - [`bad_input`]: what is wrong outside.
//! - [`support`]: clusters, members and the observer.
//!
//! The observer ([`support::history`]) trusts nobody: what was delivered is known from the members' output, in the
//! order in which it happened, and who owned what from ZooKeeper's own transaction log.

mod added;
mod bad_input;
mod brokers;
mod ensemble;
mod faults;
mod filters;
mod group;
mod grown;
mod handlers;
mod identity;
mod interleavings;
mod kept;
mod listener;
mod mixed;
mod peers;
mod rebalances;
mod streams;
mod support;
mod systems;
mod znodes;
