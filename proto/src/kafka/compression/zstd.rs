use super::output::Output;
use super::{Compression, CompressionError};
use std::fmt;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, decompress_bound, get_error_name};

const TOO_SMALL: usize = (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg();

/// The decoder, made at first use and used again: some 100 KiB outside of Rust's allocator.
///
/// It decodes in one call, so that the output is its window: a stream decoder would reserve the window that a frame
/// names, up to 128 MiB and more, for whatever the frame holds.
#[derive(Default)]
pub(super) struct State {
    decoder: Option<DCtx<'static>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("ready", &self.decoder.is_some()).finish()
    }
}

impl State {
    /// Decompresses all frames of `input`; none needs to tell its size.
    pub(super) fn decompress(&mut self, input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
        // counts blocks where a frame does not tell its size
        let bound = decompress_bound(input).map_err(corrupt)?;
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let too_large = output.too_large();
        let room = output.room(bound)?;
        let capped = room.len() < bound;
        match self.decoder.get_or_insert_default().decompress(room, input) {
            Ok(written) => output.fill(written),
            Err(TOO_SMALL) if capped => Err(too_large),
            Err(code) => Err(corrupt(code)),
        }
    }

    /// Bytes of the decoder.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.decoder.as_ref().map_or(0, DCtx::sizeof)
    }
}

fn corrupt(code: usize) -> CompressionError {
    CompressionError::corrupt(Compression::Zstd, get_error_name(code))
}
