//! What a consumer group keeps in ZooKeeper, as pure functions of paths and bytes.
//!
//! | module | node or frame |
//! |---|---|
//! | [`connect_string`] | `zookeeper.connect`: hosts and chroot |
//! | [`paths`] | `/consumers/<group>/{ids,owners,offsets}`, `/brokers/{ids,topics}`, relative to the chroot |
//! | [`registration`] | `/consumers/<group>/ids/<consumer>`: what a member subscribes to |
//! | [`topic_filter`] | the white and black lists in a registration |
//! | [`consumer_id`] | names of members and of their threads, and the order that assignment depends on |
//! | [`offset`] | `/consumers/<group>/offsets/<topic>/<partition>` |
//! | [`offsets_file`] | the file that the old tools export offsets to and import them from |
//! | [`broker`], [`topic`] | `/brokers/ids/<id>`, `/brokers/topics/<topic>` |
//! | [`topic_ids`] | `/consumers/<group>/topics/<topic>`: Troupe's own, which the old consumer passes over |
//! | [`connect_request`] | the first frames of a ZooKeeper connection, to learn the negotiated timeout |
//!
//! Everything else here is a contract with the old Scala consumer: one group may mix both.

pub mod broker;
pub mod connect_request;
pub mod connect_string;
pub mod consumer_id;
pub mod offset;
pub mod offsets_file;
pub mod paths;
pub mod registration;
pub mod topic;
pub mod topic_filter;
pub mod topic_ids;

pub use consumer_id::{ConsumerId, ConsumerThreadId};
