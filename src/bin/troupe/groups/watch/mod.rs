//! `troupe groups watch`: a group, live.
//!
//! - `reading`: reads the group again and again;
//! - `snapshot`: what a read brings, of either coordination;
//! - `view`: what is shown of it, in which order, and what changed: neither terminal nor clock;
//! - `cells`, `columns`: the view as texts in columns that fit;
//! - `screen`, `draw`: on a terminal; `plain`: elsewhere.
//!
//! A partition that has just moved, one that nobody owns, and a broker that does not answer look so:
//!
//! ```text
#![doc = include_str!("golden/sample.txt")]
//! ```

mod cells;
mod columns;
mod draw;
mod plain;
mod reading;
#[cfg(test)]
mod sample;
mod screen;
mod snapshot;
mod view;

use std::io::{self, ErrorKind, IsTerminal};
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver};
use tokio::time::timeout;

use crate::exit::{Answer, Failure, Outcome};
use crate::output::Output;
use crate::output::shown::shown;
use crate::servers::Servers;
use crate::time::now_ms;
use reading::Reader;
use snapshot::Snapshot;
use view::{Sort, View};

/// How long the end of the session may hold up the end of the program.
const GOODBYE: Duration = Duration::from_secs(1);

/// Which group, how often.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// The group
    #[arg(long, value_name = "GROUP")]
    pub group: String,
    /// Seconds between two reads
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub interval: Duration,
    /// Read so often, then end; on a terminal too it prints plain tables then. Default: for ever
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// The order of partitions
    #[arg(long, value_enum, value_name = "lag|topic", default_value_t, hide_possible_values = true)]
    pub sort: Sort,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|it| (0.1..=86_400.0).contains(it));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "seconds from 0.1 to 86400".to_owned())
}

/// Shows a group live on a terminal; else, or with --iterations or --output json, prints each read.
pub async fn run(args: Args, output: Output) -> Outcome {
    let view = View::new(args.sort);
    let (tell, reads) = mpsc::channel(1);
    let reader = Reader::new(args.servers, args.group.clone())?;
    let reading = actix::spawn(reader.read_for_ever(args.interval, tell));
    let on_screen = output == Output::Table && args.iterations.is_none() && io::stdout().is_terminal();
    let outcome = match on_screen {
        true => screen::show(&args.group, view, reads).await.map(|()| Answer::Yes).map_err(Failure::work),
        false => print(&args.group, view, reads, output, args.iterations.unwrap_or(u64::MAX)).await,
    };
    // it ends its session, if ZooKeeper lets it
    let _ = timeout(GOODBYE, reading).await;
    outcome
}

/// Prints each read. The last one tells how it ends: a group that cannot be read is no success.
async fn print(
    group: &str,
    mut view: View,
    mut reads: Receiver<Result<Snapshot, String>>,
    output: Output,
    iterations: u64,
) -> Outcome {
    for left in (0..iterations).rev() {
        let Some(read) = reads.recv().await else { break };
        view.take(read, now_ms());
        match plain::print(&mut io::stdout().lock(), output, group, &view) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Answer::Yes),
            printed => printed?,
        }
        match &view.failure {
            Some(failure) if left == 0 => return Err(Failure::work(&failure.why)),
            Some(failure) => say!("troupe: {}", shown(&failure.why)),
            None => {}
        }
    }
    let exists = view.latest().is_some_and(|latest| latest.exists);
    Ok(if exists { Answer::Yes } else { Answer::No })
}
