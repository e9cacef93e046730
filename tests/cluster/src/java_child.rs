//! Any Java program of a version's class path.

use crate::{
    ClusterError, KafkaVersion, jars,
    keeper::{Keeper, Streams},
    scratch::Scratch,
    server::java_command,
};
use rustix::process::Signal;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, ExitStatus},
    sync::Arc,
};

/// A running Java program, such as `kafka.tools.ConsoleConsumer`; killed when dropped.
#[derive(Debug)]
pub struct JavaChild {
    /// Its standard input, until taken; closed by [`JavaChild::wait`].
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until taken. Someone must read it, or the program stops once the pipe is full.
    pub stdout: Option<ChildStdout>,
    keeper: Keeper,
    log: PathBuf,
    /// The log's folder, which must outlive it.
    _scratch: Arc<Scratch>,
}

impl JavaChild {
    pub(crate) fn start(
        scratch: &Arc<Scratch>,
        number: usize,
        version: KafkaVersion,
        main_class: &str,
        arguments: &[&str],
    ) -> Result<Self, ClusterError> {
        Self::run(scratch, &format!("java-{number}-{main_class}"), version, main_class.into(), arguments)
    }

    /// A program of one file in this crate's folder `java`, compiled as it starts.
    pub(crate) fn start_source(
        scratch: &Arc<Scratch>,
        number: usize,
        version: KafkaVersion,
        program: &str,
        arguments: &[&str],
    ) -> Result<Self, ClusterError> {
        jars::ensure_compiler()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java").join(format!("{program}.java"));
        Self::run(scratch, &format!("java-{number}-{program}"), version, source.into(), arguments)
    }

    fn run(
        scratch: &Arc<Scratch>,
        name: &str,
        version: KafkaVersion,
        main: OsString,
        arguments: &[&str],
    ) -> Result<Self, ClusterError> {
        let java = [OsString::from("-Xmx256m"), main].into_iter();
        let java: Vec<OsString> = java.chain(arguments.iter().map(OsString::from)).collect();
        let command = java_command(version, scratch, &java)?;
        let log = scratch.path().join(format!("{name}.log"));
        let mut keeper = Keeper::start(name, &command, &log, Streams::Piped)?;
        let (stdin, stdout) = keeper.take_pipes();
        Ok(Self { stdin, stdout, keeper, log, _scratch: Arc::clone(scratch) })
    }

    /// An error of this program, with the end of its log.
    pub(crate) fn error(&self, what: impl Into<String>) -> ClusterError {
        ClusterError::server(self.keeper.name(), what, &self.log)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// The file with its standard error, which has its log too; it goes with the cluster.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Sends SIGTERM, on which the console tools flush their output and end.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it has ended.
    pub fn term(&mut self) -> Result<(), ClusterError> {
        self.keeper.signal(Signal::TERM)
    }

    /// Stops its world by SIGSTOP.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it has ended.
    pub fn pause(&mut self) -> Result<(), ClusterError> {
        self.keeper.pause()
    }

    /// Lets it run again after [`JavaChild::pause`].
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it has ended.
    pub fn resume(&mut self) -> Result<(), ClusterError> {
        self.keeper.resume()
    }

    /// Ends it by SIGKILL, which loses output that it has buffered, and waits until it is gone.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if its end cannot be waited for.
    pub fn kill(&mut self) -> Result<(), ClusterError> {
        self.keeper.kill()
    }

    /// Closes its standard input, waits for its end and tells how it ended: an exit code, of which one above 128
    /// is 128 and the number of the signal that ended it.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if its end cannot be waited for.
    pub fn wait(&mut self) -> Result<ExitStatus, ClusterError> {
        self.stdin = None;
        self.keeper.wait()
    }

    /// As [`JavaChild::wait`] without waiting: `None` while it runs.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if its state cannot be asked for.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, ClusterError> {
        self.keeper.ended()
    }
}
