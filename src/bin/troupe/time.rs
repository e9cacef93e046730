//! Times as people write them, and as brokers count them: milliseconds since 1970.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// By the clock of this machine.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// So long ago; 1970 at the earliest, as [`parse`].
pub fn before_now(age: Duration) -> i64 {
    now_ms().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)).max(0)
}

/// In UTC, such as `2026-11-30T16:00:00Z`; none beyond the year 9999.
pub fn text(millis: i64) -> Option<String> {
    Some(Timestamp::from_millisecond(millis).ok()?.to_string())
}

/// Reads one. Without an offset from UTC it is UTC, as it was for Kafka's own tool. What is before 1970 is the beginning
/// of it: no record is older, and to brokers -1 is the end of a log and -2 its start.
pub fn parse(text: &str) -> Result<i64, String> {
    read(text).map(|millis| millis.max(0))
}

fn read(text: &str) -> Result<i64, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    // a zone's name without an offset would be passed over
    let local = if text.contains('[') { None } else { text.parse::<DateTime>().ok() };
    let time = local.and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    time.map(Timestamp::as_millisecond)
        .ok_or_else(|| "not a time like 2026-11-30T16:00:00.000 or 2026-11-30T17:00:00+01:00".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_age_is_before_1970() {
        assert_eq!(before_now(Duration::from_millis(now_ms().unsigned_abs() + 60_000)), 0);
        assert_eq!(before_now(Duration::MAX), 0);
    }

    #[test]
    fn a_time_is_utc_unless_it_names_its_offset() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000", Ok(0)),
            ("1970-01-01T00:00:01.5", Ok(1500)),
            ("1970-01-02", Ok(86_400_000)),
            ("1970-01-01T00:00:00Z", Ok(0)),
            ("1970-01-01T01:00:00.000+01:00", Ok(0)),
            ("1970-01-01T01:00:00.000+0100", Ok(0)),
            ("1970-01-01T01:00:00.000+01", Ok(0)),
            ("1969-12-31T19:00:00.000-05:00", Ok(0)),
            ("1969-12-31T23:59:59.999", Ok(0)),
            ("1969-12-31T23:59:59.998Z", Ok(0)),
            ("1970-01-01T00:30:00+01:00", Ok(0)),
            ("0001-01-01", Ok(0)),
            ("1970-01-01T00:00:00[Europe/Berlin]", Err(())),
            ("yesterday", Err(())),
            ("", Err(())),
            ("1970-13-01T00:00:00", Err(())),
            ("1970-01-01T25:00:00Z", Err(())),
        ] {
            assert_eq!(parse(text).map_err(drop), expected, "{text}");
        }
    }
}
