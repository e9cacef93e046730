//! Which command takes the place of which old tool, and which old flags mean nothing any more.

/// A tool of Kafka.
pub struct OldTool {
    /// Its script in Kafka's `bin`, without `.sh`.
    pub script: Option<&'static str>,
    /// Its class, as given to `kafka-run-class.sh`; where it has moved, from the oldest to the newest.
    pub classes: &'static [&'static str],
    /// The command that takes its place.
    pub command: &'static [&'static str],
    /// Flags that it has even when they are not given, each with its other spellings.
    pub defaults: &'static [Implied],
}

/// A flag that an old tool has when it is not given.
pub struct Implied {
    /// The flag, and the names that stand for it.
    pub flags: &'static [&'static str],
    /// Its value.
    pub value: &'static str,
    /// Only beside this flag.
    pub beside: Option<&'static str>,
}

const fn implied(flags: &'static [&'static str], value: &'static str) -> Implied {
    Implied { flags, value, beside: None }
}

const LOCAL_ZOOKEEPER: &[Implied] =
    &[implied(&["zookeeper", "zkconnect", "zookeeper.connect"], "localhost:2181")];

/// Its arguments are no flags: `earliest|latest consumer.properties topic`.
pub const UPDATE_OFFSETS: &str = "kafka.tools.UpdateOffsetsInZK";

/// Every tool that has a successor here.
pub const TOOLS: &[OldTool] = &[
    OldTool {
        script: Some("kafka-console-consumer"),
        classes: &["kafka.tools.ConsoleConsumer", "org.apache.kafka.tools.consumer.ConsoleConsumer"],
        command: &["consume"],
        defaults: &[Implied {
            flags: &["offset", "from-beginning"],
            value: "latest",
            beside: Some("partition"),
        }],
    },
    OldTool {
        script: Some("kafka-simple-consumer-shell"),
        classes: &["kafka.tools.SimpleConsumerShell"],
        command: &["consume"],
        defaults: &[implied(&["partition"], "0"), implied(&["offset"], "-2")],
    },
    OldTool {
        script: Some("kafka-consumer-groups"),
        classes: &[
            "kafka.admin.ConsumerGroupCommand",
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        ],
        command: &["groups"],
        defaults: &[],
    },
    OldTool {
        script: Some("kafka-consumer-offset-checker"),
        classes: &["kafka.tools.ConsumerOffsetChecker"],
        command: &["groups", "describe"],
        defaults: LOCAL_ZOOKEEPER,
    },
    OldTool {
        script: Some("kafka-get-offsets"),
        classes: &["kafka.tools.GetOffsetShell", "org.apache.kafka.tools.GetOffsetShell"],
        command: &["offsets", "get"],
        defaults: &[],
    },
    OldTool {
        script: None,
        classes: &["kafka.tools.ExportZkOffsets"],
        command: &["offsets", "export"],
        defaults: LOCAL_ZOOKEEPER,
    },
    OldTool {
        script: None,
        classes: &["kafka.tools.ImportZkOffsets"],
        command: &["offsets", "import"],
        defaults: LOCAL_ZOOKEEPER,
    },
    OldTool { script: None, classes: &[UPDATE_OFFSETS], command: &["groups", "reset"], defaults: &[] },
    OldTool {
        script: None,
        classes: &["kafka.tools.VerifyConsumerRebalance"],
        command: &["verify"],
        defaults: LOCAL_ZOOKEEPER,
    },
];

/// The actions of `kafka-consumer-groups`, and what stands for them.
pub const GROUP_ACTIONS: &[(&str, &str)] = &[
    ("list", "list"),
    ("describe", "describe"),
    ("delete", "delete"),
    ("delete-offsets", "delete"),
    ("reset-offsets", "reset"),
];

/// What an old tool took and its successor does not.
pub struct Refusal {
    /// Of which command.
    pub command: &'static [&'static str],
    /// The flag.
    pub flag: &'static str,
    /// Whether it is meant, with these values.
    pub is: fn(&[&str]) -> bool,
    /// What to do instead.
    pub why: &'static str,
}

const NO_ALL_GROUPS: &str =
    "--all-groups: name each group that is meant with --group; `troupe groups list` tells what there is";

/// All of it; everything else that an old tool took is taken.
pub const REFUSED: &[Refusal] = &[
    Refusal { command: &["groups", "delete"], flag: "all-groups", is: |_| true, why: NO_ALL_GROUPS },
    Refusal { command: &["groups", "reset"], flag: "all-groups", is: |_| true, why: NO_ALL_GROUPS },
    Refusal {
        command: &["groups", "delete"],
        flag: "topic",
        is: |topics| topics.len() > 1,
        why: "--topic: one at a time; write a command for each",
    },
    Refusal {
        command: &["offsets", "get"],
        flag: "offsets",
        is: |numbers| numbers.iter().any(|number| number.parse().is_ok_and(|number: i64| number > 1)),
        why: "--offsets: brokers of today know of one offset for a time; leave the flag out, and ask once for each time",
    },
];

/// What `--delete-offsets` must have, or it would mean more than it says.
pub const OF_DELETE_OFFSETS: &[&str] = &["group", "topic"];

/// A flag that is taken and does nothing.
pub struct Ignored {
    /// The flag.
    pub flag: &'static str,
    /// Whether a value comes with it.
    pub value: bool,
    /// Why nothing is done.
    pub why: &'static str,
}

const fn ignored(flag: &'static str, value: bool, why: &'static str) -> Ignored {
    Ignored { flag, value, why }
}

const NO_REPORTERS: &str = "there are no metrics reporters";
const FROM_LEADERS: &str = "partitions are read from their leaders";
const SETTING: &str = "it is socket.timeout.ms in a file given by --command-config";

/// Flags of old tools that mean nothing any more, where the command does not have them itself.
pub const IGNORED: &[Ignored] = &[
    ignored("new-consumer", false, "--zookeeper and --bootstrap-server say which kind of group is meant"),
    ignored("csv-reporter-enabled", false, NO_REPORTERS),
    ignored("metrics-dir", true, NO_REPORTERS),
    ignored("enable-systest-events", false, "there are no events for Kafka's own system tests"),
    ignored("max-wait-ms", true, "brokers answer as soon as there is something"),
    ignored("fetchsize", true, "a larger message is fetched all the same"),
    ignored("clientId", true, "it is client.id in a file given by --command-config"),
    ignored("replica", true, FROM_LEADERS),
    ignored("broker-info", false, "brokers are named in what is printed where it matters"),
    ignored("socket.timeout.ms", true, SETTING),
    ignored("retry.backoff.ms", true, "what can be tried again is, until the time for it is over"),
    ignored("timeout", true, SETTING),
    ignored("verbose", false, "all is shown anyway"),
];
