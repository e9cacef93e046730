//! `troupe config check`.

use std::path::PathBuf;

use kafka_troupe::proto::config::{CheckedProperty, Treatment, check_file};
use serde::Serialize;

use crate::exit::{Answer, Outcome, finish};
use crate::output::{Output, Row, or_dash};
use crate::properties_file;

/// What to do with a file.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Says per key of an old consumer.properties what Troupe does with it
    ///
    /// Exit code 0 if a consumer starts with this file, 1 if not. `--zookeeper` and `--group` of a command count as
    /// missing here where the file does not have them.
    Check(Args),
}

impl Command {
    /// Does it.
    pub async fn run(self, output: Output) -> Outcome {
        let Self::Check(args) = self;
        run(&args, output)
    }
}

/// Which file.
#[derive(clap::Args)]
pub struct Args {
    /// A consumer.properties
    file: PathBuf,
}

/// Checks a file.
fn run(args: &Args, output: Output) -> Outcome {
    let checked = check_file(&properties_file::read("", &args.file)?);
    let printed = output.print(&checked.iter().map(Checked).collect::<Vec<_>>());
    let (answer, summary) = summary(&checked);
    if printed.is_ok() || answer == Answer::No {
        say!("{}: {summary}", args.file.display());
    }
    finish(printed, Ok(answer))
}

fn summary(checked: &[CheckedProperty]) -> (Answer, String) {
    let count = |treatment: Treatment| checked.iter().filter(|it| it.treatment == treatment).count();
    let (refused, missing) = (count(Treatment::Refused), count(Treatment::Missing));
    let unknown = match count(Treatment::Unknown) {
        0 => String::new(),
        unknown => format!("; {unknown} unknown"),
    };
    match refused + missing {
        0 => (Answer::Yes, format!("a consumer starts with it{unknown}")),
        _ => (
            Answer::No,
            format!("a consumer does not start with it: {refused} refused, {missing} missing{unknown}"),
        ),
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Checked<'a>(&'a CheckedProperty);

impl Row for Checked<'_> {
    const HEAD: &'static [&'static str] = &["LINE", "KEY", "VALUE", "TROUPE", "DEFAULT", "NOTE"];

    fn cells(&self) -> Vec<String> {
        let CheckedProperty { line, key, value, treatment, note, .. } = self.0;
        vec![
            or_dash(*line),
            key.clone(),
            or_dash(value.as_ref()),
            treatment.words().to_owned(),
            self.defaults(),
            note.clone(),
        ]
    }
}

impl Checked<'_> {
    /// Ours, and the old consumer's where it is another.
    fn defaults(&self) -> String {
        match (self.0.default, self.0.old_default) {
            (Some(ours), Some(old)) if ours != old => format!("{ours} (was {old})"),
            (ours, old) => ours.or(old).unwrap_or("-").to_owned(),
        }
    }
}
