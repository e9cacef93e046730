//! The command line, and that nothing outlives it.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `cluster up` with what it printed.
struct Up {
    process: Child,
    printed: HashMap<String, String>,
    /// Holds the state file.
    folder: tempfile::TempDir,
}

impl Up {
    fn start(kafka: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut up = cluster(folder.path());
        let mut process = up.args(["up", "--kafka", kafka]).stdout(Stdio::piped()).spawn()?;
        let stdout = process.stdout.take().ok_or("no stdout")?;
        let mut up = Self { process, printed: HashMap::new(), folder };
        for line in BufReader::new(stdout).lines() {
            match line?.split_once('=') {
                Some((key, value)) => up.printed.insert(key.to_owned(), value.to_owned()),
                None => break,
            };
        }
        Ok(up)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(cluster(self.folder.path()).args(arguments).output()?)
    }

    fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Waits until the servers and their folder are gone.
    fn assert_nothing_left(&self) {
        let pid = |server: &str| Path::new("/proc").join(&self.printed[server]);
        let traces = [pid("pid.zookeeper"), pid("pid.broker-0"), self.printed["folder"].clone().into()];
        let begun = Instant::now();
        while let Some(trace) = traces.iter().find(|trace| trace.exists()) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{} is left", trace.display());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // only a test that failed leaves it running
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Through `env`, since a shell's background job begins with Ctrl-C ignored, and hands that on to all below it: the
/// tests must not hang when they are run as one.
fn cluster(folder: &Path) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_cluster")]);
    command.arg("--state").arg(folder.join("running"));
    command
}

#[test]
fn nothing_outlives_a_process_that_is_killed() -> Result {
    for signal in [Signal::KILL, Signal::INT] {
        let mut up = Up::start("3.9.1")?;
        let pid = i32::try_from(up.process.id())?;
        kill_process(Pid::from_raw(pid).ok_or("no pid")?, signal)?;
        up.process.wait()?;
        up.assert_nothing_left();

        let stale = up.run(&["down"])?;
        assert!(String::from_utf8(stale.stderr)?.contains("no cluster is running"));
    }
    Ok(())
}

#[test]
fn commands_act_on_the_running_cluster() -> Result {
    // whose topics are changed in ZooKeeper, of which only the state file tells
    let mut up = Up::start("0.8.2.2")?;
    assert!(!up.run(&["up"])?.status.success());
    up.succeed(&["topic", "orders", "--partitions", "2"])?;
    assert_eq!(up.succeed(&["topic", "orders", "--partitions", "4"])?, "orders has 4 partitions\n");
    assert!(!up.run(&["topic", "orders", "--partitions", "3"])?.status.success());

    up.succeed(&["kill", "broker-0"])?;
    assert!(!up.run(&["pause", "broker-0"])?.status.success());
    up.succeed(&["restart", "broker-0"])?;
    up.succeed(&["pause", "zookeeper"])?;
    up.succeed(&["resume", "zookeeper"])?;
    assert!(up.succeed(&["produce", "orders", "--records", "20000"])?.starts_with("20000 records to orders"));

    let unknown = up.run(&["kill", "broker-7"])?;
    assert!(String::from_utf8(unknown.stderr)?.contains("there is no server broker-7"));
    up.succeed(&["down"])?;
    assert!(up.process.wait()?.success());
    up.assert_nothing_left();
    Ok(())
}
