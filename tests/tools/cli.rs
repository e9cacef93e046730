//! The program as a whole: help, completions, what goes where, and what is never printed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use nix::pty::{OpenptyResult, openpty};

use crate::old_tools::{Ended, Killed, troupe};
use crate::on_1_1_1;
use crate::znodes::Znodes;

#[test]
fn help_says_exit_codes_and_what_each_command_takes_the_place_of() {
    let help = troupe(&["--help"]).printed().join("\n");
    for part in ["Exit codes:", "  0  ", "  1  ", "  2  ", "  3  ", "NO_COLOR", "RUST_LOG"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    for (command, old) in [
        ("consume", "kafka-console-consumer.sh"),
        ("consume", "kafka-simple-consumer-shell.sh"),
        ("groups", "kafka-consumer-groups.sh"),
        ("groups", "kafka-consumer-offset-checker.sh"),
        ("offsets", "kafka.tools.ExportZkOffsets"),
        ("offsets", "GetOffsetShell"),
        ("verify", "kafka.tools.VerifyConsumerRebalance"),
        ("completions", "bash-completion/completions/troupe"),
    ] {
        let help = troupe(&[command, "--help"]).printed().join("\n");
        assert!(help.contains(old), "{command}: {old}: {help}");
    }
    for (command, rule) in [
        (["groups", "watch"], "with both, that in ZooKeeper"),
        (["offsets", "get"], "has a line without offset"),
        (["offsets", "copy"], "is to have no members"),
    ] {
        let help = troupe(&[&command[..], &["--help"]].concat()).printed().join("\n");
        assert!(help.contains(rule), "{command:?}: {rule}: {help}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = troupe(&["completions", shell]).printed().join("\n");
        for word in ["consume", "describe", "from-beginning", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // hidden spellings are not offered
        assert!(!script.contains("new-consumer"), "{shell}");
    }
}

#[test]
fn a_mistake_on_the_command_line_is_code_2_and_nothing_goes_to_stdout() {
    for arguments in [
        &["groups", "list", "--no-such-flag"][..],
        &["groups", "list"],
        &["groups", "list", "--zookeeper", "zk:no-port"],
        &["groups", "list", "--bootstrap-server", "broker-without-port"],
        &["groups", "list", "--zookeeper", "zk", "--command-config", "/no/such/file"],
        &["no-such-command"],
    ] {
        let ended = troupe(arguments);
        assert_eq!((ended.code, ended.lines.len()), (2, 0), "{arguments:?}: {ended:#?}");
        assert!(!ended.errors.is_empty(), "{arguments:?}");
    }
}

#[test]
fn servers_that_are_not_there_are_code_3_and_named() {
    let free = troupe_cluster::free_port().unwrap();
    let ended = troupe(&["groups", "list", "--bootstrap-server", &format!("127.0.0.1:{free}")]);
    assert_eq!((ended.code, ended.lines.len()), (3, 0), "{ended:#?}");
    assert!(ended.errors.contains(&format!("127.0.0.1:{free}")), "{ended:#?}");
}

/// As with `| head -1`.
#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("consumer.properties");
    // more than a pipe holds
    let text: String = (0..5_000).map(|n| format!("some.key.of.nobody.{n}=1\n")).collect();
    std::fs::write(&file, format!("zookeeper.connect=zk\ngroup.id=g\n{text}")).unwrap();
    for output in ["table", "json"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        command.args(["--output", output, "config", "check"]).arg(&file);
        command.env_remove("RUST_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        let (mut first, mut errors) = (String::new(), String::new());
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
        child.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(0), "{output}");
        assert_eq!(errors, "", "{output}");
        assert!(!first.is_empty(), "{output}");
    }
}

/// Nobody reads it: what the group is, the code says, and stderr.
#[test]
fn a_closed_stdout_hides_no_refusal() {
    let connect = on_1_1_1().zookeeper_connect();
    let znodes = Znodes::of(on_1_1_1());
    // owned by nobody
    znodes.commit("closed-stdout", "closed-stdout", 0, 1);
    znodes.ephemeral("/consumers/closed-stdout/ids/closed-stdout_a", "{}");
    for (arguments, says) in [
        (&["groups", "delete", "--group", "closed-nobody"][..], "does not exist"),
        (&["groups", "delete", "--group", "closed-stdout"], "is active"),
        (
            &["groups", "reset", "--group", "closed-stdout", "--all-topics", "--to-offset", "0", "--execute"],
            "not reset",
        ),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        command.args(arguments).args(["--zookeeper", &connect]).stdout(writer).stderr(Stdio::piped());
        let ended = command.output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
}

#[test]
fn nothing_is_coloured_without_a_terminal() {
    for arguments in [&["--help"][..], &["groups", "list", "--no-such-flag"], &["consume", "--topic", "t"]] {
        let Ended { lines, errors, .. } = troupe(arguments);
        assert!(!lines.join("\n").contains('\u{1b}') && !errors.contains('\u{1b}'), "{arguments:?}");
    }
}

/// All that it writes to a terminal.
fn on_a_terminal(arguments: &[&str], no_color: &str) -> String {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(arguments).env("TERM", "xterm").env("NO_COLOR", no_color).env("RUST_LOG", "debug");
    command.stdin(Stdio::null()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = Killed(command.spawn().unwrap());
    // the terminal's other end is open in the child alone now
    drop(command);
    let (mut master, mut written, mut bytes) = (File::from(master), Vec::new(), [0; 4096]);
    // an error is the end: nobody has the terminal open any more
    while let Ok(length @ 1..) = master.read(&mut bytes) {
        written.extend(&bytes[..length]);
    }
    child.0.wait().unwrap();
    String::from_utf8_lossy(&written).into_owned()
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() {
    let zookeeper = on_1_1_1().zookeeper_connect();
    let waits = [
        "consume",
        "--zookeeper",
        &zookeeper,
        "--group",
        "colours",
        "--topic",
        "no-such",
        "--timeout-ms",
        "500",
    ];
    // help, an error of clap, and the log
    for arguments in [&["--help"][..], &["groups", "list", "--no-such-flag"], &waits] {
        let (coloured, plain) = (on_a_terminal(arguments, ""), on_a_terminal(arguments, "1"));
        assert!(coloured.contains('\u{1b}'), "{arguments:?}: {coloured}");
        assert!(!plain.is_empty() && !plain.contains('\u{1b}'), "{arguments:?}: {plain}");
    }
}

/// However it is given, and however much is logged.
#[test]
fn secrets_are_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("consumer.properties");
    let text = "group.id=g\nzookeeper.connect=me:hunter2@127.0.0.1:1\nssl.key.password=hunter2\n\
                sasl.jaas.config=org.x.Login required password=\"hunter2\";\n\
                sasl.jaas.config=\norg.x.PlainLoginModule required username=\"u\" password=\"hunter2\";\n\
                username=\"u\" \\\n  password=\"hunter2\";\npassword\\=\"hunter2\";\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["config", "check", file][..],
        &["--output", "json", "config", "check", file],
        &["groups", "list", "--zookeeper", "me:hunter2@127.0.0.1:1"],
        &["groups", "list", "--zookeeper", "127.0.0.1:1", "--command-config", file],
        &["groups", "list", "--bootstrap-server", "me:hunter2@127.0.0.1:1"],
        &["groups", "list", "--bootstrap-server", "SASL://me:hunter2@127.0.0.1:1"],
        &["consume", "--topic", "t", "--consumer-config", file],
        &["consume", "--topic", "t", "--zookeeper", "me:hunter2@127.0.0.1:1", "--group", "g"],
        &["consume", "--topic", "t", "--group", "g", "--property", "password=hunter2"],
        &["consume", "--topic", "t", "--group", "g", "--consumer-property", "ssl.key.password=hunter2"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        let ended = command.args(arguments).env("RUST_LOG", "trace").output().unwrap();
        let printed =
            format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(!printed.is_empty() && !printed.contains("hunter2"), "{arguments:?}: {printed}");
    }
}

/// What a library's users must not compile.
#[test]
fn the_library_has_no_command_line_in_it() {
    let arguments =
        ["tree", "--offline", "--package", "kafka-troupe", "--edges", "normal", "--prefix", "none"];
    let tree = |more: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        let ended =
            cargo.args(arguments).args(more).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    let has = |tree: &str, name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    let (library, program) = (tree(&["--features", "metrics,web,testkit"]), tree(&["--features", "cli"]));
    for name in ["clap", "clap_complete", "comfy-table", "indicatif", "jiff", "prost-reflect", "ratatui"] {
        assert!(!has(&library, name) && has(&program, name), "{name}");
    }
}
