mod every_flag;

use clap::CommandFactory;

use super::*;
use crate::Cli;

/// Why a line is refused before clap sees it.
fn refused(line: &str) -> String {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    match rewrite(&words, &Cli::command()) {
        Err(Failure::Usage(why)) => why,
        other => panic!("{line}: {other:?}"),
    }
}

/// As a shell would split it, without quotes.
fn rewritten(line: &str) -> (String, Vec<String>) {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let Rewritten { line, notes } = rewrite(&words, &Cli::command()).unwrap();
    let words: Vec<String> = line.into_iter().map(|word| word.into_string().unwrap()).collect();
    (words.join(" "), notes)
}

#[test]
fn old_command_lines_become_new_ones() {
    for (old, new) in [
        ("troupe groups list --zookeeper z", "groups list --zookeeper z"),
        ("troupe groups --zookeeper z --list", "groups list --zookeeper z"),
        ("troupe groups --bootstrap-server a,b --list --new-consumer", "groups list --bootstrap-server a,b"),
        ("troupe groups --zookeeper z --describe --group g", "groups describe --zookeeper z --group g"),
        ("troupe groups --describe --group list --zookeeper z", "groups describe --group list --zookeeper z"),
        ("troupe --output json groups --delete --zookeeper z", "--output json groups delete --zookeeper z"),
        ("troupe groups --reset-offsets --shift-by -10", "groups reset --shift-by=-10"),
        ("troupe groups --delete-offsets --group g --topic t", "groups delete --group g --topic t"),
        ("troupe groups -zookeeper z -list", "groups list --zookeeper z"),
        ("troupe consume --topic -1", "consume --topic=-1"),
        ("troupe consume --topic t --timeout 5000", "consume --topic t --timeout 5000"),
        ("troupe consume --timeout-ms=-1 -topic t", "consume --timeout-ms=-1 --topic t"),
        ("troupe consume --topic t --metrics-dir x --max-messages 3", "consume --topic t --max-messages 3"),
        ("troupe consume --topic t --metrics-dir=x --from-beginning", "consume --topic t --from-beginning"),
        ("troupe consume --topic t --property a=-b", "consume --topic t --property a=-b"),
        ("troupe", ""),
        ("troupe -h", "-h"),
        ("troupe --version", "--version"),
        ("troupe verify --group g --zookeeper.connect z", "verify --group g --zookeeper.connect z"),
    ] {
        assert_eq!(rewritten(old).0, format!("troupe {new}").trim_end(), "{old}");
    }
}

#[test]
fn an_old_tools_name_selects_its_command() {
    for (old, new) in [
        ("kafka-console-consumer.sh --topic t", "consume --topic t"),
        ("/opt/kafka/bin/kafka-console-consumer --topic t", "consume --topic t"),
        ("troupe bin/kafka-console-consumer.sh --topic t", "consume --topic t"),
        ("./troupe kafka-console-consumer.bat --topic t", "consume --topic t"),
        ("kafka-console-consumer --partition 1 --topic t", "consume --partition 1 --topic t --offset=latest"),
        (
            "kafka-console-consumer --partition 1 --topic t --from-beginning",
            "consume --partition 1 --topic t --from-beginning",
        ),
        ("kafka-console-consumer --partition 1 --offset 3", "consume --partition 1 --offset 3"),
        ("troupe kafka-consumer-groups --list --zookeeper z", "groups list --zookeeper z"),
        (
            "troupe kafka-run-class.sh kafka.admin.ConsumerGroupCommand --list --zookeeper z",
            "groups list --zookeeper z",
        ),
        (
            "kafka-run-class.sh kafka.tools.GetOffsetShell --topic t --time -1",
            "offsets get --topic t --time=-1",
        ),
        ("troupe kafka.tools.GetOffsetShell --topic t --time -2", "offsets get --topic t --time=-2"),
        (
            "kafka-simple-consumer-shell.sh --topic t --partition 11 --broker-list b",
            "consume --topic t --partition 11 --broker-list b --offset=-2",
        ),
        (
            "troupe kafka.tools.SimpleConsumerShell --topic t --offset -1",
            "consume --topic t --offset=-1 --partition=0",
        ),
        // it has begun at the end since it could read a partition; the shell, and we, at the beginning
        (
            "kafka-console-consumer.sh --topic t --partition 1",
            "consume --topic t --partition 1 --offset=latest",
        ),
        (
            "kafka-console-consumer --topic t -partition=1 --from-beginning",
            "consume --topic t --partition=1 --from-beginning",
        ),
        (
            "troupe kafka.tools.ConsoleConsumer --topic t --partition 1 --offset -2",
            "consume --topic t --partition 1 --offset=-2",
        ),
        ("troupe consume --topic t --partition 1", "consume --topic t --partition 1"),
        (
            "troupe kafka-consumer-offset-checker.sh --group g",
            "groups describe --group g --zookeeper=localhost:2181",
        ),
        (
            "troupe kafka.tools.ExportZkOffsets --zkconnect z --output-file f",
            "offsets export --zkconnect z --output-file f",
        ),
        (
            "troupe kafka.tools.ImportZkOffsets --input-file f",
            "offsets import --input-file f --zookeeper=localhost:2181",
        ),
        (
            "troupe kafka.tools.VerifyConsumerRebalance --group g --zookeeper.connect=z",
            "verify --group g --zookeeper.connect=z",
        ),
        // not ours
        ("troupe kafka-topics.sh --list", "kafka-topics.sh --list"),
        ("troupe kafka-run-class.sh kafka.tools.JmxTool", "kafka-run-class.sh kafka.tools.JmxTool"),
        ("kafka-topics.sh --list", "--list"),
    ] {
        assert_eq!(rewritten(old).0, format!("troupe {new}"), "{old}");
    }
}

#[test]
fn what_means_nothing_any_more_is_taken_with_a_note() {
    let line = "kafka-console-consumer.sh --topic t --zookeeper z --new-consumer --csv-reporter-enabled --metrics-dir /tmp/m \
                --enable-systest-events --max-wait-ms 1000 --fetchsize 1048576 --clientId c --replica -1";
    let (rewritten, notes) = rewritten(line);
    assert_eq!(rewritten, "troupe consume --topic t --zookeeper z");
    let named: Vec<_> = notes.iter().map(|note| note.split(' ').next().unwrap()).collect();
    let expected =
        ["new-consumer", "csv-reporter-enabled", "metrics-dir", "enable-systest-events", "max-wait-ms"];
    assert_eq!(named[..5], expected.map(|flag| format!("--{flag}")));
    assert_eq!(named[5..], ["--fetchsize", "--clientId", "--replica"]);
    assert!(notes.iter().all(|note| note.contains(" is not acted on: ")), "{notes:?}");
}

#[test]
fn a_flag_that_the_command_has_is_left_to_it() {
    let cli = clap::Command::new("troupe").subcommand(
        clap::Command::new("consume").arg(clap::Arg::new("replica").long("replica").alias("fetchsize")),
    );
    let words =
        ["troupe", "consume", "--replica", "1", "--fetchsize", "2", "--clientId", "c"].map(OsString::from);
    let rewritten = rewrite(&words, &cli).unwrap();
    assert_eq!(rewritten.line, ["troupe", "consume", "--replica", "1", "--fetchsize", "2"]);
    assert_eq!(rewritten.notes.len(), 1);
}

#[test]
fn what_nobody_knows_is_an_error_of_clap() {
    let words = ["troupe", "groups", "--zookeeper", "z", "--list", "--no-such"].map(OsString::from);
    let error =
        <Cli as clap::Parser>::try_parse_from(rewrite(&words, &Cli::command()).unwrap().line).err().unwrap();
    assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument, "{error}");
    assert!(error.to_string().contains("--no-such"), "{error}");
}

#[test]
fn every_command_of_the_table_is_there() {
    for tool in TOOLS {
        let mut command = Cli::command();
        for word in tool.command {
            command = command.find_subcommand(word).unwrap_or_else(|| panic!("{word}")).clone();
        }
    }
    for (_, action) in GROUP_ACTIONS {
        assert!(
            Cli::command().find_subcommand("groups").unwrap().find_subcommand(action).is_some(),
            "{action}"
        );
    }
}

#[test]
fn offsets_are_updated_as_a_file_says() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "zookeeper.connect = z/kafka\ngroup.id=g\n").unwrap();
    let line = format!(
        "troupe kafka-run-class.sh kafka.tools.UpdateOffsetsInZK earliest {} t",
        file.path().display()
    );
    let expected = "troupe groups reset --to-earliest --topic t --execute --zookeeper=z/kafka --group=g";
    assert_eq!(rewritten(&line).0, expected);
    assert!(refused("troupe kafka.tools.UpdateOffsetsInZK earliest /no/such t").starts_with("/no/such: "));
    for (text, expected) in [
        ("group.id=g\n", ": zookeeper.connect is missing"),
        ("zookeeper.connect=z\n", ": group.id is missing"),
        ("a=\\u00zz\n", "line 1"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let why = refused(&line);
        assert!(why.starts_with(file.path().to_str().unwrap()) && why.contains(expected), "{text}: {why}");
    }
}

#[test]
fn delete_offsets_never_means_a_whole_group() {
    for (line, missing) in [
        ("kafka-consumer-groups.sh --bootstrap-server b --delete-offsets --group g", "--topic"),
        ("kafka-consumer-groups.sh --bootstrap-server b --group g --delete-offsets --topic=", "--topic"),
        ("troupe groups --delete-offsets --group g --bootstrap-server b", "--topic"),
        ("kafka-consumer-groups.sh --zookeeper z --delete-offsets --topic t", "--group"),
        ("kafka-consumer-groups.sh --bootstrap-server b --delete-offsets --topic t --all-groups", "--group"),
    ] {
        let why = refused(line);
        assert!(why.starts_with(&format!("--delete-offsets requires {missing}: ")), "{line}: {why}");
    }
}

/// Each of `REFUSED`.
const REFUSED_LINES: &[&str] = &[
    "kafka-consumer-groups.sh --bootstrap-server b --delete --all-groups",
    "kafka-consumer-groups.sh --bootstrap-server b --reset-offsets --all-groups --all-topics --to-earliest",
    "kafka-consumer-groups.sh --bootstrap-server b --delete-offsets --group g --topic a --topic b",
    "kafka.tools.GetOffsetShell --broker-list b --topic t --offsets 2",
];

#[test]
fn what_an_old_tool_took_and_no_command_does_is_refused_with_what_to_write() {
    assert_eq!(REFUSED.len(), REFUSED_LINES.len());
    for (refusal, line) in REFUSED.iter().zip(REFUSED_LINES) {
        assert_eq!(refused(line), format!("{}: {}", refusal.command.join(" "), refusal.why), "{line}");
    }
}

/// Both columns of a row of README's table.
fn readme() -> Vec<(String, String)> {
    let text = include_str!("../../../../README.md");
    let from = text.find("<!-- old scripts").unwrap();
    let table = &text[from..from + text[from..].find("<!-- end of old scripts").unwrap()];
    let rows = table.lines().filter(|line| line.contains("`troupe "));
    rows.map(|row| {
        let cells: Vec<_> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' ', '`'])).collect();
        let (new, old) = cells.split_last().unwrap();
        ((*old.first().unwrap_or(&"")).to_owned(), (*new).to_owned())
    })
    .collect()
}

/// What clap makes of a line as a shell would split it.
fn parsed(line: &str) -> Cli {
    let words: Vec<OsString> =
        line.replace('"', "").replace("\\$", "$").split(' ').map(OsString::from).collect();
    let rewritten = rewrite(&words, &Cli::command()).unwrap().line;
    <Cli as clap::Parser>::try_parse_from(rewritten).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn every_command_line_of_the_readme_is_understood() {
    let rows = readme();
    assert!(rows.len() > 15, "{rows:#?}");
    for (old, new) in &rows {
        parsed(new);
        if old.starts_with("kafka-") && !old.contains("UpdateOffsetsInZK") {
            parsed(old);
        }
    }
}

#[test]
fn every_command_line_of_the_page_about_migration_is_understood() {
    let page = include_str!("../../../migration.rs");
    let lines = page.lines().filter_map(|line| line.strip_prefix("//! troupe "));
    let lines: Vec<_> = lines.map(|line| line.split("  ").next().unwrap()).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    let inline = page.split('`').filter_map(|text| text.strip_prefix("troupe groups delete "));
    let inline: Vec<_> = inline.filter(|text| text.contains("--group")).collect();
    assert_eq!(inline.len(), 2);
    lines.iter().for_each(|line| drop(parsed(&format!("troupe {line}"))));
    inline.iter().for_each(|line| drop(parsed(&format!("troupe groups delete {line}"))));
}

#[test]
fn every_old_tool_stands_in_the_readme() {
    let old: Vec<String> = readme().into_iter().map(|(old, _)| old).collect();
    for tool in TOOLS {
        let named = |line: &&String| {
            tool.script.is_some_and(|script| line.contains(script))
                || tool.classes.iter().any(|class| line.contains(class))
        };
        assert!(old.iter().any(|line| named(&line)), "{:?}", tool.classes);
    }
}
