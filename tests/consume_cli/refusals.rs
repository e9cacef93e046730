//! What cannot work is said in one clear line, soon, and leaves nothing in ZooKeeper.

use std::time::{Duration, Instant};

use crate::programs::{Troupe, exit_code};
use crate::znodes::Znodes;
use crate::{new, old};

/// What cannot be: the line on stderr.
fn refusal(arguments: &[&str]) -> String {
    refusal_with(2, arguments)
}

/// The line on stderr of a run that failed.
fn refusal_with(code: i32, arguments: &[&str]) -> String {
    let begun = Instant::now();
    let ended = Troupe::run(arguments).end();
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}: {arguments:?}", begun.elapsed());
    assert_eq!(exit_code(&ended), code, "{ended:?}");
    assert_eq!(ended.lines, [""; 0]);
    let line = ended.errors.strip_suffix('\n').unwrap_or_default();
    assert!(!line.is_empty() && !line.contains('\n'), "one line: {}", ended.errors);
    line.strip_prefix("troupe: ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// The line for a ZooKeeper at `connect`.
fn refusal_at(connect: &str) -> String {
    refusal_with(3, &["--zookeeper", connect, "--group", "refused", "--topic", "t"])
}

#[test]
fn a_host_that_cannot_be_looked_up() {
    let line = refusal_at("no-such-host.invalid:2181");
    let expected =
        "zookeeper.connect=no-such-host.invalid:2181: no server can be looked up: no-such-host.invalid";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn a_port_that_nobody_listens_on() {
    let connect = format!("127.0.0.1:{}/kafka", troupe_cluster::free_port().unwrap());
    let line = refusal_at(&connect);
    assert!(line.starts_with(&format!("zookeeper.connect={connect}: no session within 6s")), "{line}");
    assert!(line.contains("refused"), "{line}");
}

#[test]
fn a_chroot_that_is_not_there() {
    let connect = new().zookeeper_connect() + "/kafkaa";
    let line = refusal_at(&connect);
    let why = "the chroot /kafkaa does not exist; create it or correct the path";
    assert_eq!(line, format!("zookeeper.connect={connect}: {why}"));
    let znodes = Znodes::of(new());
    assert!(!znodes.exists("/kafkaa") && !znodes.exists("/consumers/refused"));
}

#[test]
fn a_group_id_that_is_no_name() {
    let line = refusal(&["--zookeeper", &old().zookeeper_connect(), "--group", "a/b", "--topic", "t"]);
    assert!(line.starts_with("property `group.id`: \"a/b\" holds '/'"), "{line}");
    assert!(!Znodes::of(old()).exists("/consumers/a"));
}

#[test]
fn no_stream_at_all() {
    let connect = old().zookeeper_connect();
    let arguments = ["--zookeeper", &connect, "--group", "streamless", "--topic", "t", "--threads", "0"];
    let ended = Troupe::run(&arguments).end();
    assert_eq!((exit_code(&ended), ended.lines.len()), (2, 0), "{ended:?}");
    assert!(ended.errors.contains("0 is not in 1..=1000"), "{ended:?}");
    assert!(!Znodes::of(old()).exists("/consumers/streamless"));
}

#[test]
fn what_is_missing_or_not_there_yet() {
    let zookeeper = ["--zookeeper", "zk", "--topic", "t"];
    assert_eq!(
        refusal(&["--group", "refused", "--topic", "t"]),
        "missing required property `zookeeper.connect`"
    );
    let file = ["--group", "refused", "--consumer-config", "no/such.properties"];
    let line = refusal(&[&zookeeper[..], &file].concat());
    assert!(line.starts_with("no/such.properties: "), "{line}");
}

#[test]
fn topics_of_more_than_one_kind_or_none() {
    let connect = ["--zookeeper", "zk", "--group", "refused"];
    for topics in [&[][..], &["--topic", "t", "--whitelist", "t"], &["--whitelist", "t", "--blacklist", "t"]]
    {
        let ended = Troupe::run(&[&connect[..], topics].concat()).end();
        assert_eq!(exit_code(&ended), 2, "{ended:?}");
        assert!(ended.errors.contains("--whitelist <REGEX>"), "{}", ended.errors);
    }
}

#[test]
fn b11_a_a_filter_that_is_none_or_means_something_else_here() {
    let connect = old().zookeeper_connect();
    let arguments = ["--zookeeper", &connect, "--group", "unfiltered"];
    for (filter, why) in [
        ("feed-(", "topic filter \"feed-(\" is not a regular expression: "),
        (r"feed-(?!tmp\b)\w+", "topic filter \"feed-(?!tmp\\\\b)\\\\w+\" uses "),
    ] {
        let line = refusal(&[&arguments[..], &["--whitelist", filter]].concat());
        assert!(line.starts_with(why), "{line}");
    }
    assert!(!Znodes::of(old()).exists("/consumers/unfiltered"));
}

#[test]
fn groups_that_do_not_match() {
    let arguments =
        ["--zookeeper", "zk", "--topic", "t", "--group", "a", "--consumer-property", "group.id=b"];
    assert_eq!(
        refusal(&arguments),
        "The group ids provided in different places (directly using '--group', via '--consumer-property', or via \
         '--consumer.config') do not match. Detected group ids: 'b', 'a'"
    );
}

#[test]
fn a_beginning_that_is_no_beginning() {
    let arguments = ["--zookeeper", "zk", "--topic", "t", "--from-beginning"];
    let property = ["--consumer-property", "auto.offset.reset=largest"];
    assert_eq!(
        refusal(&[&arguments[..], &property].concat()),
        "Can't simultaneously specify --from-beginning and 'auto.offset.reset=largest', please remove one option"
    );
}

#[test]
fn a_formatter_or_a_decoder_that_there_is_not() {
    let arguments = ["--zookeeper", "zk", "--topic", "t"];
    let line = refusal(&[&arguments[..], &["--formatter", "com.example.Ours"]].concat());
    assert!(line.starts_with("no formatter `com.example.Ours`; there are default, "), "{line}");
    let line = refusal(&[&arguments[..], &["--value-deserializer", "com.example.Ours"]].concat());
    assert!(
        line.starts_with("value.deserializer: no decoder `com.example.Ours`; there are utf8, "),
        "{line}"
    );
}

/// As the old tool says it, and with its exit code.
#[test]
fn a_zookeeper_without_kafka() {
    let connect = format!("{}/nothing/here", new().zookeeper_connect());
    Znodes::of(new()).put("/nothing/here", "");
    let ended = Troupe::run(&["--zookeeper", &connect, "--topic", "t"]).end();
    assert_eq!(exit_code(&ended), 1, "{ended:?}");
    assert_eq!(ended.errors, "No brokers found in ZK.\n");
    assert_eq!(Znodes::of(new()).children("/nothing/here"), [""; 0]);
}
