use proptest::prelude::*;

use super::*;

fn matches(filter: &str, topic: &str) -> bool {
    TopicFilter::white_list(filter).unwrap_or_else(|why| panic!("{why}")).allows(topic, INTERNAL_TOPICS)
}

fn unsupported(filter: &str) -> String {
    match TopicFilter::white_list(filter) {
        Err(TopicFilterError::Unsupported { construct, .. }) => construct,
        other => panic!("{filter}: {other:?}"),
    }
}

#[test]
fn filters_are_normalised_as_the_old_consumer_does() {
    for (filter, normal) in [
        ("a,b", "a|b"),
        (" a , b ", "a|b"),
        ("\"a.*\"", "a.*"),
        ("'\"a'b\"'", "a'b"),
        ("\ta\n", "a"),
        ("T5,u2", "T5|u2"),
        ("", ""),
    ] {
        assert_eq!(normalise(filter), normal);
    }
    assert!(matches("a, b", "a") && matches("a, b", "b") && !matches("a, b", "a,b"));
    assert!(matches("\"a.*\"", "abc"));
}

#[test]
fn the_whole_name_must_match() {
    assert!(!matches("t", "t1") && !matches("t", "xt") && matches("t.*", "t1"));
    assert!(!matches("a|b", "ab") && matches("^a$|b", "a"));
    assert!(!matches("", "t"));
}

#[test]
fn black_lists_allow_the_rest() {
    let filter = TopicFilter::black_list("t14|u.*").unwrap();
    assert!(
        filter.allows("t5", INTERNAL_TOPICS)
            && !filter.allows("t14", INTERNAL_TOPICS)
            && !filter.allows("u2", INTERNAL_TOPICS)
    );
    assert!(filter.allows("t141", INTERNAL_TOPICS));
}

#[test]
fn internal_topics_are_kept_out_of_both_kinds() {
    for filter in [TopicFilter::white_list(".*").unwrap(), TopicFilter::black_list("x").unwrap()] {
        for topic in INTERNAL_TOPICS {
            assert!(!filter.allows(topic, INTERNAL_TOPICS) && filter.allows(topic, &[]));
        }
        assert!(filter.allows("__mine", INTERNAL_TOPICS));
    }
}

#[test]
fn java_syntax_keeps_its_meaning() {
    for (filter, yes, no) in [
        (r"lcs[A-Z]\w*", "lcsAb_1", "lcsa"),
        (r"a\.b", "a.b", "axb"),
        (r"[\w-.]+", "a-b.c", "a b"),
        (r"[a-c-x]+", "b-x", "d"),
        (r"[]a]+", "a]", "b"),
        (r"[^]a]", "b", "]"),
        (r"[--9]|[+--]", "-", "a"),
        (r"[^\W_]+", "a1", "_"),
        (r"[\W]", "-", "a"),
        (r"\Qa.b*\E+", "a.b**", "a.b"),
        (r"\Qa.b", "a.b", "axb"),
        (r"(?<x>a)(?:b)(c)", "abc", "ab"),
        (r"(?i)Ab|c", "aB", "d"),
        (r"x(?i:a)b", "xAb", "xAB"),
        (r"(?i)a(?-i)b", "Ab", "AB"),
        (r"a{2}b", "aab", "ab"),
        (r"a+?b??", "aa", "b"),
        (r"\x41\u0042\t?", "AB", "ab"),
        (r"a#&~b", "a#&~b", "a"),
        (r"a}|]", "]", "a"),
        (r"[a^&]+", "a^&", "b"),
        (r"\Aa\z|\bb\Z", "b", "c"),
        (r"()|a||b", "b", "c"),
        (r"\d\D\s?\S", "1ab", "11b"),
    ] {
        assert!(matches(filter, yes), "{filter} should match {yes}");
        assert!(!matches(filter, no), "{filter} should not match {no}");
    }
}

#[test]
fn line_terminators_are_javas() {
    for terminator in ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"] {
        assert!(!matches(".", terminator));
    }
}

#[test]
fn what_the_engine_lacks_or_means_otherwise_is_refused() {
    for (filter, construct) in [
        (r"feed-(?!tmp\b)\w+", "look-ahead"),
        (r"(?=a)a", "look-ahead"),
        (r"(?<=a)b|(?<!a)b", "look-behind"),
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        (r"a++", "possessive"),
        (r"a*+", "possessive"),
        (r"a?+", "possessive"),
        (r"a{2}+", "possessive"),
        (r"(?>a)", "atomic"),
        (r"[a-z&&[^b]]", "intersection"),
        (r"[a[b]]", "class within a class"),
        (r"[[:alpha:]]", "class within a class"),
        (r"\p{Alpha}", "character property"),
        (r"(?x)a", "flags"),
        (r"(?)a", "flags"),
        (r"(?s).", "flags"),
        (r"\07", r"escape \0"),
        (r"\Ga", r"escape \G"),
        (r"[\Qa\E]", r"escape \Q"),
        (r"\h", r"escape \h"),
        (r"\ud83d\ude00", "surrogate"),
        (r"a{2}{3}", "repetition of nothing"),
        (r"^*a", "anchor"),
        (r"((a{999}){999}){999}", "repetition"),
    ] {
        let found = unsupported(filter);
        assert!(found.contains(construct), "{filter}: {found}");
    }
    assert!(unsupported(&"(".repeat(200)).contains("nested"));
    let error = TopicFilter::white_list(r"feed-(?!tmp\b)\w+").unwrap_err().to_string();
    assert_eq!(
        error,
        r#"topic filter "feed-(?!tmp\\b)\\w+" uses look-ahead, which this consumer does not support; write it without"#
    );
}

#[test]
fn what_java_refuses_is_refused() {
    for filter in [
        "*a",
        "a**",
        "(",
        "a)",
        "[a",
        "[",
        "[]",
        "[^]",
        "[z-a]",
        r"a\",
        r"\y",
        "a{1,3}",
        "a{2,}",
        "a{",
        "(?",
        "(?<1>a)",
        "(?<n>a)(?<n>b)",
        "(?y)",
        "|*",
        "(*a)",
        r"\x4",
        r"\u004",
        r"[a-\d]",
        "(?i)*",
        "(?i",
    ] {
        let error = TopicFilter::white_list(filter).expect_err(filter);
        assert!(matches!(error, TopicFilterError::Invalid { .. }), "{filter}: {error}");
    }
}

proptest! {
    #[test]
    fn any_filter_compiles_or_is_refused(filter in r"([a-c.*+?|()\[\]{}^$\\-]|\\[a-zA-Z0-9]|\(\?[:=!<>i-]){0,12}", topic in "[a-c.]{0,4}") {
        if let Ok(filter) = TopicFilter::white_list(&filter) {
            filter.allows(&topic, INTERNAL_TOPICS);
        }
    }

    #[test]
    fn any_text_quoted_matches_itself(topic in "[a-zA-Z0-9._-]{1,20}") {
        let escaped: String = topic.chars().flat_map(|c| if c.is_ascii_alphanumeric() { vec![c] } else { vec!['\\', c] }).collect();
        prop_assert!(matches(&escaped, &topic));
        let quoted = format!("\\Q{topic}\\E");
        prop_assert!(matches(&quoted, &topic));
    }
}

/// Random expressions with the verdict of Java 17: which of the names in the first line match.
#[test]
fn verdicts_of_java_are_ours() {
    let mut lines = include_str!("java17.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    for line in lines {
        let verdict = match TopicFilter::white_list(line[0]) {
            Ok(filter) => names.iter().copied().filter(|name| filter.allows(name, &[])).collect(),
            Err(TopicFilterError::Invalid { .. }) => vec!["is invalid"],
            Err(why @ TopicFilterError::Unsupported { .. }) => panic!("{why}"),
        };
        assert_eq!(verdict, line[1..], "{}", line[0]);
    }
}
