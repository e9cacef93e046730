//! `troupe`: what people did with Kafka's old consumer scripts, in one program.
//!
//! A module for each command; it takes arguments and prints, and leaves decisions to `proto` and conversations with
//! servers to `actors::admin`. What they share:
//!
//! | module | what |
//! |---|---|
//! | `old_flags` | old command lines, made new ones before clap sees them |
//! | `servers` | the flags that say where ZooKeeper and Kafka are |
//! | `output` | rows as tables or JSON on stdout; notes, the log and progress on stderr; colours |
//! | `exit` | answers, failures and their codes |
//! | `ends`, `time`, `properties_file`, `offset_row` | signals; times; files; what a reset, an import and a copy print |

/// As the standard one, but no terminal obeys what is in it, and a stderr that nobody reads any more is no panic.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::diagnostics::say(format_args!($($text)*)) };
}

mod completions;
mod config_check;
mod consume;
mod ends;
mod exit;
mod groups;
mod offset_row;
mod offsets;
mod old_flags;
mod output;
mod properties_file;
mod servers;
mod time;
mod verify;

use clap::{CommandFactory, Parser, Subcommand};
use kafka_troupe::actors::zk_session::ZOOKEEPER_LOG_FILTER;
use tracing_subscriber::EnvFilter;

/// Kafka consumer groups that are coordinated through ZooKeeper: what people did with Kafka's old scripts.
///
/// Results go to stdout, everything else to stderr; RUST_LOG sets how much is logged (default: warn). Colours are for
/// terminals only, and not where NO_COLOR is set.
#[derive(Parser)]
#[command(version, about, after_help = exit::CODES, infer_long_args = true, propagate_version = true)]
struct Cli {
    /// How answers are printed: a table for people, or JSON in which what is not known is null
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "table|json",
        default_value_t,
        hide_possible_values = true
    )]
    output: output::Output,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the values of a topic's records, one per line, as a member of a group
    ///
    /// In place of kafka-console-consumer.sh (kafka.tools.ConsoleConsumer) and kafka-simple-consumer-shell.sh
    /// (kafka.tools.SimpleConsumerShell). Their flags are taken as they were typed.
    Consume(Box<consume::Args>),
    /// Consumer groups: list, describe, delete, reset, watch
    ///
    /// In place of kafka-consumer-groups.sh (kafka.admin.ConsumerGroupCommand) and kafka-consumer-offset-checker.sh
    /// (kafka.tools.ConsumerOffsetChecker). `--list`, `--describe`, `--delete` and `--reset-offsets` are taken as well.
    #[command(subcommand)]
    Groups(groups::Command),
    /// Offsets: export, import, get, dump, partition, copy
    ///
    /// In place of kafka.tools.ExportZkOffsets, ImportZkOffsets and GetOffsetShell, and of the formatters of
    /// `__consumer_offsets`.
    #[command(subcommand)]
    Offsets(offsets::Command),
    /// Whether every partition of a group is owned once, by a live member, and read
    ///
    /// In place of kafka.tools.VerifyConsumerRebalance.
    Verify(verify::Args),
    /// Configuration files of the old consumer
    #[command(subcommand)]
    Config(config_check::Command),
    /// What a shell needs to complete command lines
    ///
    /// bash: troupe completions bash > ~/.local/share/bash-completion/completions/troupe
    ///
    /// zsh: troupe completions zsh > "${fpath[1]}/_troupe"
    ///
    /// fish: troupe completions fish > ~/.config/fish/completions/troupe.fish
    ///
    /// Then open a new shell.
    Completions(completions::Args),
}

fn main() -> std::process::ExitCode {
    let given: Vec<_> = std::env::args_os().collect();
    let rewritten = match old_flags::rewrite(&given, &Cli::command()) {
        Ok(rewritten) => rewritten,
        Err(failure) => {
            let code = exit::code(Err(failure));
            output::diagnostics::flush();
            return code;
        }
    };
    let cli = Cli::parse_from(rewritten.line);
    rewritten.notes.iter().for_each(|note| say!("{note}"));
    log_to_stderr();
    let (command, output) = (cli.command, cli.output);
    let code = exit::code(actix::System::new().block_on(async {
        match command {
            Command::Consume(args) => consume::run(*args, output).await,
            Command::Groups(command) => command.run(output).await,
            Command::Offsets(command) => command.run(output).await,
            Command::Verify(args) => verify::run(args, output).await,
            Command::Config(command) => command.run(output).await,
            Command::Completions(args) => completions::run(&args, Cli::command()),
        }
    }));
    output::diagnostics::flush();
    code
}

/// The ZooKeeper library logs the session's password at level info; it is kept out whatever RUST_LOG says.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let filter = match ZOOKEEPER_LOG_FILTER.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => EnvFilter::new("off"),
    };
    let colours = output::colours(&std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::diagnostics::Diagnostics)
        .with_ansi(colours)
        .init();
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    fn flags(command: &clap::Command, found: &mut BTreeMap<String, BTreeSet<String>>) {
        for flag in command.get_arguments().filter(|it| !it.is_hide_set() && it.get_action().takes_values()) {
            let (Some(name), Some([value])) = (flag.get_long(), flag.get_value_names()) else { continue };
            // a list of partitions may stand behind a topic
            let value = value.split('[').next().unwrap_or_default().to_owned();
            found.entry(name.to_owned()).or_default().insert(value.clone());
            assert!(
                flag.is_hide_possible_values_set() || flag.get_possible_values().is_empty(),
                "{name}: {value}"
            );
        }
        command.get_subcommands().for_each(|command| flags(command, found));
    }

    #[test]
    fn a_flag_takes_the_same_in_every_command_and_lists_no_values() {
        let mut found = BTreeMap::new();
        flags(&Cli::command(), &mut found);
        assert!(found.contains_key("group") && found.values().all(|values| values.len() == 1), "{found:#?}");
    }
}
