//! One life of a member: a process, which is killed or leaves.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A running member; killed when dropped.
pub struct Member {
    /// Of this life only.
    pub name: String,
    pub begun: Instant,
    child: Child,
    log: PathBuf,
}

impl Member {
    /// Starts it with these arguments after the journal and its name.
    pub fn start(folder: &Path, name: String, arguments: &[String]) -> Self {
        let log = folder.join(format!("{name}.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_troupe-killed"))
            .arg(folder.join("journal"))
            .arg(&name)
            .args(arguments)
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("a log can be made"))
            .spawn()
            .expect("a member starts");
        Self { name, begun: Instant::now(), child, log }
    }

    /// `kill -9`.
    #[track_caller]
    pub fn kill(mut self) {
        self.check_that_it_runs();
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM, on which it leaves its group.
    #[track_caller]
    pub fn leave(mut self) {
        self.check_that_it_runs();
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{} ended by {status}", self.name);
    }

    #[track_caller]
    pub fn check_that_it_runs(&mut self) {
        let ended = self.child.try_wait().expect("its state is known");
        assert!(ended.is_none(), "{} has ended by itself: {ended:?}", self.name);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("--- {}\n{log}", self.log.display());
        }
    }
}
