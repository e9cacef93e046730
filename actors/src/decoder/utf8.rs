use std::error::Error;

use super::{Decoder, value};
use crate::record::Record;

/// The value as text. A value that is null (a tombstone) or not UTF-8 is an error; [`Record::text`] replaces what is
/// wrong instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf8;

impl Decoder for Utf8 {
    type Output = String;

    fn decode(&self, record: &Record) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(std::str::from_utf8(value(record)?)?.to_owned())
    }
}
