//! The Kafka wire protocol, as far as a consumer needs it: framing, requests, responses, record batches.
//!
//! Everything is bounded by the frame it came in: a length in a reply never reserves memory beyond the frame,
//! and decompression stops at a limit that the caller gives. Flexible versions (KIP-482) only where they bring
//! what a consumer needs (metadata with topic ids), or what tools show: types of groups, and groups of the new protocol.
//! Byte strings and record sets are slices of the frame, never copies. A decoded response takes at most 24 bytes per
//! byte of its frame (`tests/memory` measures it).
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | [`wire::Reader`] and [`wire::Writer`]: the primitive types |
//! | [`frame`] | size prefix, request header, correlation id, the [`frame::Request`] and [`frame::Response`] traits |
//! | [`error_code`] | broker error codes and what each asks of us ([`error_code::Disposition`]) |
//! | [`api_versions`], [`metadata`], [`list_offsets`], [`fetch`], [`find_coordinator`], [`offset_commit`], [`offset_fetch`], [`offset_for_leader_epoch`], [`list_groups`], [`describe_groups`], [`consumer_group_describe`], [`delete_groups`], [`offset_delete`], [`sasl`], [`produce`] | one file per API |
//! | [`records`] | record batches (magic 2) and message sets (magic 0 and 1): lazily walked, and written |
//! | [`offsets_topic`] | the records of `__consumer_offsets`, and where a group's lie |
//! | [`compression`] | gzip, snappy, lz4 and zstd into reused, bounded buffers |
//!
//! # Non-obvious
//! - The magic is looked at per batch: one reply may hold all three formats.
//! - The next fetch offset comes from a batch's last offset delta, not from its last record: compaction
//!   leaves gaps and empty batches. [`records::extent`] finds it without decoding.
//! - A cut-off last batch is normal. Bytes without one whole batch are an oversize batch
//!   ([`records::RecordSetExtent::is_oversize`]), which no refetch of the same size can cure.
//! - A corrupt entry ends the walk for good: what came before it has been answered, nothing after it is.
//!   [`records::RecordsError`] names it; to step over it is the caller's decision, by reading (or fetching) again
//!   from its `resume_at`.
//! - Below magic 2 the old LZ4 clients' wrong check byte is accepted, by the magic of the entry and not by the
//!   broker's version: a broker of any version may still hold such entries.

pub mod api_versions;
pub mod compression;
pub mod consumer_group_describe;
pub mod delete_groups;
pub mod describe_groups;
pub mod error_code;
pub mod fetch;
pub mod find_coordinator;
pub mod frame;
pub mod list_groups;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod offsets_topic;
pub mod produce;
pub mod records;
pub mod sasl;
pub mod wire;

#[cfg(test)]
mod judge_tests;
