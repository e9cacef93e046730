//! The LZ4 frame format, parsed here so that blocks decompress straight into the reused output.

use super::output::Output;
use super::{Compression, CompressionError, Lz4Header};
use lz4_flex::block::decompress_into_with_dict;
use twox_hash::XxHash32;

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
/// Top bit of a block's size: the block is stored, not compressed.
const STORED: u32 = 1 << 31;
/// Blocks that are not independent may refer to this much of what came before them.
const WINDOW: usize = 64 << 10;
/// A compressed byte stands for at most 255 bytes: bounds what a small block makes us reserve.
const MOST_EXPANSION: usize = 255;

pub(super) fn decompress(
    mut input: &[u8],
    header: Lz4Header,
    output: &mut Output,
) -> Result<(), CompressionError> {
    while !input.is_empty() {
        let frame;
        (frame, input) = Descriptor::parse(input, header)?;
        input = blocks(&frame, input, output)?;
    }
    Ok(())
}

struct Descriptor {
    independent: bool,
    block_checksum: bool,
    content_checksum: bool,
    block_max: usize,
}

impl Descriptor {
    fn parse(frame: &[u8], header: Lz4Header) -> Result<(Self, &[u8]), CompressionError> {
        let after_magic = frame.strip_prefix(&MAGIC).ok_or_else(|| corrupt("no frame magic"))?;
        let [flags, sizes, ..] = *after_magic else { return Err(cut()) };
        if flags >> 6 != 1 {
            return Err(corrupt(format_args!("frame version {}", flags >> 6)));
        }
        if flags & 1 != 0 {
            return Err(corrupt("a dictionary is asked for"));
        }
        let length = if flags & 0x08 != 0 { 10 } else { 2 }; // with or without content size
        let check = *after_magic.get(length).ok_or_else(cut)?;
        let standard = check == check_byte(&after_magic[..length]);
        let legacy = header == Lz4Header::KafkaLegacy && check == check_byte(&frame[..4 + length]);
        if !standard && !legacy {
            return Err(corrupt(format_args!("header check byte {check:#04x} is wrong")));
        }
        let block_max = match sizes >> 4 & 7 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            size => return Err(corrupt(format_args!("block size code {size}"))),
        };
        let descriptor = Self {
            independent: flags & 0x20 != 0,
            block_checksum: flags & 0x10 != 0,
            content_checksum: flags & 0x04 != 0,
            block_max,
        };
        Ok((descriptor, &after_magic[length + 1..]))
    }
}

fn check_byte(descriptor: &[u8]) -> u8 {
    (XxHash32::oneshot(0, descriptor) >> 8) as u8
}

fn blocks<'a>(
    frame: &Descriptor,
    mut input: &'a [u8],
    output: &mut Output,
) -> Result<&'a [u8], CompressionError> {
    loop {
        let word;
        (word, input) = split_word(input)?;
        if word == 0 {
            // the content's checksum is left to the batch's own
            return if frame.content_checksum { Ok(split_word(input)?.1) } else { Ok(input) };
        }
        let size = (word & !STORED) as usize;
        if size > frame.block_max {
            return Err(corrupt(format_args!("a block of {size} bytes exceeds the frame's maximum")));
        }
        let block = input.get(..size).ok_or_else(cut)?;
        input = &input[size..];
        if frame.block_checksum {
            let stored;
            (stored, input) = split_word(input)?;
            if stored != XxHash32::oneshot(0, block) {
                return Err(corrupt("a block's checksum is wrong"));
            }
        }
        one_block(frame, block, word & STORED != 0, output)?;
    }
}

fn one_block(
    frame: &Descriptor,
    block: &[u8],
    stored: bool,
    output: &mut Output,
) -> Result<(), CompressionError> {
    let too_large = output.too_large();
    if stored {
        let room = output.room(block.len())?;
        room.get_mut(..block.len()).ok_or(too_large)?.copy_from_slice(block);
        return output.fill(block.len());
    }
    let wanted = frame.block_max.min(block.len().saturating_mul(MOST_EXPANSION));
    let (before, room) = output.split_room(wanted)?;
    let window = if frame.independent { &[] } else { &before[before.len().saturating_sub(WINDOW)..] };
    let capped = room.len() < wanted;
    match decompress_into_with_dict(block, room, window) {
        Ok(written) => output.fill(written),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if capped => Err(too_large),
        Err(reason) => Err(corrupt(reason)),
    }
}

fn split_word(input: &[u8]) -> Result<(u32, &[u8]), CompressionError> {
    let (word, rest) = input.split_first_chunk().ok_or_else(cut)?;
    Ok((u32::from_le_bytes(*word), rest))
}

fn cut() -> CompressionError {
    corrupt("the frame is cut")
}

fn corrupt(reason: impl std::fmt::Display) -> CompressionError {
    CompressionError::corrupt(Compression::Lz4, reason)
}
