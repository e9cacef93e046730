//! A process that never outlives us.

use crate::{
    ClusterError,
    poll::{Look, until},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsString,
    fs,
    io::{self, PipeWriter, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

/// Keeps `$@` until it ends or the lifeline on descriptor 2 closes. Standard input and output are the kept
/// process's own; its first output is its process id, printed by the shell that becomes it. Errors go to log `$1`.
const KEEP: &str = r#"
exec 3<&2 2>>"$1" 4<&0; shift
sh -c 'echo $$; exec "$@"' sh "$@" <&4 3<&- 4<&- & pid=$!
exec </dev/null >/dev/null 4<&-
{ read -r _ <&3; kill -9 $pid; } & watcher=$!
wait $pid; status=$?
kill $watcher
exit $status
"#;

/// What standard input and output of a kept process are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// Nothing to read, and all output to the log.
    Log,
    /// Pipes to us.
    Piped,
}

/// A running process and the shell that keeps it.
///
/// The keeper is in a process group of its own, so that Ctrl-C in our terminal reaches only us. We hold the only
/// write end of its lifeline (close-on-exec, so no other child inherits it): when we close it or end in any way,
/// the keeper ends the process by its id.
#[derive(Debug)]
pub(crate) struct Keeper {
    name: String,
    log: PathBuf,
    shell: Child,
    pid: Pid,
    /// Held, never written; `None` once closed.
    lifeline: Option<PipeWriter>,
}

impl Keeper {
    /// Starts `command` (program and arguments) and learns its process id.
    pub(crate) fn start(
        name: &str,
        command: &[OsString],
        log: &Path,
        streams: Streams,
    ) -> Result<Self, ClusterError> {
        let io = || ClusterError::io(format!("start {name}"));
        let (end, lifeline) = io::pipe().map_err(io())?;
        let mut shell = Command::new("sh");
        shell.args(["-c", KEEP, "keeper"]).arg(log).process_group(0).stdout(Stdio::piped()).stderr(end);
        shell.stdin(if streams == Streams::Piped { Stdio::piped() } else { Stdio::null() });
        if streams == Streams::Log {
            shell.args(["sh", "-c", r#"exec "$@" >>"$0" 2>&1"#]).arg(log);
        }
        let mut shell = shell.args(command).spawn().map_err(io())?;
        let Some(pid) = read_pid(&mut shell).map_err(io())? else {
            return Err(ClusterError::server(name, "did not start", log));
        };
        Ok(Self { name: name.to_owned(), log: log.to_owned(), shell, pid, lifeline: Some(lifeline) })
    }

    /// The kept process's id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Both pipes of a process started with [`Streams::Piped`], once.
    pub(crate) fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>) {
        (self.shell.stdin.take(), self.shell.stdout.take())
    }

    /// How the process ended (a signal as 128 and its number), or `None` if it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, ClusterError> {
        self.shell.try_wait().map_err(ClusterError::io(format!("ask for the end of {}", self.name)))
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, ClusterError> {
        self.shell.wait().map_err(ClusterError::io(format!("wait for the end of {}", self.name)))
    }

    /// Sends a signal to the process; an error if it has ended.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), ClusterError> {
        if let Some(status) = self.ended()? {
            return Err(ClusterError::server(
                &self.name,
                format!("has ended by itself: {status}"),
                &self.log,
            ));
        }
        kill_process(self.pid, signal)
            .map_err(|e| ClusterError::io(format!("signal {signal:?} to {}", self.name))(e.into()))
    }

    /// Stops the process's world by SIGSTOP and waits until each of its threads stands still, which takes a while
    /// on a busy machine: the signal is first taken by one thread, which stops the others.
    pub(crate) fn pause(&mut self) -> Result<(), ClusterError> {
        self.signal(Signal::STOP)?;
        let tasks = format!("/proc/{}/task", self.pid());
        until(&format!("stop of {}", self.name), || {
            let tasks = fs::read_dir(&tasks).map_err(ClusterError::io(format!("list {tasks}")))?;
            let running = tasks.flatten().any(|task| !stands_still(&task.path()));
            Ok(if running { Look::NotYet("a thread runs".to_owned()) } else { Look::Done(()) })
        })
    }

    /// Lets the process run again.
    pub(crate) fn resume(&mut self) -> Result<(), ClusterError> {
        self.signal(Signal::CONT)
    }

    /// Ends the process by SIGKILL and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<(), ClusterError> {
        self.lifeline = None;
        self.wait().map(drop)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // nothing more can be done here if the wait fails: the closed lifeline ends the process all the same
        let _ = self.kill();
    }
}

/// Whether a thread is stopped or gone: its state follows its name, which is in parentheses.
fn stands_still(task: &Path) -> bool {
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['T', 't', 'Z', 'X']))
}

/// The first line of output, read byte by byte because what follows is the process's own.
fn read_pid(shell: &mut Child) -> io::Result<Option<Pid>> {
    let mut line = String::new();
    if let Some(stdout) = &mut shell.stdout {
        let mut byte = [0];
        while stdout.read(&mut byte)? == 1 && byte[0] != b'\n' {
            line.push(char::from(byte[0]));
        }
    }
    Ok(line.parse().ok().and_then(Pid::from_raw))
}
