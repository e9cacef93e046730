//! A member as a process of its own: `troupe consume`, which can be killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::wait::until;

/// A running `troupe consume`; killed when dropped.
pub struct Member {
    child: Child,
    errors: PathBuf,
}

impl Member {
    /// Starts the program; what it prints is appended to `output`.
    pub fn start(arguments: &[String], output: &Path, errors: PathBuf) -> Self {
        let append = |path: &Path| {
            fs::OpenOptions::new().create(true).append(true).open(path).expect("an output file can be opened")
        };
        let child = Command::new(env!("CARGO_BIN_EXE_troupe"))
            .arg("consume")
            .args(arguments)
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(append(output))
            .stderr(append(&errors))
            .spawn()
            .expect("troupe starts");
        Self { child, errors }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM, on which it leaves its group.
    pub fn leave(mut self) -> String {
        self.signal("TERM");
        let status = self.wait();
        let errors = self.errors();
        assert!(status.success(), "{status}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        errors
    }

    pub fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        until("end of a member", || {
            self.child.try_wait().expect("its state is known").ok_or("it runs".to_owned())
        })
    }

    /// What it has written to its log.
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).expect("a log can be read")
    }

    /// Waits for a line in its log with all of these.
    #[track_caller]
    pub fn wait_for_log(&self, parts: &[&str]) {
        until(&format!("log of {parts:?}"), || {
            let log = self.errors();
            let found = log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
            if found { Ok(()) } else { Err(log) }
        });
    }

    /// The time that it has been on a processor.
    pub fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a stat line").1.split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.errors.display(), self.errors());
        }
    }
}
