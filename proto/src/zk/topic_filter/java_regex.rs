//! Translates a regular expression of `java.util.regex` into one of the `regex` crate with the same meaning.
//!
//! The two share most of their syntax, but not all of its meaning (`\w`, `.`, `a++`, `[a--b]`, `(?i)`), so
//! nothing is passed through unseen: each construct is recognised and written anew, and what is not
//! recognised is refused.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use super::TopicFilterError;

/// Compiles `pattern`, to be matched against whole names.
pub(super) fn compile(pattern: &str) -> Result<Regex, TopicFilterError> {
    let invalid = |reason| TopicFilterError::Invalid { pattern: pattern.to_owned(), reason };
    let unsupported = |construct| TopicFilterError::Unsupported { pattern: pattern.to_owned(), construct };
    let translated = translate(pattern).map_err(|refusal| match refusal {
        Refusal::Invalid(reason) => invalid(reason),
        Refusal::Unsupported(construct) => unsupported(construct),
    })?;
    RegexBuilder::new(&format!(r"\A(?:{translated})\z")).build().map_err(|why| match why {
        regex::Error::CompiledTooBig(limit) => {
            unsupported(format!("a repetition that takes more than {limit} bytes"))
        }
        // our own translation is well-formed but for what Java refuses as well, such as a range from z to a
        why => invalid(why.to_string()),
    })
}

enum Refusal {
    Invalid(String),
    Unsupported(String),
}

type Translated<T> = Result<T, Refusal>;

fn invalid<T>(reason: impl Into<String>) -> Translated<T> {
    Err(Refusal::Invalid(reason.into()))
}

fn unsupported<T>(construct: impl Into<String>) -> Translated<T> {
    Err(Refusal::Unsupported(construct.into()))
}

/// What a quantifier that comes next would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Atom,
    Anchor,
    Quantifier,
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    depth: usize,
    last: Last,
    group_names: Vec<String>,
}

/// A backslash and what follows, in a class or outside.
enum Escaped {
    Literal(char),
    /// The members of a predefined class, all ASCII in Java, and whether it is their complement.
    Class(&'static str, bool),
}

fn translate(pattern: &str) -> Translated<String> {
    let rest = pattern.chars().peekable();
    let mut it =
        Translation { rest, out: String::new(), depth: 0, last: Last::Nothing, group_names: Vec::new() };
    while let Some(c) = it.rest.next() {
        it.item(c)?;
    }
    if it.depth > 0 { invalid("a group is not closed") } else { Ok(it.out) }
}

impl Translation<'_> {
    fn item(&mut self, c: char) -> Translated<()> {
        match c {
            '\\' => self.escape_sequence()?,
            '[' => self.class()?,
            '(' => self.open_group()?,
            ')' => self.close_group()?,
            '*' | '+' | '?' => self.quantifier(&c.to_string())?,
            '{' => self.counted()?,
            '|' => self.emit("|", Last::Nothing),
            '^' => self.emit(r"\A", Last::Anchor),
            '$' => self.emit(r"\z", Last::Anchor),
            // every line terminator of Java
            '.' => self.emit(r"[^\n\r\x{85}\x{2028}\x{2029}]", Last::Atom),
            _ => self.literal(c),
        }
        Ok(())
    }

    fn emit(&mut self, text: &str, last: Last) {
        self.out.push_str(text);
        self.last = last;
    }

    fn literal(&mut self, c: char) {
        self.emit(&regex::escape(c.encode_utf8(&mut [0; 4])), Last::Atom);
    }

    fn escape_sequence(&mut self) -> Translated<()> {
        match self.rest.peek() {
            Some('b' | 'B' | 'A') => {
                let anchor = format!("\\{}", self.rest.next().unwrap_or_default());
                self.emit(&anchor, Last::Anchor);
            }
            Some('z' | 'Z') => {
                self.rest.next();
                self.emit(r"\z", Last::Anchor);
            }
            Some('Q') => self.quoted(),
            _ => match self.escaped()? {
                Escaped::Literal(c) => self.literal(c),
                Escaped::Class(members, negated) => {
                    let caret = if negated { "^" } else { "" };
                    self.emit(&format!("[{caret}{members}]"), Last::Atom);
                }
            },
        }
        Ok(())
    }

    /// `\Q…\E`: literal text, to the end if it is not closed.
    fn quoted(&mut self) {
        self.rest.next();
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    fn escaped(&mut self) -> Translated<Escaped> {
        let Some(c) = self.rest.next() else { return invalid("it ends in a backslash") };
        Ok(match c {
            't' => Escaped::Literal('\t'),
            'n' => Escaped::Literal('\n'),
            'r' => Escaped::Literal('\r'),
            'f' => Escaped::Literal('\u{c}'),
            'a' => Escaped::Literal('\u{7}'),
            'e' => Escaped::Literal('\u{1b}'),
            'd' | 'D' => Escaped::Class("0-9", c == 'D'),
            'w' | 'W' => Escaped::Class("0-9A-Z_a-z", c == 'W'),
            's' | 'S' => Escaped::Class(r"\t\n\x0B\f\r\x20", c == 'S'),
            'u' => Escaped::Literal(self.hex(4)?),
            'x' if self.rest.peek() == Some(&'{') => return unsupported(r"the escape \x{…}"),
            'x' => Escaped::Literal(self.hex(2)?),
            '1'..='9' | 'k' => return unsupported("a back-reference"),
            'p' | 'P' => return unsupported(format!("the character property \\{c}")),
            '0' | 'c' | 'G' | 'h' | 'H' | 'N' | 'Q' | 'R' | 'v' | 'V' | 'X' => {
                return unsupported(format!("the escape \\{c} (here)"));
            }
            _ if c.is_ascii_alphabetic() => return invalid(format!("\\{c} is no escape sequence")),
            _ => Escaped::Literal(c),
        })
    }

    fn hex(&mut self, digits: usize) -> Translated<char> {
        let text: String = (0..digits).filter_map(|_| self.rest.next_if(char::is_ascii_hexdigit)).collect();
        if text.len() < digits {
            return invalid(format!("an escape lacks some of its {digits} hexadecimal digits"));
        }
        match u32::from_str_radix(&text, 16).ok().and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => unsupported("an escaped surrogate"),
        }
    }

    fn quantifier(&mut self, quantifier: &str) -> Translated<()> {
        match self.last {
            Last::Atom => {}
            Last::Anchor => return unsupported("a quantifier of an anchor"),
            // Java takes `a{2}{3}` and a leading `{2}` for repetitions of nothing
            Last::Nothing | Last::Quantifier if quantifier.starts_with('{') => {
                return unsupported("a repetition of nothing");
            }
            Last::Nothing | Last::Quantifier => {
                return invalid(format!("{quantifier:?} has nothing to repeat"));
            }
        }
        self.emit(quantifier, Last::Quantifier);
        match self.rest.peek() {
            // the regex crate would take it for a quantifier of the quantified
            Some('+') => unsupported("a possessive quantifier"),
            Some('?') => {
                self.rest.next();
                self.emit("?", Last::Quantifier);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `{n}`; `{n,}` and `{n,m}` cannot be written, since a comma means `|`.
    fn counted(&mut self) -> Translated<()> {
        let mut count = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            count.push(digit);
        }
        if count.is_empty() || self.rest.next() != Some('}') {
            return invalid("a repetition is not {n} (a comma means `|` in a topic filter)");
        }
        self.quantifier(&format!("{{{count}}}"))
    }

    fn open_group(&mut self) -> Translated<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return unsupported(format!("more than {MAX_DEPTH} nested groups"));
        }
        if self.rest.next_if_eq(&'?').is_some() {
            return self.special_group();
        }
        self.emit("(?:", Last::Nothing);
        Ok(())
    }

    fn special_group(&mut self) -> Translated<()> {
        match self.rest.next() {
            Some(':') => self.emit("(?:", Last::Nothing),
            Some('=' | '!') => return unsupported("look-ahead"),
            Some('>') => return unsupported("an atomic group"),
            Some(')') => return unsupported("empty flags"),
            Some('<') if matches!(self.rest.peek(), Some('=' | '!')) => return unsupported("look-behind"),
            Some('<') => self.named_group()?,
            Some(c) => self.flags(c)?,
            None => return invalid("a group is not closed"),
        }
        Ok(())
    }

    fn named_group(&mut self) -> Translated<()> {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(char::is_ascii_alphanumeric) {
            name.push(c);
        }
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts_well || self.rest.next() != Some('>') || self.group_names.contains(&name) {
            return invalid("a group's name is not letters and digits, or is used twice");
        }
        self.group_names.push(name);
        self.emit("(?:", Last::Nothing);
        Ok(())
    }

    /// `(?i)`, `(?-i)` and `(?i:…)`.
    fn flags(&mut self, first: char) -> Translated<()> {
        let mut flags = String::from(first);
        while let Some(c) = self.rest.next_if(|c| !matches!(c, ')' | ':')) {
            flags.push(c);
        }
        if !flags.chars().all(|c| "idmsuxU-".contains(c)) {
            return invalid(format!("(?{flags} opens no kind of group"));
        }
        if !matches!(flags.as_str(), "i" | "-i") {
            return unsupported(format!("the flags (?{flags})"));
        }
        match self.rest.next() {
            Some(end) => self.emit(&format!("(?{flags}{end}"), Last::Nothing),
            None => return invalid("a group is not closed"),
        }
        if self.out.ends_with(')') {
            self.depth -= 1;
        }
        Ok(())
    }

    fn close_group(&mut self) -> Translated<()> {
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None => return invalid("a `)` closes no group"),
        }
        self.emit(")", Last::Atom);
        Ok(())
    }

    /// `[…]`. A `]` that comes first is a member, as is a `-` that is between no two.
    fn class(&mut self) -> Translated<()> {
        self.emit("[", Last::Atom);
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.next() {
                None => return invalid("a character class is not closed"),
                Some(']') if !first => break,
                Some('[') => return unsupported("a class within a class"),
                Some('&') if self.rest.peek() == Some(&'&') => {
                    return unsupported("an intersection of classes");
                }
                Some('\\') => match self.escaped()? {
                    Escaped::Literal(c) => self.range(c)?,
                    Escaped::Class(members, false) => self.out.push_str(members),
                    Escaped::Class(members, true) => self.out.push_str(&format!("[^{members}]")),
                },
                Some(c) => self.range(c)?,
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// A member of a class that begins with `start`: it alone, or a range.
    fn range(&mut self, start: char) -> Translated<()> {
        self.member(start);
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), Some(']' | '[') | None) {
            return Ok(());
        }
        self.rest.next();
        let end = match self.rest.next() {
            Some('\\') => match self.escaped()? {
                Escaped::Literal(c) => c,
                Escaped::Class(..) => return invalid("a range ends in a class"),
            },
            Some(c) => c,
            None => return invalid("a character class is not closed"),
        };
        self.out.push('-');
        self.member(end);
        Ok(())
    }

    fn member(&mut self, c: char) {
        self.out.push_str(&format!(r"\x{{{:x}}}", u32::from(c)));
    }
}

/// Below the limit of the regex crate, which would report a deeper nesting as a syntax error.
const MAX_DEPTH: usize = 100;
