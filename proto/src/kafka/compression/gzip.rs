use super::output::Output;
use super::{Compression, CompressionError};
use flate2::bufread::MultiGzDecoder;
use std::io::Read;

/// The most that a byte of DEFLATE stands for.
const MOST_EXPANSION: usize = 1032;

pub(super) fn decompress(input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
    let mut decoder = MultiGzDecoder::new(input);
    let size = last_size(input).min(input.len().saturating_mul(MOST_EXPANSION));
    loop {
        // one more, to see the end without growing
        let room = output.growing_room(size + 1)?;
        let read = decoder.read(room).map_err(|e| CompressionError::corrupt(Compression::Gzip, e))?;
        if read == 0 {
            return Ok(());
        }
        output.fill(read)?;
    }
}

/// What the last member's trailer says, which is the whole for the one member that Kafka's clients write.
fn last_size(input: &[u8]) -> usize {
    input.last_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize)
}
