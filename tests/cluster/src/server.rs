//! What ZooKeeper and a broker have in common: one Java process with a folder, a log and faults to inject.

use crate::{
    ClusterError, KafkaVersion, jars,
    keeper::{Keeper, Streams},
    poll::{Look, until},
    scratch::Scratch,
};
use rustix::process::Signal;
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A fast start and little memory count here, not peak speed.
const JVM_FLAGS: &[&str] = &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"];

/// One server, running or not.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    folder: PathBuf,
    scratch: Arc<Scratch>,
    /// `None` while it is not running.
    keeper: Mutex<Option<Keeper>>,
}

impl Server {
    pub(crate) fn new(scratch: &Arc<Scratch>, name: &str) -> Result<Self, ClusterError> {
        let folder = scratch.path().join(name);
        // it exists when a server of this name failed before
        fs::create_dir_all(&folder).map_err(ClusterError::io(format!("create {}", folder.display())))?;
        Ok(Self { name: name.to_owned(), folder, scratch: Arc::clone(scratch), keeper: Mutex::new(None) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Writes a properties file into the server's folder; of two lines with the same key the later counts.
    pub(crate) fn write_properties(
        &self,
        file: &str,
        properties: &[(String, String)],
    ) -> Result<PathBuf, ClusterError> {
        let path = self.folder.join(file);
        let text: String = properties.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        fs::write(&path, text).map_err(ClusterError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Starts the Java process; an error if it runs already.
    pub(crate) fn start(&self, jars: KafkaVersion, arguments: &[OsString]) -> Result<(), ClusterError> {
        let mut keeper = self.keeper();
        if keeper.is_some() {
            return Err(self.error("is already running"));
        }
        let command = java_command(jars, &self.scratch, arguments)?;
        *keeper = Some(Keeper::start(&self.name, &command, &self.log(), Streams::Log)?);
        Ok(())
    }

    /// Runs a Java process to its end instead, which is to be a success.
    pub(crate) fn run(&self, jars: KafkaVersion, arguments: &[OsString]) -> Result<(), ClusterError> {
        self.start(jars, arguments)?;
        let status = until(&format!("end of a tool for {}", self.name), || {
            let status = self.keeper().as_mut().map(Keeper::ended).transpose()?.flatten();
            Ok(status.map_or_else(|| Look::NotYet("it runs".to_owned()), Look::Done))
        })?;
        self.kill()?;
        if status.success() { Ok(()) } else { Err(self.error(&format!("has a tool that failed: {status}"))) }
    }

    /// Waits until `look` is done; an error with the log's end if the process ends or takes too long.
    pub(crate) fn wait_until_up(
        &self,
        mut look: impl FnMut() -> Result<(), String>,
    ) -> Result<(), ClusterError> {
        let up = until(&self.name, || {
            let status = self.keeper().as_mut().map(Keeper::ended).transpose()?.flatten();
            if let Some(status) = status {
                return Err(self.error(&format!("ended while starting: {status}")));
            }
            Ok(look().map_or_else(Look::NotYet, Look::Done))
        });
        up.map_err(|error| match error {
            ClusterError::TimedOut { within, seen, .. } => {
                self.error(&format!("is not up within {within:?}: {seen}"))
            }
            other => other,
        })
    }

    /// Ends the process as `kill -9` does and waits until it is gone; fine if it is not running.
    pub(crate) fn kill(&self) -> Result<(), ClusterError> {
        self.keeper().take().map_or(Ok(()), |mut keeper| keeper.kill())
    }

    /// Ends the process by SIGTERM and waits until it is gone; fine if it is not running.
    pub(crate) fn stop(&self) -> Result<(), ClusterError> {
        let Some(mut keeper) = self.keeper().take() else { return Ok(()) };
        if keeper.ended()?.is_none() {
            // a paused process would sleep on its SIGTERM
            keeper.resume()?;
            keeper.signal(Signal::TERM)?;
        }
        until(&format!("end of {}", self.name), || {
            Ok(keeper.ended()?.map_or_else(|| Look::NotYet("it runs".to_owned()), |_| Look::Done(())))
        })
    }

    /// Stops the process's world; an error if it is not running.
    pub(crate) fn pause(&self) -> Result<(), ClusterError> {
        self.keeper().as_mut().ok_or_else(|| self.error("is not running"))?.pause()
    }

    /// Lets the process run again; an error if it is not running.
    pub(crate) fn resume(&self) -> Result<(), ClusterError> {
        self.keeper().as_mut().ok_or_else(|| self.error("is not running"))?.resume()
    }

    /// The process id, or `None` while it is not running.
    pub(crate) fn pid(&self) -> Option<u32> {
        let mut keeper = self.keeper();
        let running = keeper.as_mut()?;
        matches!(running.ended(), Ok(None)).then(|| running.pid())
    }

    fn error(&self, what: &str) -> ClusterError {
        ClusterError::server(&self.name, what, &self.log())
    }

    fn keeper(&self) -> MutexGuard<'_, Option<Keeper>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `java` on a version's class path with the cluster's log configuration.
pub(crate) fn java_command(
    version: KafkaVersion,
    scratch: &Scratch,
    arguments: &[OsString],
) -> Result<Vec<OsString>, ClusterError> {
    let mut log4j = OsString::from("-Dlog4j.configuration=file:");
    log4j.push(scratch.log4j());
    let mut command = vec!["java".into(), log4j];
    command.extend(JVM_FLAGS.iter().map(OsString::from));
    command.extend(["-cp".into(), jars::jars(version)?.join("*").into_os_string()]);
    command.extend_from_slice(arguments);
    Ok(command)
}
