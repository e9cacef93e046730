use super::*;

const BASE: &str = "zookeeper.connect=zk/kafka\ngroup.id=g\n";

fn found(text: &str, key: &str) -> CheckedProperty {
    let mut found: Vec<_> = check_file(text).into_iter().filter(|property| property.key == key).collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn treatment(line: &str) -> (Treatment, String) {
    let found = check_file(&format!("{BASE}{line}"));
    assert_eq!(found.len(), 3, "{found:#?}");
    (found[2].treatment, found[2].note.clone())
}

fn starts(text: &str) -> bool {
    check_file(text).iter().all(|property| property.treatment.starts())
}

#[test]
fn each_property_has_its_line_and_its_treatment() {
    let text = "# a comment\nzookeeper.connect = zk:2181,\\\n    zk2:2181/kafka\n\n! another\ngroup.id:g\nsocket.timeout.ms 30000\n\
                fetch.max.bytes=1\nclient.rack=a\nexternal.key=1\nno.such.thing=1\n\\u0063lient.id=\\u0063\n";
    let seen = check_file(text);
    let seen: Vec<_> = seen
        .iter()
        .map(|it| (it.line.unwrap(), it.key.as_str(), it.value.as_deref().unwrap(), it.treatment))
        .collect();
    assert_eq!(
        seen,
        [
            (2, "zookeeper.connect", "zk:2181,zk2:2181/kafka", Treatment::ActedOnDifferently),
            (6, "group.id", "g", Treatment::ActedOnDifferently),
            (7, "socket.timeout.ms", "30000", Treatment::ActedOn),
            (8, "fetch.max.bytes", "1", Treatment::NotNeeded),
            (9, "client.rack", "a", Treatment::New),
            (10, "external.key", "1", Treatment::PassedOver),
            (11, "no.such.thing", "1", Treatment::Unknown),
            (12, "client.id", "c", Treatment::ActedOn),
        ]
    );
    assert!(starts(text));
}

#[test]
fn what_is_not_known_names_what_was_meant() {
    for (line, note) in [
        ("zookeper.connect=z", "probably a slip: zookeeper.connect is known"),
        ("Auto_Commit_Enable=true", "probably a slip: auto.commit.enable is known"),
        ("enable.auto.commit=true", "it is the Java consumer's: use auto.commit.enable"),
        ("zk.connect=z", "it is a name of Kafka 0.7, which later ones ignore: use zookeeper.connect"),
        ("fetcher.backoff.ms=1", "it was of Kafka 0.7 and has no successor"),
        (
            "mirror.topics.whitelist=a",
            "the old consumer has the name and does not use it; it was MirrorMaker's",
        ),
        ("what.ever.it.is=1", "the old consumer does not know it either"),
    ] {
        assert_eq!(treatment(line), (Treatment::Unknown, note.to_owned()), "{line}");
        assert!(starts(&format!("{BASE}{line}")), "{line}");
    }
}

#[test]
fn what_keeps_it_from_starting_is_told_at_its_line() {
    for (line, note) in [
        ("auto.commit.enable=yes", "\"yes\" is neither true nor false"),
        ("fetch.wait.max.ms=40000", "40000 ms is more than the 30000 ms of socket.timeout.ms"),
        ("rebalance.max.retries=0", "0 is less than 1"),
        ("socket.receive.buffer.bytes=big", "\"big\" is not a whole number"),
    ] {
        let (treatment, why) = treatment(line);
        assert_eq!(treatment, Treatment::Refused, "{line}");
        assert!(why.starts_with(note), "{line}: {why}");
        assert!(!starts(&format!("{BASE}{line}")), "{line}");
    }
    let broken = check_file(&format!("{BASE}a=\\u12\nclient.id=c"));
    assert_eq!((broken[2].line, broken[2].treatment), (Some(3), Treatment::Refused));
    assert!(broken[2].note.contains("escape lacks"), "{}", broken[2].note);
    assert_eq!(broken[3].treatment, Treatment::ActedOn, "the lines after it are looked at all the same");
    assert_eq!(broken.len(), 4, "{broken:#?}");
}

#[test]
fn required_properties_that_are_missing_come_last() {
    let found = check_file("client.id=c\n");
    let missing: Vec<_> = found[1..].iter().map(|it| (it.line, it.key.as_str(), it.treatment)).collect();
    assert_eq!(
        missing,
        [(None, "zookeeper.connect", Treatment::Missing), (None, "group.id", Treatment::Missing)]
    );
    assert!(check_file("").len() == 2 && !starts(""));
}

#[test]
fn of_equal_keys_the_last_counts() {
    let found = check_file(&format!("fetch.min.bytes=x\n{BASE}fetch.min.bytes=2\n"));
    let seen: Vec<_> = found.iter().map(|it| (it.line.unwrap(), it.treatment)).collect();
    assert_eq!(seen[0], (1, Treatment::Overridden));
    assert_eq!(seen[3], (4, Treatment::ActedOn));
    assert_eq!(found[0].note, "line 4 sets it again, and the last one counts");
    assert!(found.iter().all(|it| it.treatment.starts()));
}

#[test]
fn secrets_are_hidden() {
    let text = "zookeeper.connect=me:hunter2@zk/kafka\ngroup.id=g\nsasl.jaas.config=x hunter2;\nssl.key.password=hunter2\n\
                password=hunter2\nbootstrap.servers=me:hunter2@b:1,SASL://me:hunter2@b:1\n";
    let shown = format!("{:?}", check_file(text));
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("[hidden]@zk/kafka"), "{shown}");
}

/// A JAAS configuration over several lines, with a backslash missing at the end of one or another.
#[test]
fn secrets_of_a_broken_jaas_configuration_are_hidden() {
    let lines = [
        "sasl.jaas.config=",
        "  org.x.PlainLoginModule required",
        "  username=\"u\"",
        "  password=\"hunter2\";",
    ];
    for missing in 0..lines.len() {
        let ends = (0..lines.len()).map(|at| if at == missing { "\n" } else { " \\\n" });
        let text: String = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect();
        let checked = check_file(&format!("{BASE}{text}"));
        let shown = format!("{checked:?}");
        assert!(!shown.contains("hunter2") && shown.contains(HIDDEN), "{text}\n{shown}");
    }
    let shown =
        format!("{:?}", check_file("password\\=\"hunter2\";\nfetch.min.bytes=1 password=\"hunter2\"\n"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn defaults_are_told_beside_the_old_ones() {
    let text = format!("{BASE}fetch.max.bytes=1\nclient.rack=a\nfetch.min.bytes=1\nno=1");
    let defaults = |key| {
        let found = found(&text, key);
        (found.default, found.old_default)
    };
    assert_eq!(defaults("fetch.min.bytes"), (Some("1"), Some("1")));
    assert_eq!(defaults("fetch.max.bytes"), (None, Some("52428800")));
    assert_eq!(defaults("client.rack"), (Some("none"), None));
    assert_eq!(defaults("no"), (None, None));
}

/// The strings of `kafka.consumer.ConsumerConfig`, `kafka.utils.ZKConfig`, `kafka.metrics.KafkaMetricsConfig` and
/// `KafkaCSVMetricsReporter` that are keys, of 0.8.2.2, 0.9.0.1, 0.10.2.2, 0.11.0.3 and 1.1.1: they differ by
/// `fetch.max.bytes`, which came with 0.10.1.
const OF_THE_CLASSES: &str = "auto.commit.enable auto.commit.interval.ms auto.offset.reset client.id consumer.id \
    consumer.timeout.ms dual.commit.enabled exclude.internal.topics fetch.max.bytes fetch.message.max.bytes fetch.min.bytes \
    fetch.wait.max.ms group.id kafka.csv.metrics.dir kafka.csv.metrics.reporter.enabled kafka.metrics.polling.interval.secs \
    kafka.metrics.reporters mirror.consumer.numthreads mirror.topics.blacklist mirror.topics.whitelist num.consumer.fetchers \
    offsets.channel.backoff.ms offsets.channel.socket.timeout.ms offsets.commit.max.retries offsets.storage \
    partition.assignment.strategy queued.max.message.chunks rebalance.backoff.ms rebalance.max.retries \
    refresh.leader.backoff.ms socket.receive.buffer.bytes socket.timeout.ms zookeeper.connect \
    zookeeper.connection.timeout.ms zookeeper.session.timeout.ms zookeeper.sync.time.ms";

#[test]
fn every_key_of_the_old_consumers_classes_is_explained() {
    for key in OF_THE_CLASSES.split_whitespace() {
        let (treatment, note) = treated(key);
        match key.starts_with("mirror.") {
            true => assert_eq!(treatment, Treatment::Unknown, "{key}"),
            false => assert!(OLD_KEYS.iter().any(|old| old.key == key), "{key}"),
        }
        assert!(treatment == Treatment::ActedOn || !note.is_empty(), "{key}");
        assert!(!note.contains("does not know it either") && !note.contains("slip"), "{key}: {note}");
    }
    assert_eq!(OLD_KEYS.len() + 3, OF_THE_CLASSES.split_whitespace().count());
}

#[test]
fn the_old_keys_and_the_table_agree() {
    for old in OLD_KEYS {
        let ours =
            properties().find(|property| property.key == old.key).unwrap_or_else(|| panic!("{}", old.key));
        assert_eq!(ours.default, old.default, "a default that differs must be told: {}", old.key);
        assert!(ours.effect == Effect::Full || old.differs.is_none(), "{}: about says it", old.key);
    }
    for (key, _) in NEVER_ACTED_ON {
        assert!(matches!(Known::of(key), Known::No), "{key} is acted on by now");
    }
    for (key, what) in NEVER_ACTED_ON {
        for named in what.split(|c: char| c.is_whitespace() || c == ',').filter(|word| word.contains('.')) {
            assert!(properties().any(|property| property.key == named), "{key}: {named}");
        }
    }
}
