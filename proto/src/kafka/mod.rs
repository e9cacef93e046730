//! The Kafka wire protocol, as far as a consumer needs it: framing, requests, responses, record batches.
//!
//! Non-flexible versions only. Everything is bounded by the frame it came in: a length in a reply never
//! reserves memory beyond the frame, and decompression stops at a limit that the caller gives.
//! Byte strings and record sets are slices of the frame, never copies.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | [`wire::Reader`] and [`wire::Writer`]: the primitive types |
//! | [`frame`] | size prefix, request header, correlation id, the [`frame::Request`] and [`frame::Response`] traits |
//! | [`error_code`] | broker error codes and what each asks of us ([`error_code::Disposition`]) |
//! | [`api_versions`], [`metadata`], [`list_offsets`], [`fetch`], [`find_coordinator`], [`offset_commit`], [`offset_fetch`] | one file per API |
//! | [`records`] | record batches (magic 2) and message sets (magic 0 and 1): lazily walked, and written |
//! | [`compression`] | gzip, snappy, lz4 and zstd into reused, bounded buffers |
//!
//! # Non-obvious
//! - The magic is looked at per batch: one reply may hold all three formats.
//! - The next fetch offset comes from a batch's last offset delta, not from its last record: compaction
//!   leaves gaps and empty batches. [`records::extent`] finds it without decoding.
//! - A cut-off last batch is normal. Bytes without one whole batch are an oversize batch
//!   ([`records::RecordSetExtent::is_oversize`]), which no refetch of the same size can cure.

pub mod api_versions;
pub mod compression;
pub mod error_code;
pub mod fetch;
pub mod find_coordinator;
pub mod frame;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_fetch;
pub mod records;
pub mod wire;

#[cfg(test)]
mod judge_tests;
