//! Where to start without a valid committed offset.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::iso_duration;

const BY_DURATION: &str = "by_duration:";
const TO_TIME: &str = "to_time:";

/// Where to start without a valid committed offset: `auto.offset.reset`, `troupe.new.partitions.reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OffsetReset {
    /// `smallest` (or `earliest`): at the first record still stored. Nothing is missed, old records may come again.
    Smallest,
    /// `largest` (or `latest`): after the last record. What was written before is missed.
    Largest,
    /// `none`: do not start; report the partition instead. Troupe's own, the old consumer refuses it.
    None,
    /// `by_duration:<ISO-8601 duration>`, as `by_duration:PT6H`: at the first record that is at most that old
    /// (KIP-1106); after the last one if none is. See [`ToTime`](Self::ToTime) for brokers before 0.10.1.
    ByDuration(Duration),
    /// `to_time:<ms since 1970>`: at the first record of that time or younger; after the last one if none is. Brokers
    /// before 0.10.1 know the time of log segments only: from them it is where a segment starts, at or before that
    /// record. Troupe's own.
    ToTime(i64),
}

impl fmt::Display for OffsetReset {
    /// As in the properties.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smallest => f.write_str("smallest"),
            Self::Largest => f.write_str("largest"),
            Self::None => f.write_str("none"),
            Self::ByDuration(age) => write!(f, "{BY_DURATION}{}", iso_duration::Iso(*age)),
            Self::ToTime(millis) => write!(f, "{TO_TIME}{millis}"),
        }
    }
}

impl FromStr for OffsetReset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(age) = text.strip_prefix(BY_DURATION) {
            return iso_duration::parse(age).map(Self::ByDuration).map_err(|why| format!("{text:?}: {why}"));
        }
        if let Some(time) = text.strip_prefix(TO_TIME) {
            // -1 and -2 would be ends of the log on the wire
            let millis = time.parse().ok().filter(|millis: &i64| *millis >= 0);
            let why = || format!("{text:?}: {time:?} is not a number of milliseconds since 1970");
            return millis.map(Self::ToTime).ok_or_else(why);
        }
        match text {
            "smallest" | "earliest" => Ok(Self::Smallest),
            "largest" | "latest" => Ok(Self::Largest),
            "none" => Ok(Self::None),
            _ => Err(format!(
                "{text:?} is none of smallest, largest, none, {BY_DURATION}<ISO-8601 duration>, {TO_TIME}<ms since 1970>"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_words() {
        for (text, reset) in [
            ("smallest", OffsetReset::Smallest),
            ("earliest", OffsetReset::Smallest),
            ("largest", OffsetReset::Largest),
            ("latest", OffsetReset::Largest),
            ("none", OffsetReset::None),
            ("by_duration:P1DT6H", OffsetReset::ByDuration(Duration::from_secs(30 * 3600))),
            ("to_time:0", OffsetReset::ToTime(0)),
            ("to_time:1500000000000", OffsetReset::ToTime(1_500_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(reset));
            assert_eq!(reset.to_string().parse(), Ok(reset), "{text}");
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        for (text, why) in [
            ("Smallest", "is none of smallest, largest, none, by_duration:"),
            ("by_duration:1h", "does not begin with P"),
            ("by_duration", "is none of"),
            ("to_time:-1", "is not a number of milliseconds since 1970"),
            ("to_time:yesterday", "is not a number of milliseconds since 1970"),
        ] {
            let refused = text.parse::<OffsetReset>().expect_err(text);
            assert!(refused.contains(why), "{refused}");
        }
    }
}
