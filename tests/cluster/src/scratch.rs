//! The cluster's folder, which goes when we go.

use crate::ClusterError;
use std::{
    env,
    io::{self, PipeWriter},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Removes `$1` once the lifeline on standard input closes; again, as long as a server that is being ended writes.
const JANITOR: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1"; sleep 0.2; [ -e "$1" ] || exit 0; done
"#;

/// Logs of every server: ZooKeeper and Kafka of all generations here read log4j 1 properties.
const LOG4J: &str = "\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m (%c)%n
";

/// A temporary folder with all data and logs of a cluster, removed by a janitor process when this is dropped or our
/// process ends.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    janitor: Child,
    lifeline: Option<PipeWriter>,
}

impl Scratch {
    pub(crate) fn create() -> Result<Self, ClusterError> {
        let folder = tempfile::Builder::new().prefix("troupe-cluster-").tempdir();
        let folder =
            folder.map_err(ClusterError::io(format!("create a folder in {}", env::temp_dir().display())))?;
        let io = || ClusterError::io("start the janitor");
        let (end, lifeline) = io::pipe().map_err(io())?;
        let mut janitor = Command::new("sh");
        janitor.args(["-c", JANITOR, "janitor"]).arg(folder.path()).process_group(0);
        janitor.stdin(end).stdout(Stdio::null()).stderr(Stdio::null());
        let janitor = janitor.spawn().map_err(io())?;
        let scratch = Self { path: folder.keep(), janitor, lifeline: Some(lifeline) };
        std::fs::write(scratch.log4j(), LOG4J).map_err(ClusterError::io("write log4j.properties"))?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration of every Java process's log.
    pub(crate) fn log4j(&self) -> PathBuf {
        self.path.join("log4j.properties")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.lifeline = None;
        // a failed wait leaves nothing to do: the janitor works by itself
        let _ = self.janitor.wait();
    }
}
