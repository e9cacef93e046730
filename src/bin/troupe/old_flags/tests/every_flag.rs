//! What the old tools took.

use super::*;

/// Each old tool with what it must have, and its other flags, of all versions (the tools' own help), but for
/// [`REFUSED_LINES`](super::REFUSED_LINES).
const FLAGS: &[(&str, &[&str])] = &[
    (
        "kafka-console-consumer.sh --zookeeper z --topic t",
        &[
            "--group g",
            "--consumer.config f",
            "--consumer-config f",
            "--consumer-property a=b",
            "--property print.key=true",
            "--formatter kafka.tools.DefaultMessageFormatter",
            "--delete-consumer-offsets",
            "--from-beginning",
            "--max-messages 1",
            "--skip-message-on-error",
            "--csv-reporter-enabled",
            "--metrics-dir d",
            "--timeout-ms 1",
            "--new-consumer",
            "--bootstrap-server b",
            "--enable-systest-events",
            "--isolation-level read_committed",
            "--key-deserializer org.apache.kafka.common.serialization.StringDeserializer",
            "--value-deserializer org.apache.kafka.common.serialization.LongDeserializer",
        ],
    ),
    ("kafka-console-consumer.sh --zookeeper z", &["--whitelist a.*", "--blacklist a.*", "--include a.*"]),
    (
        "kafka-console-consumer.sh --bootstrap-server b --topic t",
        &["--partition 0", "--partition 0 --offset -2", "--partition 0 --offset latest"],
    ),
    (
        "kafka-simple-consumer-shell.sh --broker-list b --topic t",
        &[
            "--partition 1",
            "--replica -1",
            "--offset -1",
            "--clientId c",
            "--fetchsize 1",
            "--property print.key=true",
            "--formatter kafka.tools.DefaultMessageFormatter",
            "--print-offsets",
            "--max-wait-ms 1",
            "--max-messages 1",
            "--skip-message-on-error",
            "--no-wait-at-logend",
        ],
    ),
    (
        "kafka-consumer-groups.sh --list",
        &[
            "--zookeeper z",
            "--bootstrap-server b --new-consumer",
            "--bootstrap-server b --command-config f",
            "--bootstrap-server b --state",
            "--bootstrap-server b --state Stable,Empty",
            "--bootstrap-server b --type classic",
        ],
    ),
    (
        "kafka-consumer-groups.sh --describe --group g --bootstrap-server b",
        &["--new-consumer", "--timeout 5000", "--members --verbose", "--offsets", "--state"],
    ),
    (
        "kafka-consumer-groups.sh --describe --all-groups --bootstrap-server b",
        &["--members --verbose", "--offsets", "--state"],
    ),
    (
        "kafka-consumer-groups.sh --delete-offsets --group g --bootstrap-server b",
        &["--topic t", "--topic t --timeout 5000"],
    ),
    (
        "kafka-consumer-groups.sh --delete --zookeeper z",
        &["--group g", "--group g --group h", "--group g --topic t", "--topic t"],
    ),
    (
        "kafka-consumer-groups.sh --reset-offsets --group g --topic t --bootstrap-server b",
        &[
            "--to-earliest",
            "--to-latest --execute",
            "--to-current --dry-run",
            "--to-offset 1",
            "--shift-by -3",
            "--to-datetime 2018-01-01T00:00:00.000",
            "--by-duration P1D",
            "--to-earliest --export",
            "--to-earliest --group h --topic u:0,1",
        ],
    ),
    (
        "kafka-consumer-groups.sh --reset-offsets --group g --bootstrap-server b",
        &["--from-file f --execute", "--all-topics --to-latest"],
    ),
    (
        "kafka-consumer-offset-checker.sh --group g",
        &[
            "--zookeeper z",
            "--topic t",
            "--topic t,u",
            "--broker-info",
            "--socket.timeout.ms 1",
            "--retry.backoff.ms 1",
        ],
    ),
    (
        "kafka.tools.GetOffsetShell --broker-list b --topic t",
        &[
            "--partitions 0,1",
            "--exclude-internal-topics",
            "--time -1",
            "--time -2",
            "--time 1500000000000",
            "--offsets 1",
            "--max-wait-ms 1000",
        ],
    ),
    ("kafka-get-offsets.sh --bootstrap-server b", &["--topic-partitions t:0,u:1-3,:2-", "--time earliest"]),
    ("kafka.tools.ExportZkOffsets --output-file f", &["--zkconnect z", "--group g", "--group g --group h"]),
    ("kafka.tools.ImportZkOffsets --input-file f", &["--zkconnect z"]),
    ("kafka.tools.VerifyConsumerRebalance --group g", &["--zookeeper.connect z"]),
];

#[test]
fn every_flag_of_the_old_tools_is_taken() {
    let mut refused = Vec::new();
    for (tool, flags) in FLAGS {
        for flag in *flags {
            let line = format!("{tool} {flag}");
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let rewritten = rewrite(&words, &Cli::command()).unwrap().line;
            if let Err(error) = <Cli as clap::Parser>::try_parse_from(rewritten) {
                refused.push(format!("{line}: {}", error.to_string().lines().next().unwrap()));
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
