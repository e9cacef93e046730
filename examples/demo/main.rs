//! `cargo demo`: a real ZooKeeper and Kafka, a million numbered records, and a group whose members join and die.
//!
//! Member `a` lives in this process (an actix app), `b` and `c` are processes of their own: this program again. Each
//! handler writes down what it handled in a file, which no kill can undo. At the end the files are held against what
//! was produced and what stands in ZooKeeper: exit code 0 only if nothing is missing, no more was handled twice than
//! the killed member had not committed, no partition had two owners at once, and all is committed to the end.
//!
//! - `scenario`: what happens, in order; `producing`, `member`: who acts in it.
//! - `board`, `live`, `dashboard`: what is seen meanwhile.
//! - `handled_log`, `group_nodes`, `audit`, `report`: what is found afterwards.

mod audit;
mod board;
mod dashboard;
mod group_nodes;
mod handled_log;
mod live;
mod member;
mod producing;
mod report;
mod scenario;

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use troupe_cluster::{Cluster, KafkaVersion, cache_root};

use member::{GROUP, MemberArgs, TOPIC};
use report::Report;
use scenario::Scenario;

/// A consumer group under load on a real ZooKeeper and Kafka: members join, one is killed, and nothing is lost.
#[derive(Parser)]
#[command(name = "demo")]
struct Arguments {
    #[command(subcommand)]
    member: Option<Role>,
    /// Records to produce, in about 18 seconds
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    records: u64,
    /// Stay up at the end, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

#[derive(Subcommand)]
enum Role {
    /// What the demo starts by itself: another member
    #[command(hide = true)]
    Member(MemberArgs),
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.member {
        Some(Role::Member(member)) => actix::System::new().block_on(member::serve(member)).map(|()| true),
        None => demo(arguments.records, arguments.keep),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs it all; whether all is as it must be. Ctrl-C ends this process, and with it the members, whose standard input
/// closes, and the servers.
fn demo(records: u64, keep: bool) -> Result<bool> {
    eprintln!("starting ZooKeeper and Kafka {}", KafkaVersion::V3_9_1);
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1)?;
    let folder = cluster.folder().join("demo");
    std::fs::create_dir(&folder)?;
    let succeeded = actix::System::new().block_on(run(&cluster, &folder, records, keep));
    if !matches!(succeeded, Ok(true)) {
        let kept = std::env::temp_dir().join(format!("troupe-demo-{}", std::process::id()));
        std::fs::rename(&folder, &kept)?;
        eprintln!("the logs of the members are kept in {}", kept.display());
    }
    succeeded
}

async fn run(cluster: &Cluster, folder: &Path, records: u64, keep: bool) -> Result<bool> {
    let mut scenario = Scenario::start(cluster, folder, records).await?;
    let report = scenario.play().await?;
    let failures = report.failures();
    let mut text = format!("\n{}\n", report.text());
    for failure in &failures {
        text += &format!("FAILED: {failure}\n");
    }
    if failures.is_empty() {
        text += "ok: nothing missing, duplicates within the bound, one owner at a time, all committed\n";
    }
    io::stdout().write_all(text.as_bytes())?;
    if keep {
        io::stdout().write_all(how_to_look(cluster, folder, &report, scenario.dashboard()).as_bytes())?;
        scenario.keep().await?;
    }
    scenario.end().await?;
    Ok(failures.is_empty())
}

/// What one can do with a demo that stays up.
fn how_to_look(cluster: &Cluster, folder: &Path, report: &Report, dashboard: &str) -> String {
    let (zookeeper, folder) = (cluster.zookeeper_connect(), folder.display());
    let c = report.members.iter().find(|member| member.name == "c").map_or(0, |member| member.pid);
    let jars = cache_root().join(KafkaVersion::V3_9_1.to_string());
    let shell =
        format!("java -cp '{}/*' org.apache.zookeeper.ZooKeeperMain -server {zookeeper}", jars.display());
    format!(
        "
all stays up until Ctrl-C:
  the dashboard       {dashboard}
  the group's nodes   {shell} ls -R /consumers/{GROUP}
  an owner            {shell} get /consumers/{GROUP}/owners/{TOPIC}/0
  an offset           {shell} get /consumers/{GROUP}/offsets/{TOPIC}/0
  the records         cargo run --release -- consume --zookeeper {zookeeper} --group look --topic {TOPIC} --from-beginning --max-messages 5
  logs of the members {folder}
  brokers             {}
  a takeover          kill -9 {c}, which is member c, and get the nodes again
",
        cluster.bootstrap()
    )
}
