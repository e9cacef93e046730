//! The name that was probably meant.

/// The name that takes the fewest changes of a letter, if that is few enough for a slip.
pub(super) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = spelled(typed);
    let most = (typed.len() / 5).clamp(1, 4);
    let near = names.map(|name| (distance(&typed, &spelled(name)), name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// Capitals, and what stands between words, are often not as they should be.
fn spelled(name: &str) -> String {
    name.chars()
        .take(80)
        .map(|c| if matches!(c, '_' | '-' | '.') { '.' } else { c.to_ascii_lowercase() })
        .collect()
}

/// By Levenshtein: letters put in, taken out or exchanged.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], done + 1);
        for (at, b) in to.iter().enumerate() {
            let exchanged = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = exchanged.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3), ("é", "e", 1)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn a_slip_is_seen_and_another_word_is_not() {
        let names = ["group.id", "client.id", "zookeeper.connect", "auto.commit.enable", "fetch.min.bytes"];
        for (typed, meant) in [
            ("zookeper.connect", Some("zookeeper.connect")),
            ("GROUP_ID", Some("group.id")),
            ("auto-commit-enabled", Some("auto.commit.enable")),
            ("group", None),
            ("x", None),
            ("", None),
            ("request.timeout.ms", None),
        ] {
            assert_eq!(nearest(typed, names.into_iter()), meant, "{typed}");
        }
    }
}
