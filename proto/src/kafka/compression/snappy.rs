use super::output::Output;
use super::{Compression, CompressionError};

/// Begins a stream of xerial's Java library; two version numbers follow, which writers fill as they like.
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;

/// The densest element copies 64 bytes in 3, so a length above this is a lie that must reserve nothing.
const MOST_EXPANSION: usize = 32;

pub(super) fn decompress(input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
    if !input.starts_with(XERIAL_MAGIC) {
        return block(input, output);
    }
    let mut rest = input;
    while !rest.is_empty() {
        if rest.starts_with(XERIAL_MAGIC) {
            // streams one after the other, as xerial's own reader takes them
            rest = rest.get(XERIAL_HEADER..).ok_or_else(|| corrupt("a frame header is cut"))?;
            continue;
        }
        let (size, after) = rest.split_first_chunk().ok_or_else(|| corrupt("a block's size is cut"))?;
        let size = u32::from_be_bytes(*size) as usize;
        let one = after.get(..size).ok_or_else(|| corrupt("the last block is cut"))?;
        block(one, output)?;
        rest = &after[size..];
    }
    Ok(())
}

fn block(input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
    let length = snap::raw::decompress_len(input).map_err(corrupt)?;
    if length > input.len() * MOST_EXPANSION {
        return Err(corrupt("a block claims more than its bytes can hold"));
    }
    let too_large = output.too_large();
    let room = output.room(length)?;
    if room.len() < length {
        return Err(too_large);
    }
    let written = snap::raw::Decoder::new().decompress(input, room).map_err(corrupt)?;
    output.fill(written)
}

fn corrupt(reason: impl std::fmt::Display) -> CompressionError {
    CompressionError::corrupt(Compression::Snappy, reason)
}
