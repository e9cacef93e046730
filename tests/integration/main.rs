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
//! - [`mixed_old`]: the same on brokers of 0.8.2.2.
//! - [`migration`]: the same while its offsets move from ZooKeeper to Kafka and back.
//! - [`migration_handover`]: a group goes over to Kafka's own consumer and comes back.
//! - [`interleavings`], [`grown`]: two of these cases, at length.
//! - [`peers`]: other members that have given up or plan differently.
//! - [`ends`]: stops in bad moments, and iterators that block.
//! - [`systems`]: whole members in this process; the panic of each of their actors.
//! - [`halting`]: partitions that are stopped or paused, and handlers that are stuck.
//! - [`handlers`], [`streams`]: how records come to their consumer, and when they count as handled.
//! - [`in_flight`]: several records with a handler at once.
//! - [`subscriptions`]: typed by decoder, in batches, and what becomes of records that cannot be decoded.
//! - [`commits`]: what is stored when it is asked for, and what is not.
//! - [`generations`]: brokers of every generation, and an upgrade from one to another.
//! - [`damage`]: records that cannot be read, and the way past them.
//! - [`transactions`]: what is committed, aborted and open.
//! - [`bootstrap`]: topics and leaders by `bootstrap.servers`, of brokers with and without ZooKeeper.
//! - [`fetchers`]: several connections to one broker, and those that it closes.
//! - [`oversize`], [`formats`], [`codecs`], [`bare_snappy`], [`remade`], [`registrations`], [`throttled`], [`racks`]:
//!   what brokers do and hold, case by case.
//! - [`filters`], [`added`]: which topics, by filter or name, from the start or later.
//! - [`kafka_offsets_stored`], [`kafka_offsets_coordinator`]: offsets stored in Kafka, alone and with ZooKeeper, and the
//!   broker that has them.
//! - [`offsets_topic`]: what brokers store of other groups, as Kafka's own consumer reads it.
//! - [`kafka_admin`]: brokers of each generation, asked and told outside any group.
//! - [`metrics`], [`metrics_text`]: what Prometheus reads, and how a member says that it does.
//! - [`group_view`]: the whole group, as it is shown to people.
//! - [`znodes`]: what stands in ZooKeeper, byte by byte.
//! - [`bad_input`]: what is wrong outside.
//! - [`support`]: clusters, members and the observer.
//!
//! The observer ([`support::history`]) trusts nobody: what was delivered is known from the members' output, in the
//! order in which it happened, and who owned what from ZooKeeper's own transaction log.

mod added;
mod bad_input;
mod bare_snappy;
mod bootstrap;
mod brokers;
mod codecs;
mod commits;
mod damage;
mod ends;
mod ensemble;
mod faults;
mod fetchers;
mod filters;
mod formats;
mod generations;
mod group;
mod group_view;
mod grown;
mod halting;
mod handlers;
mod identity;
mod in_flight;
mod interleavings;
mod kafka_admin;
mod kafka_offsets_coordinator;
mod kafka_offsets_stored;
mod kept;
mod listener;
mod metrics;
mod metrics_text;
mod migration;
mod migration_handover;
mod mixed;
mod mixed_old;
mod offsets_topic;
mod oversize;
mod peers;
mod racks;
mod rebalances;
mod registrations;
mod remade;
mod streams;
mod subscriptions;
mod support;
mod systems;
mod throttled;
mod transactions;
mod znodes;
