//! ISO-8601 durations as Java's `Duration` has them, without signs: `PnDTnHnMnS`.
//!
//! Own code: crates that read ISO-8601 also take years, months and weeks, which have no length or are not Java's, and
//! bring a calendar with them.

use std::fmt;
use std::time::Duration;

const DAY: u64 = 24 * 3600;
/// The designators of a duration in their order, each with its seconds; those after `T` are of the time.
const DATE: &[(char, u64)] = &[('D', DAY)];
const TIME: &[(char, u64)] = &[('H', 3600), ('M', 60), ('S', 1)];

/// Reads a duration as Java's `Duration` does: `PnDTnHnMnS`, without signs. Letters may be small; seconds may have a
/// fraction of up to 9 digits, after a point or a comma.
///
/// # Errors
/// Says what is wrong with the text, and how one looks.
pub fn parse(text: &str) -> Result<Duration, String> {
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix('P').ok_or_else(|| bad(text, "it does not begin with P"))?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (rest, None),
    };
    if time == Some("") || (date.is_empty() && time.is_none()) {
        return Err(bad(text, "a number is missing"));
    }
    let parts = [(date, DATE), (time.unwrap_or_default(), TIME)];
    let sum = parts.into_iter().try_fold(Duration::ZERO, |sum, (part, units)| {
        let seconds = fields(part, units).map_err(|why| bad(text, &why))?;
        sum.checked_add(seconds).ok_or_else(|| bad(text, "it is too long"))
    })?;
    Ok(sum)
}

/// Why a duration is not one, and how one looks.
fn bad(text: &str, why: &str) -> String {
    format!("{text:?} is not a duration like PT6H or P1DT2H30M: {why}")
}

/// Sums up numbers with their units, which come in the order given, each at most once.
fn fields(mut text: &str, units: &[(char, u64)]) -> Result<Duration, String> {
    let (mut sum, mut units) = (Duration::ZERO, units.iter());
    while !text.is_empty() {
        let end = text.find(|letter: char| letter.is_ascii_alphabetic());
        let (number, rest) = text.split_at(end.ok_or_else(|| format!("{text:?} has no unit"))?);
        let mut letters = rest.chars();
        let letter = letters.next().unwrap_or_default();
        text = letters.as_str();
        let (_, seconds) =
            units.by_ref().find(|(unit, _)| *unit == letter).ok_or_else(|| format!("misplaced {letter}"))?;
        let field = field(number, letter == 'S', *seconds);
        sum = field.and_then(|field| sum.checked_add(field)).ok_or_else(|| format!("bad {number:?}"))?;
    }
    Ok(sum)
}

fn field(number: &str, may_have_fraction: bool, seconds: u64) -> Option<Duration> {
    let (whole, fraction) = match number.split_once(['.', ',']) {
        Some((whole, fraction)) if may_have_fraction && !whole.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    if !whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()) || fraction.len() > 9 {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse::<u64>().ok()?.checked_mul(seconds)?, nanos))
}

/// Shows a duration in the form that [`parse`] reads.
pub(super) struct Iso(pub(super) Duration);

impl fmt::Display for Iso {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        f.write_str("P")?;
        let mut shown = false;
        for (letter, seconds) in [('D', DAY), ('H', 3600), ('M', 60)] {
            if letter == 'H' && (rest > 0 || nanos > 0 || !shown) {
                f.write_str("T")?;
            }
            if rest >= seconds {
                write!(f, "{}{letter}", rest / seconds)?;
                shown = true;
            }
            rest %= seconds;
        }
        if nanos > 0 {
            let fraction = format!("{nanos:09}");
            write!(f, "{rest}.{}S", fraction.trim_end_matches('0'))?;
        } else if rest > 0 || !shown {
            write!(f, "{rest}S")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn javas_durations_are_read() {
        for (text, seconds) in [
            ("PT0S", 0.0),
            ("PT20.345S", 20.345),
            ("PT0,5S", 0.5),
            ("PT15M", 900.0),
            ("PT10H", 36_000.0),
            ("P2D", 172_800.0),
            ("P2DT3H4M", 183_840.0),
            ("pt1h", 3600.0),
            ("PT90M", 5400.0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_is_refused() {
        for text in [
            "",
            "P",
            "PT",
            "1H",
            "PT1",
            "P1DT",
            "P1H",
            "PT1D",
            "PT1M1H",
            "PT1H1H",
            "PT-1H",
            "-PT1H",
            "P1Y",
            "P1W",
            "P1M",
            "PT1.5H",
            "PT.5S",
            "PTS",
            "PT1.1234567890S",
            "PT1H ",
            "PT1T1S",
            "PT+1H",
            "PTÄS",
            "PT99999999999999999999S",
            "P999999999999999999D",
        ] {
            let why = parse(text).expect_err(text);
            assert!(why.contains("is not a duration like PT6H"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(seconds in any::<u64>(), nanos in 0_u32..1_000_000_000, exact in any::<bool>()) {
            let duration = Duration::new(seconds, if exact { 0 } else { nanos });
            prop_assert_eq!(parse(&Iso(duration).to_string()), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[PTDHMS0-9.,+-]{0,12}|.{0,6}") {
            let _ = parse(&text);
        }
    }
}
