use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    text.parse::<ConnectString>().unwrap_or_else(|why| panic!("{text:?}: {why}")).to_string()
}

fn refusal(text: &str) -> String {
    text.parse::<ConnectString>().unwrap_err().to_string()
}

#[test]
fn forms_of_b03_reach_the_same_tree() {
    let expected = "z1:2181,z2:2181/kafka";
    for text in [
        "z1:2181,z2:2181/kafka",
        "z1:2181/kafka,z2:2181/kafka",
        "z1:2181/kafka/,z2:2181/kafka",
        "z1:2181,z2:2181/kafka/",
        "z1:2181, z2:2181/kafka",
        " z1:2181 ,\tz2:2181/kafka ",
        "z1,z2/kafka",
        "z1:2181,,z2:2181/kafka,",
    ] {
        assert_eq!(canonical(text), expected, "{text:?}");
    }
}

#[test]
fn a_lone_slash_is_the_root() {
    for text in ["z1:2181/", "z1:2181", "z1/", "z1:2181//"] {
        let parsed: ConnectString = text.parse().unwrap();
        assert_eq!(parsed.chroot(), None);
        assert_eq!(parsed.to_string(), "z1:2181");
        assert_eq!(parsed.absolute("/consumers"), "/consumers");
    }
}

#[test]
fn chroots_may_be_deep() {
    let parsed: ConnectString = "z1/a/b".parse().unwrap();
    assert_eq!(parsed.chroot(), Some("/a/b"));
    assert_eq!(parsed.absolute("/consumers"), "/a/b/consumers");
    assert_eq!(parsed.servers(), "z1:2181");
}

#[test]
fn paths_go_to_and_fro() {
    let chroot: ConnectString = "z/kafka".parse().unwrap();
    for (relative, absolute) in [("/", "/kafka"), ("/a", "/kafka/a")] {
        assert_eq!(chroot.absolute(relative), absolute);
        assert_eq!(chroot.relative(absolute), Some(relative));
    }
    for elsewhere in ["/", "/kafka2/a", "/other"] {
        assert_eq!(chroot.relative(elsewhere), None);
    }
    let root: ConnectString = "z".parse().unwrap();
    for path in ["/", "/a"] {
        assert_eq!((root.absolute(path).as_str(), root.relative(path)), (path, Some(path)));
    }
}

#[test]
fn ipv6_stands_in_brackets() {
    let parsed: ConnectString = "[2001:db8::1]:2182,[::1]/k".parse().unwrap();
    assert_eq!(parsed.hosts()[0], ServerAddress::new("2001:db8::1", 2182));
    assert_eq!(parsed.hosts()[1], ServerAddress::new("::1", 2181));
    assert_eq!(parsed.to_string(), "[2001:db8::1]:2182,[::1]:2181/k");
    assert!(refusal("2001:db8::1").contains("[address]:port for IPv6"));
}

#[test]
fn chroots_that_differ_are_refused_with_the_right_form() {
    for text in ["z1:2181/kafka,z2:2181", "z1:2181/kafka,z2:2181/other", "z1/kafka,z2,z3/kafka"] {
        let why = refusal(text);
        assert!(why.contains(r#""/kafka" stands after "z1:2181""#), "{why}");
        assert!(why.contains("write z1:2181,z2:2181"), "{why}");
    }
}

#[test]
fn nonsense_is_refused() {
    for text in
        ["", " ", ",", "/kafka", ":2181", "z1:", "z1:0", "z1:65536", "z1:x", "z 1", "[::1", "[::1]2181"]
    {
        assert!(text.parse::<ConnectString>().is_err(), "{text:?}");
    }
    for text in ["z1/a//b", "z1/../a", "z1/.", "z1//a", "zk://z1:2181/kafka"] {
        assert!(text.parse::<ConnectString>().is_err(), "{text:?}");
    }
    assert!(refusal("z1:99999").contains(r#""99999" is not a port"#));
}

proptest! {
    #[test]
    fn canonical_form_is_stable(hosts in prop::collection::vec(("[a-z][a-z0-9.-]{0,8}|[0-9a-f]{1,4}::1", 1u16..), 1..4),
                                chroot in prop::option::of("(/[a-z]{1,5}){1,3}")) {
        let hosts = hosts.into_iter().map(|(host, port)| ServerAddress::new(host, port)).collect();
        let built = ConnectString { hosts, chroot };
        prop_assert_eq!(built.to_string().parse::<ConnectString>().unwrap(), built);
    }

    #[test]
    fn any_text_parses_or_fails(text in ".*") {
        let _ = text.parse::<ConnectString>();
    }
}
