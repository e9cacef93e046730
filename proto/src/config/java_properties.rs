//! The text format of `java.util.Properties`: comments, continuation lines, three separators, escapes.
//!
//! Written here because the crates for it lose escaped surrogate pairs, and read from I/O in an encoding of
//! choice.

use std::str::Chars;

use super::ConfigError;

/// Keys and values in the order given, unescaped, not trimmed; the error names the line.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    lines(text).map(|(_, pair)| pair).collect()
}

/// As [`parse`], each with the line where it begins.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Result<(String, String), ConfigError>)> {
    logical_lines(text).into_iter().map(|(line, content)| {
        let syntax = |reason: &str| ConfigError::Syntax { line, reason: reason.to_owned() };
        (line, pair(&content).map_err(syntax))
    })
}

/// Lines that are neither blank nor comments, with their continuations joined, and where each begins (from
/// 1).
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let text = text.replace("\r\n", "\n");
    let text = text.strip_suffix(['\n', '\r']).unwrap_or(&text);
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, natural) in text.split(['\n', '\r']).enumerate() {
        let content = natural.trim_start_matches(is_blank);
        // a continued line of which nothing has been seen yet counts as not begun
        let (number, mut line) =
            open.take().filter(|(_, line)| !line.is_empty()).unwrap_or((at + 1, String::new()));
        if line.is_empty() && (content.is_empty() || content.starts_with(['#', '!'])) {
            continue;
        }
        line.push_str(content);
        let backslashes = content.chars().rev().take_while(|c| *c == '\\').count();
        if backslashes % 2 == 1 {
            line.pop();
            open = Some((number, line));
        } else {
            lines.push((number, line));
        }
    }
    lines.extend(open);
    lines
}

fn pair(line: &str) -> Result<(String, String), &'static str> {
    let end = key_end(line);
    let rest = line[end..].trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(is_blank);
    Ok((unescape(&line[..end])?, unescape(value)?))
}

fn key_end(line: &str) -> usize {
    let mut escaped = false;
    let ends = |c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || is_blank(c));
        escaped = !escaped && c == '\\';
        ends
    };
    line.find(ends).unwrap_or(line.len())
}

/// In UTF-16, since a pair of `\uXXXX` may make one character.
fn unescape(text: &str) -> Result<String, &'static str> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let c = match c {
            '\\' => match rest.next() {
                Some('u') => {
                    units.push(hex_unit(&mut rest)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(c) => c,
                None => break,
            },
            c => c,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).map_err(|_| r"a \uXXXX escape is half of a surrogate pair")
}

fn hex_unit(rest: &mut Chars<'_>) -> Result<u16, &'static str> {
    let digits: String = rest.by_ref().take(4).collect();
    let valid = digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit());
    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| valid);
    unit.ok_or(r"a \uXXXX escape lacks some of its four hexadecimal digits")
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap()
    }

    fn one(text: &str) -> (String, String) {
        let pairs = pairs(text);
        assert_eq!(pairs.len(), 1, "{text:?}: {pairs:?}");
        pairs[0].clone()
    }

    #[test]
    fn separators_are_equals_colon_and_space() {
        for text in ["k=v", "k:v", "k v", "k = v", "  k\t:\tv", "k\u{c}v", "\n\nk  =v\r\n\r\n"] {
            assert_eq!(one(text), ("k".into(), "v".into()), "{text:?}");
        }
        assert_eq!(one("k==v"), ("k".into(), "=v".into()));
        assert_eq!(one("k = = v "), ("k".into(), "= v ".into()));
        assert_eq!(one(r"a\ b\=c\:d = e"), ("a b=c:d".into(), "e".into()));
        assert_eq!(one("k"), ("k".into(), String::new()));
        assert_eq!(one("= v"), (String::new(), "v".into()));
    }

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        let text = "# a=1\n  ! b=2 \\\n\n \t\nc=3 # not a comment\rd=4";
        assert_eq!(pairs(text), [("c".into(), "3 # not a comment".into()), ("d".into(), "4".into())]);
    }

    #[test]
    fn lines_go_on_after_an_odd_number_of_backslashes() {
        assert_eq!(one("k=a,\\\n   b,\\\r\n\tc"), ("k".into(), "a,b,c".into()));
        assert_eq!(pairs("k=a\\\\\nl=b"), [("k".into(), "a\\".into()), ("l".into(), "b".into())]);
        assert_eq!(pairs("k=a\\\n#b\n\nl=c"), [("k".into(), "a#b".into()), ("l".into(), "c".into())]);
        assert_eq!(one("k=a\\"), ("k".into(), "a".into()));
        assert_eq!(pairs("\\\n#c\n\\\n\n"), []);
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(one(r"k=\t\n\r\f\\\q\u00e9\u00C9"), ("k".into(), "\t\n\r\u{c}\\qéÉ".into()));
        assert_eq!(one(r"\u006b=\ud83d\ude00"), ("k".into(), "😀".into()));
        assert_eq!(one(r"k=\ v"), ("k".into(), " v".into()));
    }

    #[test]
    fn bad_escapes_name_their_line() {
        for text in ["a=1\n\nk=\\u12", "a=1\n\nk=\\u12g4", "a=1\n\nk=\\u+123", "a=1\n\nk=\\ud83d"] {
            assert!(matches!(parse(text), Err(ConfigError::Syntax { line: 3, .. })), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails(text in any::<String>()) {
            let _ = parse(&text);
        }

        #[test]
        fn escaped_pairs_come_back(key in any::<String>(), value in any::<String>()) {
            let escape = |text: &str| text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            let text = format!("{}={}", escape(&key), escape(&value));
            prop_assert_eq!(pairs(&text), [(key, value)]);
        }
    }
}
