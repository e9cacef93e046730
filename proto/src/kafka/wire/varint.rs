//! Variable-length integers: zigzag in records of magic 2, unsigned in flexible messages.

/// Reads a varint at `at`; answers the value and the position after it, or `None` if it is cut or overflows.
///
/// One and two bytes are the common case (lengths and deltas of small records) and stay inline.
#[inline(always)]
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    if let Some((value, after)) = short(bytes, at) {
        return Some((zigzag32(value), after));
    }
    let (value, after) = long(bytes, at)?;
    Some((zigzag32(u32::try_from(value).ok()?), after))
}

/// Reads a varlong at `at`, like [`varint`] but of 64 bits.
#[inline(always)]
pub(crate) fn varlong(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    if let Some((value, after)) = short(bytes, at) {
        return Some((zigzag32(value).into(), after));
    }
    let (value, after) = long(bytes, at)?;
    Some((zigzag64(value), after))
}

/// Reads an unsigned varint of 32 bits at `at`, like [`varint`].
pub(crate) fn unsigned(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let (value, after) = long(bytes, at)?;
    Some((u32::try_from(value).ok()?, after))
}

#[inline(always)]
fn short(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.get(at)?);
    if first < 0x80 {
        return Some((first, at + 1));
    }
    let second = u32::from(*bytes.get(at + 1)?);
    (second < 0x80).then_some((second << 7 | first & 0x7f, at + 2))
}

#[inline(never)]
fn long(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut shift = 0;
    for (index, byte) in bytes.get(at..)?.iter().enumerate().take(10) {
        if shift == 63 && *byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some((value, at + index + 1));
        }
        shift += 7;
    }
    None
}

#[inline(always)]
fn zigzag32(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

#[inline(always)]
fn zigzag64(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// Writes `value` as a zigzag varint; a varint and a varlong of the same value are the same bytes.
pub(crate) fn put(out: &mut impl bytes::BufMut, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes `raw` as an unsigned varint.
pub(crate) fn put_unsigned(out: &mut impl bytes::BufMut, mut raw: u64) {
    while raw >= 0x80 {
        out.put_u8(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.put_u8(raw as u8);
}
