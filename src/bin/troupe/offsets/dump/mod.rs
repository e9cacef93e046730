//! `troupe offsets dump`: what the brokers keep of groups in `__consumer_offsets`.
//!
//! | file | what |
//! |---|---|
//! | `reading` | all records of the topic, or those of one group's partition |
//! | `row` | a record as JSON |

mod reading;
mod row;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::str::FromStr;

use kafka_troupe::proto::kafka::offsets_topic::{OffsetsFormatter, OffsetsRecord, decode};

use crate::exit::{Answer, Failure, Outcome};
use crate::output::Output;
use crate::output::shown::shown;
use crate::servers::Servers;
use reading::Reading;
use row::{DumpedRow, Place};

/// What to print of it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// Only this group's records; just the partition is read in which they are
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// offsets, groups, both, or the class of Kafka's formatter as it was given to the console consumer
    #[arg(long, value_name = "NAME", default_value = "both")]
    pub formatter: Kinds,
    /// Only what counts now: the last record of each key, unless it is a deletion
    #[arg(long, conflicts_with = "follow")]
    pub latest: bool,
    /// Go on with what is written from now on; as JSON, an object a line instead of one array
    #[arg(long)]
    pub follow: bool,
    #[arg(long, hide = true)]
    pub from_beginning: bool,
}

/// `--formatter`: which records, and whose lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    formatters: Vec<OffsetsFormatter>,
    /// Records of kinds that no formatter has are marked, too.
    marks_unknown: bool,
}

impl FromStr for Kinds {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        use OffsetsFormatter::{Groups, Offsets};
        let formatters = match name {
            "both" => vec![Offsets, Groups],
            "offsets" => vec![Offsets],
            "groups" => vec![Groups],
            class => OffsetsFormatter::of_class(class).into_iter().collect(),
        };
        if formatters.is_empty() {
            return Err("must be offsets, groups, both, or one of Kafka's classes whose name ends in \
                        $OffsetsMessageFormatter or $GroupMetadataMessageFormatter"
                .to_owned());
        }
        Ok(Self { marks_unknown: formatters.len() == 2, formatters })
    }
}

impl Kinds {
    /// The line of a record; none for one that is not asked for.
    fn line(&self, record: &OffsetsRecord) -> Option<String> {
        let line = self.formatters.iter().find_map(|formatter| formatter.line(record));
        line.or_else(|| match record {
            OffsetsRecord::Unknown { version, key, .. } if self.marks_unknown => {
                Some(format!("UNKNOWN[key of version {version}, {} bytes]", key.len()))
            }
            OffsetsRecord::Damaged { key: None, .. } if self.marks_unknown => {
                Some("DAMAGED[no key]".to_owned())
            }
            _ => None,
        })
    }
}

/// Prints the records, and goes on over what cannot be read.
pub async fn run(args: Args, output: Output) -> Outcome {
    let admin = args.servers.kafka().await?;
    let Some(mut reading) = Reading::open(&admin, args.group.as_deref(), args.follow).await? else {
        say!("there is no __consumer_offsets: no group has stored anything in Kafka yet");
        if output == Output::Json && !args.follow {
            writeln!(io::stdout(), "[]")?;
        }
        return Ok(if args.group.is_some() { Answer::No } else { Answer::Yes });
    };
    let mut dump = Dump { kinds: &args.formatter, output, follow: args.follow, printed: 0 };
    // of each key: copies, as a record keeps all of the answer that it came in
    let mut last = BTreeMap::<Vec<u8>, (Place, Vec<u8>)>::new();
    while let Some(record) = reading.next().await {
        let decoded = decode(record.key(), record.value_bytes());
        if !is_wanted(&decoded, args.group.as_deref()) {
            continue;
        }
        let (place, key) = (Place::of(&record), record.key().unwrap_or_default());
        match (args.latest, record.value()) {
            (false, value) => dump.print(place, value.is_none(), &decoded)?,
            (true, None) => drop(last.remove(key)),
            (true, Some(value)) => {
                last.insert(key.to_vec(), (place, value.to_vec()));
            }
        }
    }
    let mut last: Vec<_> = last.into_iter().collect();
    last.sort_by_key(|(_, (place, _))| place.order());
    for (key, (place, value)) in last {
        dump.print(place, false, &decode(Some(&key), Some(value.into())))?;
    }
    dump.end()?;
    match (reading.unread(), &args.group) {
        (Some(failure), _) => Err(failure),
        (None, Some(group)) if dump.printed == 0 => {
            say!("nothing of group {group} is in {}", reading.place());
            Ok(Answer::No)
        }
        _ => Ok(Answer::Yes),
    }
}

/// Whether a record is of the group.
fn is_wanted(record: &OffsetsRecord, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    match record {
        OffsetsRecord::Offset { group, .. } | OffsetsRecord::Group { group, .. } => **group == *wanted,
        _ => false,
    }
}

/// Prints records one by one.
struct Dump<'a> {
    kinds: &'a Kinds,
    output: Output,
    follow: bool,
    printed: u64,
}

impl Dump<'_> {
    fn print(&mut self, place: Place, deleted: bool, decoded: &OffsetsRecord) -> Result<(), Failure> {
        let Some(line) = self.kinds.line(decoded) else { return Ok(()) };
        let mut out = io::stdout().lock();
        match self.output {
            // names that others chose
            Output::Table if out.is_terminal() => writeln!(out, "{}", shown(&line))?,
            Output::Table => writeln!(out, "{line}")?,
            Output::Json => {
                let row = serde_json::to_string(&DumpedRow::new(place, deleted, decoded))?;
                let before = match (self.follow, self.printed) {
                    (true, _) => "",
                    (false, 0) => "[\n  ",
                    (false, _) => ",\n  ",
                };
                write!(out, "{before}{row}{}", if self.follow { "\n" } else { "" })?;
            }
        }
        self.printed += 1;
        Ok(())
    }

    fn end(&self) -> Result<(), Failure> {
        if self.output == Output::Json && !self.follow {
            writeln!(io::stdout().lock(), "{}", if self.printed == 0 { "[]" } else { "\n]" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
