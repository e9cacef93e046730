//! `troupe offsets export`.

use std::fs;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kafka_troupe::admin::{AdminError, ZooKeeperAdmin};
use kafka_troupe::proto::zk::offsets_file::OffsetLine;
use kafka_troupe::proto::zk::paths::GroupPaths;
use serde_json::json;

use crate::exit::{Answer, Failure, Outcome, finish};
use crate::output::progress::Progress;
use crate::output::{Output, print_json};
use crate::servers::Servers;

const HELP: &str = "\
Lines are as kafka.tools.ExportZkOffsets wrote them: /consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET, with paths below
the chroot. Offsets that groups store in Kafka are not among them.

The output file takes the place of one of that name when all is read and written; else that one stays, and what was
read is in FILE.partial (exit code 3).";

/// Of which groups, where to.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A group; may be repeated. Without, all groups
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Where to; without, stdout
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

/// Exports offsets.
pub async fn run(args: Args, output: Output) -> Outcome {
    let zookeeper = args.servers.zookeeper().await?;
    let exported = read(&zookeeper, &args.group).await;
    zookeeper.close().await;
    let Exported { lines, problems, failure } = exported?;
    problems.iter().for_each(|why| say!("{why}"));
    let printed = match &args.output_file {
        Some(path) => {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let written = write(path, &text, failure.is_none());
            written.map(|to| say!("{} offsets are in {}", lines.len(), to.display()))
        }
        None => print(&lines, output),
    };
    let outcome = match failure {
        Some(why) => Err(Failure::work(format!("not every group could be read: {why}"))),
        None if problems.is_empty() => Ok(Answer::Yes),
        None => Ok(Answer::No),
    };
    finish(printed, outcome)
}

/// What is in ZooKeeper.
#[derive(Default)]
struct Exported {
    lines: Vec<OffsetLine>,
    /// What was asked for and is not among them.
    problems: Vec<String>,
    /// Why not all of it is.
    failure: Option<AdminError>,
}

async fn read(zookeeper: &ZooKeeperAdmin, named: &[String]) -> Result<Exported, Failure> {
    let mut groups = if named.is_empty() { zookeeper.groups().await? } else { named.to_vec() };
    groups.sort_unstable();
    groups.dedup();
    let mut exported = Exported::default();
    let progress = Progress::of("groups read", Some(groups.len() as u64));
    for group in groups {
        progress.add(1);
        if !zookeeper.group_exists(&group).await? {
            // one that has gone since they were listed is no problem
            if named.contains(&group) {
                exported.problems.push(AdminError::NoSuchGroup { group }.to_string());
            }
            continue;
        }
        let nodes = zookeeper.offsets(&group).await;
        let nodes = nodes.unwrap_or_else(|why| {
            exported.problems.push(format!("group {group:?} is left out: {why}"));
            exported.failure = Some(why);
            Vec::new()
        });
        for node in nodes {
            match node.offset {
                Ok(offset) => exported.lines.push(OffsetLine { group: group.clone(), key: node.key, offset }),
                Err(why) => {
                    let path = GroupPaths::new(&group).offset(&node.key);
                    exported.problems.push(format!("{path} is left out: {why}"));
                }
            }
        }
    }
    Ok(exported)
}

/// To where it is written: beside the file, whose place it takes when it is complete and on the disk.
fn write(path: &Path, text: &str, is_complete: bool) -> io::Result<PathBuf> {
    let named = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{} is not written: {error}", path.display()))
    };
    // a link stays one; there is no place to be taken of a pipe or a terminal
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|it| !it.is_file()) {
        return fs::write(&path, text).map_err(|error| named(&path, error)).map(|()| path);
    }
    let mut partial = path.clone().into_os_string();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| named(&partial, error))?;
    if !is_complete {
        return Ok(partial);
    }
    if let Some(before) = before {
        fs::set_permissions(&partial, before.permissions()).map_err(|error| named(&partial, error))?;
    }
    fs::rename(&partial, &path).map_err(|error| named(&path, error)).map(|()| path)
}

fn print(lines: &[OffsetLine], output: Output) -> io::Result<()> {
    if output == Output::Json {
        let row = |OffsetLine { group, key, offset }: &OffsetLine| json!({ "group": group, "topic": &*key.topic, "partition": key.partition, "offset": offset });
        return print_json(&lines.iter().map(row).collect::<Vec<_>>());
    }
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_a_complete_one_only() {
        let folder = tempfile::tempdir().unwrap();
        let (file, partial) = (folder.path().join("offsets"), folder.path().join("offsets.partial"));
        let real = |path: &Path| fs::canonicalize(path).unwrap();
        write(&file, "yesterday\n", true).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), partial.exists()), ("yesterday\n", false));

        assert_eq!(real(&write(&file, "half\n", false).unwrap()), real(&partial));
        assert_eq!(fs::read_to_string(&file).unwrap(), "yesterday\n");
        assert_eq!(fs::read_to_string(&partial).unwrap(), "half\n");

        assert_eq!(real(&write(&file, "today\n", true).unwrap()), real(&file));
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), partial.exists()), ("today\n", false));
    }

    #[test]
    fn what_cannot_be_written_is_named_and_code_3() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("none/offsets"), "", true).unwrap_err();
        assert!(error.to_string().contains("none/offsets.partial is not written"), "{error}");
        assert!(matches!(finish(Err(error), Ok(Answer::Yes)), Err(Failure::Work(_))));
    }
}
