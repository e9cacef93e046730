//! Programs that tests need, from Debian's packages.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::ClusterError;

#[cfg(test)]
mod tests;

/// How long somebody else's apt, such as the machine's own updates, is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether a program is in one of the folders.
fn has(path: &OsStr, program: &str) -> bool {
    env::split_paths(path).any(|folder| folder.join(program).is_file())
}

/// Sees to it that a program is there that a test needs: `package` is Debian's that has it. Root installs it where it is
/// missing, one test after the other.
///
/// # Errors
/// [`ClusterError::Fetch`]: it is not there, and we are not root, so that somebody else has to install it; or `apt-get`
/// cannot.
pub fn debian_program(program: &str, package: &str) -> Result<(), ClusterError> {
    Installer::here().ensure(program, package)
}

/// Who installs, and from where: another in tests.
#[derive(Clone)]
struct Installer {
    path: OsString,
    is_root: bool,
    /// A folder of apt's: locked, it is one queue for all tests, processes and target folders of the machine.
    queue: PathBuf,
    patience: Duration,
    pause: Duration,
}

impl Installer {
    fn here() -> Self {
        Self {
            path: env::var_os("PATH").unwrap_or_default(),
            is_root: rustix::process::geteuid().is_root(),
            queue: "/var/lib/apt".into(),
            patience: PATIENCE,
            pause: Duration::from_secs(1),
        }
    }

    fn ensure(&self, program: &str, package: &str) -> Result<(), ClusterError> {
        if has(&self.path, program) {
            return Ok(());
        }
        if !self.is_root || !has(&self.path, "apt-get") {
            let what = format!("this needs {program}, of Debian's package {package}: install it");
            return Err(ClusterError::Fetch { what });
        }
        let _turn = queue(&self.queue)?;
        // whoever was before us may have installed it
        if has(&self.path, program) {
            return Ok(());
        }
        tell(&format!("installing {package} by apt-get"));
        self.apt(&["update", "-q"])?;
        self.apt(&["install", "-q", "-y", "--no-install-recommends", package])?;
        if has(&self.path, program) {
            return Ok(());
        }
        let what = format!("apt-get has installed {package}, but no {program} is on the PATH");
        Err(ClusterError::Fetch { what })
    }

    /// Again as long as somebody else has apt's lists or archives, which its own time-out does not cover.
    fn apt(&self, arguments: &[&str]) -> Result<(), ClusterError> {
        let began = Instant::now();
        loop {
            let mut apt = Command::new("apt-get");
            apt.env("PATH", &self.path).env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
            apt.args(["-o", &format!("DPkg::Lock::Timeout={}", PATIENCE.as_secs())]).args(arguments);
            match run(&mut apt) {
                Err(ClusterError::Fetch { what }) if is_locked(&what) => {
                    if began.elapsed() >= self.patience {
                        let what = format!(
                            "another process has had apt's lock for {:?}: end it, or install by hand: {what}",
                            self.patience
                        );
                        return Err(ClusterError::Fetch { what });
                    }
                    thread::sleep(self.pause);
                }
                ended => return ended,
            }
        }
    }
}

/// As apt says it of its lists, its archives and dpkg.
fn is_locked(said: &str) -> bool {
    said.contains("Could not get lock") || said.contains("Unable to lock")
}

/// Waits for our turn with a folder or file; it ends with the handle, and so with the process at the latest.
pub(crate) fn queue(at: &Path) -> Result<File, ClusterError> {
    let failed = || ClusterError::io(format!("lock {}", at.display()));
    let handle = File::open(at).map_err(failed())?;
    flock(&handle, FlockOperation::LockExclusive).map_err(|error| failed()(error.into()))?;
    Ok(handle)
}

/// Says on standard error why it takes long; not by `eprintln!`, which the test harness holds back.
pub(crate) fn tell(what: &str) {
    // a closed standard error is no reason to stop
    let _ = writeln!(io::stderr(), "cluster: {what}");
}

/// Runs a command to its end; its output is kept for the error.
pub(crate) fn run(command: &mut Command) -> Result<(), ClusterError> {
    let output = command.output().map_err(ClusterError::io(format!("run {command:?}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let what = format!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&said));
    Err(ClusterError::Fetch { what })
}
