//! `troupe`: what people did with Kafka's old consumer scripts, in one program.

mod consume;
mod format;

use std::io::IsTerminal;

use clap::{Parser, Subcommand};
use kafka_troupe::actors::zk_session::ZOOKEEPER_LOG_FILTER;
use tracing_subscriber::EnvFilter;

/// Kafka consumer groups that are coordinated through ZooKeeper.
///
/// Diagnostics go to stderr; RUST_LOG sets their level (default: warn).
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the values of a topic's records, one per line, as a member of a group.
    Consume(consume::Args),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    log_to_stderr();
    let outcome = actix::System::new().block_on(async {
        match cli.command {
            Command::Consume(args) => consume::run(args).await,
        }
    });
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("troupe: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// The ZooKeeper library logs the session's password at level info; it is kept out whatever RUST_LOG says.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let filter = match ZOOKEEPER_LOG_FILTER.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => EnvFilter::new("off"),
    };
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
}
