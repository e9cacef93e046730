use super::output::Output;
use super::{Compression, CompressionError};
use std::fmt;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// Frames with a larger window (log2 of bytes) are refused: Kafka's writers stay far below 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;

/// The decoder, made at first use and used again.
#[derive(Default)]
pub(super) struct State {
    decoder: Option<Decoder<'static>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("ready", &self.decoder.is_some()).finish()
    }
}

impl State {
    /// Decompresses all frames of `input`; none needs to tell its size.
    pub(super) fn decompress(&mut self, input: &[u8], output: &mut Output) -> Result<(), CompressionError> {
        let decoder = self.ready().map_err(corrupt)?;
        let mut source = InBuffer::around(input);
        loop {
            let room = output.growing_room(4 * input.len())?;
            let capacity = room.len();
            let mut sink = OutBuffer::around(room);
            let wanted = decoder.run(&mut source, &mut sink).map_err(corrupt)?;
            let written = sink.pos();
            output.fill(written)?;
            match (source.pos() == input.len(), wanted) {
                (true, 0) => return Ok(()),
                (true, _) if written < capacity => return Err(corrupt("the last frame is cut")),
                _ => {}
            }
        }
    }

    fn ready(&mut self) -> std::io::Result<&mut Decoder<'static>> {
        if self.decoder.is_none() {
            let mut decoder = Decoder::new()?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
            self.decoder = Some(decoder);
        }
        let decoder = self.decoder.as_mut().ok_or(std::io::ErrorKind::NotFound)?;
        decoder.reinit()?;
        Ok(decoder)
    }
}

fn corrupt(reason: impl fmt::Display) -> CompressionError {
    CompressionError::corrupt(Compression::Zstd, reason)
}
