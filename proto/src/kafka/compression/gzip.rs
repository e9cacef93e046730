use super::output::Output;
use super::{Compression, CompressionError};
use flate2::bufread::MultiGzDecoder;
use std::io::Read;

pub(super) fn decompress(input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
    let mut decoder = MultiGzDecoder::new(input);
    loop {
        let room = output.growing_room(2 * input.len())?;
        let read = decoder.read(room).map_err(|e| CompressionError::corrupt(Compression::Gzip, e))?;
        if read == 0 {
            return Ok(());
        }
        output.fill(read)?;
    }
}
