use proptest::prelude::*;

use super::*;

fn read(json: &str) -> Result<Subscription, String> {
    Registration::parse("g_m", json.as_bytes()).map(|it| it.subscription).map_err(|why| why.to_string())
}

fn topics(entries: &[(&str, u32)]) -> Subscription {
    Subscription::Static(entries.iter().map(|(topic, streams)| ((*topic).to_owned(), *streams)).collect())
}

fn white(filter: &str, streams: u32) -> Subscription {
    Subscription::matching(&TopicFilter::white_list(filter).unwrap(), streams)
}

fn black(filter: &str, streams: u32) -> Subscription {
    Subscription::matching(&TopicFilter::black_list(filter).unwrap(), streams)
}

#[test]
fn writes_the_bytes_seen_live() {
    let record = Registration::new(topics(&[("lcsB", 1), ("lcsA", 12)]), 1795989706696);
    let json =
        r#"{"version":1,"subscription":{"lcsB":1,"lcsA":12},"pattern":"static","timestamp":"1795989706696"}"#;
    assert_eq!(record.to_json(), json);
    assert_eq!(Registration::parse("m", json.as_bytes()).unwrap(), record);

    let record = Registration::new(black("p1.*,t1", 1), 1795989705364);
    let json =
        r#"{"version":1,"subscription":{"p1.*|t1":1},"pattern":"black_list","timestamp":"1795989705364"}"#;
    assert_eq!(record.to_json(), json);
    assert_eq!(Registration::parse("m", json.as_bytes()).unwrap(), record);
}

#[test]
fn filters_are_escaped_once_and_the_slash_too() {
    let record = Registration::new(white(r#"lcs[A-Z]\w*,x"y/z"#, 2), 1);
    assert!(record.to_json().contains(r#"{"lcs[A-Z]\\w*|x\"y\/z":2}"#), "{}", record.to_json());
    let record = Registration::new(white("a\u{8}\u{c}\n\r\tb\u{1}\u{1f}\u{7f}\u{9f}é", 1), 1);
    assert!(
        record.to_json().contains(r#"{"a\b\f\n\r\tb\u0001\u001f\u007f\u009fé":1}"#),
        "{}",
        record.to_json()
    );
}

#[test]
fn double_escaped_filters_of_1_1_are_taken_literally() {
    let json = r#"{"version":1,"subscription":{"lcs[A-Z]\\\\w*|x\\\"y\\/z":1},"pattern":"white_list","timestamp":"1"}"#;
    let subscription = read(json).unwrap();
    let Subscription::WhiteList { filter, .. } = &subscription else { panic!("{subscription:?}") };
    assert_eq!(filter, r#"lcs[A-Z]\\w*|x\"y\/z"#);
    let filter = subscription.topic_filter().unwrap().unwrap();
    assert!(!filter.allows("lcsA", &[]), "as the 1.1 consumer itself matches nothing");
}

/// The "poison" table: fatal for every generation.
#[test]
fn what_stops_every_scala_reader_is_an_error() {
    for (json, why) in [
        (r#"{"subscription":{"t":0},"pattern":"static"}"#, "streams"),
        (r#"{"subscription":{"t":-1},"pattern":"static"}"#, "streams"),
        (r#"{"subscription":{"t":"1"},"pattern":"static"}"#, "streams"),
        (r#"{"subscription":{"t":1.0},"pattern":"static"}"#, "streams"),
        (r#"{"subscription":{"t":2147483648},"pattern":"static"}"#, "streams"),
        (r#"{"subscription":{"t":1}}"#, "`pattern`"),
        (r#"{"subscription":{"t":1},"pattern":1}"#, "`pattern`"),
        (r#"{"pattern":"static"}"#, "`subscription`"),
        (r#"{"subscription":["t"],"pattern":"static"}"#, "`subscription`"),
        ("", "empty"),
        ("1", "not a JSON object"),
        ("*1*t.*", "not JSON"),
        (r#"{"subscription":{"t["#, "not JSON"),
        (r#"{"subscription":{"t(":1},"pattern":"white_list"}"#, "regular expression"),
    ] {
        let error = read(json).expect_err(json);
        assert!(
            error.starts_with("registration ids/g_m cannot be read: ") && error.contains(why),
            "{json}: {error}"
        );
    }
    assert!(Registration::parse("m", b"\xff").unwrap_err().reason.contains("UTF-8"));
}

/// The "poison" table: fatal before 1.0 only.
#[test]
fn what_stops_readers_before_1_0_is_told_apart() {
    let ok = r#"{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1795989706696"}"#;
    assert_eq!(unreadable_before_1_0(ok.as_bytes()), None);
    for (json, field) in [
        (r#"{"subscription":{"t":1},"pattern":"static","timestamp":1795989706696}"#, "`timestamp`"),
        (r#"{"subscription":{"t":1},"pattern":"static","x":1.5}"#, "`x` holds the number 1.5"),
        (r#"{"subscription":{"t":1},"pattern":"static","x":[{"y":1.5}]}"#, "`x`"),
    ] {
        assert_eq!(read(json), Ok(topics(&[("t", 1)])), "{json}");
        let why = unreadable_before_1_0(json.as_bytes()).unwrap();
        assert!(why.contains(field), "{json}: {why}");
    }
}

/// The "poison" table: ok for every generation.
#[test]
fn what_every_scala_reader_takes_is_read() {
    for json in [
        r#"{"subscription":{"t":1},"pattern":"static"}"#,
        r#"{"version":2,"subscription":{"t":1},"pattern":"static"}"#,
        r#"{ "pattern" : "static" , "timestamp":"1", "subscription" : { "t" : 1 } }"#,
        r#"{"subscription":{"t":1},"pattern":"static","i":1,"b":true,"n":null,"a":[1]}"#,
        r#"{"subscription":{"t":1},"pattern":"no such"}"#,
        "{\"subscription\":{\"t\":1},\n\"pattern\":\"static\",\"timestamp\":\"x\"}",
    ] {
        assert_eq!(read(json), Ok(topics(&[("t", 1)])), "{json}");
        assert_eq!(unreadable_before_1_0(json.as_bytes()), None, "{json}");
    }
    assert_eq!(read(r#"{"subscription":{},"pattern":"white_list"}"#), Ok(topics(&[])));
    let white = |filter: &str| Ok(Subscription::WhiteList { filter: filter.into(), streams: 1 });
    assert_eq!(read(r#"{"subscription":{"z":1,"a":2},"pattern":"white_list"}"#), white("z"));
    assert_eq!(read(r#"{"subscription":{"é|\u00e9":1},"pattern":"white_list"}"#), white("é|é"));
    assert_eq!(read(r#"{"subscription":{"t\d":1},"pattern":"white_list"}"#), white(r"t\d"));
}

#[test]
fn a_filter_beyond_our_engine_is_read_but_does_not_compile() {
    let subscription = read(r#"{"subscription":{"feed-(?!tmp\\b)\\w+":1},"pattern":"white_list"}"#).unwrap();
    let error = subscription.topic_filter().unwrap().unwrap_err();
    assert!(matches!(error, TopicFilterError::Unsupported { .. }), "{error}");
}

proptest! {
    #[test]
    fn static_records_come_back(entries in prop::collection::btree_map("[a-zA-Z0-9._-]{1,9}", 1u32..1000, 0..9), at: i64) {
        let record = Registration::new(Subscription::Static(entries.into_iter().collect()), at);
        prop_assert_eq!(Registration::parse("m", record.to_json().as_bytes()).unwrap(), record.clone());
        prop_assert_eq!(unreadable_before_1_0(record.to_json().as_bytes()), None);
    }

    #[test]
    fn any_filter_comes_back(filter in any::<String>(), streams in 1u32..1000) {
        let json = Registration::new(Subscription::WhiteList { filter: filter.clone(), streams }, 1).to_json();
        match Registration::parse("m", json.as_bytes()) {
            Ok(read) => prop_assert_eq!(read.subscription, Subscription::WhiteList { filter, streams }),
            Err(why) => prop_assert!(why.reason.contains("regular expression"), "{}", why),
        }
    }

    #[test]
    fn any_bytes_parse_or_fail(data: Vec<u8>) {
        let _ = Registration::parse("m", &data);
        let _ = unreadable_before_1_0(&data);
    }
}
