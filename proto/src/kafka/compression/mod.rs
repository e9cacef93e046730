//! Decompression of record batches into bounded, reused buffers.
//!
//! Each codec is a crate feature of its own name, on by default; without it its batches are an error that says so.

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg_attr(
    not(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd")),
    allow(dead_code, reason = "each codec uses a part of it")
)]
mod output;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

use bytes::Bytes;
use output::{Output, Pool};
use std::fmt;

/// Default bound of one batch's decompressed size: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// A batch's codec, as its attributes name it (Kafka property `compression.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not compressed.
    None,
    /// RFC 1952, one or more members.
    Gzip,
    /// Framed as by xerial's Java library, or one bare block.
    Snappy,
    /// LZ4 frame format.
    Lz4,
    /// RFC 8878, one or more frames; only in magic 2, and asked for with Fetch 10 or later.
    Zstd,
}

impl Compression {
    /// The codec in the low three bits of a batch's attributes.
    pub const fn from_attributes(attributes: i16) -> Result<Self, CompressionError> {
        match attributes & 7 {
            0 => Ok(Self::None),
            1 => Ok(Self::Gzip),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd),
            other => Err(CompressionError::UnknownCodec(other)),
        }
    }

    /// The codec's number, for a batch's attributes.
    pub const fn attribute(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

/// Why a batch could not be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// A codec number that Kafka does not define.
    #[error("codec number {0} is unknown")]
    UnknownCodec(i16),
    /// This build leaves the codec out.
    #[error("codec {0} is not built in: enable the crate feature `{0}`")]
    NotBuilt(Compression),
    /// The output would exceed the limit.
    #[error("{codec} data decompresses to more than the limit of {limit} bytes")]
    TooLarge {
        /// The codec.
        codec: Compression,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The data is not what the codec writes.
    #[error("corrupt {codec} data: {reason}")]
    Corrupt {
        /// The codec.
        codec: Compression,
        /// What the codec says.
        reason: String,
    },
}

impl CompressionError {
    #[cfg_attr(
        not(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd")),
        allow(dead_code, reason = "only the codecs use it")
    )]
    fn corrupt(codec: Compression, reason: impl fmt::Display) -> Self {
        Self::Corrupt { codec, reason: reason.to_string() }
    }
}

/// Which check byte an LZ4 frame header may carry: Kafka's clients computed it wrongly for magic 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lz4Header {
    /// As the format says (magic 2).
    Standard,
    /// As the format says, or over the frame's magic too (KAFKA-3160; magic 0 and 1).
    KafkaLegacy,
}

/// Decompresses batches one after the other, with buffers and codec state used again.
///
/// An output buffer is used again once every slice of it is dropped: drop a batch and its records before decoding
/// the next to have one buffer do for all.
#[derive(Debug)]
pub struct Decompressor {
    limit: usize,
    pool: Pool,
    #[cfg(feature = "zstd")]
    zstd: zstd::State,
}

impl Default for Decompressor {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Decompressor {
    /// No batch may come out larger than `limit` bytes, of at most 2 GiB. An output that grows is held twice while it
    /// is copied, so that memory stays below twice the limit.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.min(i32::MAX as usize),
            pool: Pool::default(),
            #[cfg(feature = "zstd")]
            zstd: zstd::State::default(),
        }
    }

    /// Decompresses `input`; without a codec it is answered as it is.
    pub fn decompress(
        &mut self,
        codec: Compression,
        input: &Bytes,
        lz4_header: Lz4Header,
    ) -> Result<Bytes, CompressionError> {
        if codec == Compression::None || input.is_empty() {
            return Ok(input.clone());
        }
        let mut output = Output::new(codec, self.pool.take(), self.limit);
        let outcome = self.run(codec, input, lz4_header, &mut output);
        let decompressed = self.pool.keep(output);
        outcome.map(|()| decompressed)
    }

    #[allow(unused_variables, reason = "without codecs there is nothing to run")]
    fn run(
        &mut self,
        codec: Compression,
        input: &[u8],
        lz4_header: Lz4Header,
        output: &mut Output,
    ) -> Result<(), CompressionError> {
        match codec {
            #[cfg(feature = "gzip")]
            Compression::Gzip => gzip::decompress(input, output),
            #[cfg(feature = "snappy")]
            Compression::Snappy => snappy::decompress(input, output),
            #[cfg(feature = "lz4")]
            Compression::Lz4 => lz4::decompress(input, lz4_header, output),
            #[cfg(feature = "zstd")]
            Compression::Zstd => self.zstd.decompress(input, output),
            #[allow(unreachable_patterns, reason = "reached when a codec is left out")]
            other => Err(CompressionError::NotBuilt(other)),
        }
    }
}

#[cfg(all(test, feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod tests;

#[cfg(all(test, not(feature = "zstd")))]
mod without_zstd {
    use super::*;

    #[test]
    fn a_codec_that_is_left_out_is_named() {
        let input = Bytes::from_static(b"any");
        let error = Decompressor::default().decompress(Compression::Zstd, &input, Lz4Header::Standard);
        assert_eq!(
            error.unwrap_err().to_string(),
            "codec zstd is not built in: enable the crate feature `zstd`"
        );
    }
}
