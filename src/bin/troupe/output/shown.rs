//! Names that others chose, as text that a terminal cannot mistake for commands.

use std::borrow::Cow;

/// `text` with escapes for what a terminal obeys or hides: control characters, and the invisible ones that turn the
/// direction of writing or join what looks apart.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match is_odd(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

fn is_odd(char: char) -> bool {
    let is_invisible = matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}');
    char.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn b27_names_are_shown_as_text() {
        for name in ["orders", "data/x:y", "p_#1", "sp ace", "<img src=x onerror=1>", "größe", "注文"] {
            assert_eq!(shown(name), name);
        }
        assert_eq!(shown("a\u{1b}[2Jb\nc\u{9b}1m\u{7f}"), r"a\u{1b}[2Jb\nc\u{9b}1m\u{7f}");
        assert_eq!(shown("\u{202e}gro\u{200b}up"), r"\u{202e}gro\u{200b}up");
    }
}
