use super::raw_record::{Range32, RawRecord, header};
use super::{RecordsError, RecordsProblem, legacy};
use crate::kafka::wire::varint::{varint, varlong};
use bytes::Bytes;

/// How the records lie in the payload.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Records of magic 2.
    Batch { base_timestamp: i64, log_append_time: Option<i64> },
    /// Messages of magic 0 or 1, whose stored offsets are `shift` below the real ones.
    Messages { shift: i64, log_append_time: Option<i64>, check_crcs: bool },
}

/// Walks the records of one batch: no allocation, nothing decoded ahead. Owns its bytes, so that an actor may keep it.
#[derive(Debug, Clone)]
pub struct RecordCursor {
    payload: Bytes,
    at: usize,
    left: u32,
    from: i64,
    position: i64,
    base_offset: i64,
    next_offset: i64,
    form: Form,
}

type Walked = Result<RawRecord, RecordsError>;

impl RecordCursor {
    pub(super) fn new(payload: Bytes, count: u32, form: Form, base_offset: i64, next_offset: i64) -> Self {
        let (at, from, position) = (0, i64::MIN, base_offset);
        Self { payload, at, left: count, from, position, base_offset, next_offset, form }
    }

    /// Passes over records below `offset`, which costs a fraction of reading them.
    pub fn from(mut self, offset: i64) -> Self {
        self.skip_below(offset);
        self
    }

    /// Like [`Self::from`], on a cursor that is under way.
    pub fn skip_below(&mut self, offset: i64) {
        self.from = offset;
        self.position = self.position.max(offset);
    }

    /// The payload that the records point into.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Records not walked yet, with those that will be passed over.
    pub fn remaining(&self) -> u32 {
        self.left
    }

    /// The offset after the last record walked; at the end, the one after the whole batch.
    pub fn position(&self) -> i64 {
        if self.left == 0 { self.position.max(self.next_offset) } else { self.position }
    }

    /// The next record; `None` at the end, for good, and after an error.
    ///
    /// Not an [`Iterator`], since a caller needs the payload beside the records.
    #[expect(clippy::should_implement_trait, reason = "see above")]
    #[inline]
    pub fn next(&mut self) -> Option<Walked> {
        // each form builds its answer in place: merging the two costs half as much again as the walk itself
        match self.form {
            Form::Batch { base_timestamp, log_append_time } => {
                self.next_in_batch(base_timestamp, log_append_time)
            }
            Form::Messages { shift, log_append_time, check_crcs } => {
                self.next_message(shift, log_append_time, check_crcs)
            }
        }
    }

    /// Like [`Self::next`], for the usual case only: `None`, and nothing taken, unless the next record is one of magic
    /// 2, wanted and well formed; then [`Self::next`] tells what there is.
    ///
    /// With nothing else to answer, the record stays in registers until the caller writes it where it goes.
    #[inline(always)]
    pub fn next_usual(&mut self) -> Option<RawRecord> {
        let Form::Batch { base_timestamp, log_append_time } = self.form else { return None };
        let left = self.left.checked_sub(1)?;
        let bytes: &[u8] = &self.payload;
        let (start, end) = bounds(bytes, self.at)?;
        let bytes = &bytes[..end];
        let (timestamp_delta, at) = varlong(bytes, start + 1)?;
        let (offset_delta, at) = varint(bytes, at)?;
        let offset = self.base_offset.wrapping_add(offset_delta.into());
        if offset < self.base_offset.max(self.from) || offset >= self.next_offset {
            return None;
        }
        let (key, at) = field(bytes, at)?;
        let (value, at) = field(bytes, at)?;
        let (headers, header_count) = headers(bytes, at)?;
        (self.left, self.at, self.position) = (left, end, offset.wrapping_add(1));
        let timestamp = log_append_time.unwrap_or(base_timestamp.wrapping_add(timestamp_delta));
        Some(RawRecord { offset, timestamp, key, value, headers, header_count })
    }

    #[inline(always)]
    fn next_in_batch(&mut self, base_timestamp: i64, log_append_time: Option<i64>) -> Option<Walked> {
        while self.left > 0 {
            self.left -= 1;
            let bytes: &[u8] = &self.payload;
            let Some((start, end)) = bounds(bytes, self.at) else { return self.bad("it is cut") };
            let bytes = &bytes[..end];
            // past the attributes, which no version uses
            let Some((timestamp_delta, at)) = varlong(bytes, start + 1) else {
                return self.bad("its timestamp is cut");
            };
            let Some((offset_delta, at)) = varint(bytes, at) else { return self.bad("its offset is cut") };
            let offset = self.base_offset.wrapping_add(offset_delta.into());
            if offset < self.base_offset || offset >= self.next_offset {
                return self.bad("its offset is outside its batch");
            }
            if offset < self.from {
                self.at = end;
                continue;
            }
            let Some((key, at)) = field(bytes, at) else { return self.bad("its key is cut") };
            let Some((value, at)) = field(bytes, at) else { return self.bad("its value is cut") };
            let Some((headers, header_count)) = headers(bytes, at) else {
                return self.bad("its headers do not fill it");
            };
            self.at = end;
            self.position = offset.wrapping_add(1);
            let timestamp = log_append_time.unwrap_or(base_timestamp.wrapping_add(timestamp_delta));
            return Some(Ok(RawRecord { offset, timestamp, key, value, headers, header_count }));
        }
        self.end()
    }

    fn next_message(&mut self, shift: i64, log_append_time: Option<i64>, check_crcs: bool) -> Option<Walked> {
        while self.left > 0 {
            self.left -= 1;
            let at = self.at;
            let message = match legacy::message(&self.payload, at) {
                Ok(message) => message,
                Err(what) => return self.bad(what),
            };
            self.at = message.end;
            let offset = message.offset.wrapping_add(shift);
            if offset < self.from {
                continue;
            }
            self.position = offset;
            if offset >= self.next_offset {
                return self.bad("its offset is outside its set");
            }
            if check_crcs && let Err(problem) = legacy::check(&self.payload, at, message.end) {
                return self.fail(problem);
            }
            if message.attributes & 7 != 0 {
                return self.bad("a wrapper within a wrapper");
            }
            self.position = offset.wrapping_add(1);
            return Some(Ok(message.record(offset, log_append_time)));
        }
        self.end()
    }

    fn end(&mut self) -> Option<Walked> {
        if self.at < self.payload.len() { self.bad("bytes follow the last one") } else { None }
    }

    #[cold]
    fn bad(&mut self, what: &'static str) -> Option<Walked> {
        self.fail(RecordsProblem::Record(what))
    }

    #[cold]
    fn fail(&mut self, problem: RecordsProblem) -> Option<Walked> {
        (self.left, self.at) = (0, self.payload.len());
        // single messages can be stepped over, but within a batch the next record is found only through this one
        let resume_at = match self.form {
            Form::Batch { .. } => self.next_offset,
            Form::Messages { .. } => self.position.saturating_add(1),
        };
        Some(Err(RecordsError::new(self.position, resume_at, problem)))
    }
}

/// Reads a record's length; answers where the record starts and ends.
#[inline(always)]
fn bounds(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (length, start) = varint(bytes, at)?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then_some((start, end))
}

/// Reads a length (-1 for null) and the range after it; answers it and the position after that.
#[inline(always)]
fn field(bytes: &[u8], at: usize) -> Option<(Option<Range32>, usize)> {
    let (length, start) = varint(bytes, at)?;
    if length == -1 {
        return Some((None, start));
    }
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    if end > bytes.len() {
        return None;
    }
    Some((Some(Range32::new(start, end)?), end))
}

/// Checks that the headers fill the record's bytes exactly; answers where they lie and how many they are.
#[inline(always)]
fn headers(bytes: &[u8], at: usize) -> Option<(Option<Range32>, u32)> {
    let (count, at) = varint(bytes, at)?;
    if count == 0 {
        return (at == bytes.len()).then_some((None, 0));
    }
    let count = u32::try_from(count).ok()?;
    let mut end = at;
    for _ in 0..count {
        (_, end) = header(bytes, end)?;
    }
    (end == bytes.len()).then(|| (Range32::new(at, end), count))
}
