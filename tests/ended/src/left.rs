//! What is left of us in this process.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// A thread that was told to end has left its last function, and is not gone at that very moment.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Our threads by name, and the TCP sockets of the process, when they have had the time to go.
pub fn describe() -> String {
    let begun = Instant::now();
    loop {
        let (threads, sockets) = (threads(), sockets());
        if (threads.is_empty() && sockets == 0) || begun.elapsed() > GONE_WITHIN {
            return format!("left threads {threads:?} sockets {sockets}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("it can be read").flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let ours = names.map(|name| name.trim().to_owned());
    ours.filter(|name| name.starts_with("troupe-") && !name.starts_with("troupe-ended")).collect()
}

/// Of TCP: tokio keeps a pair of its own for signals.
fn sockets() -> usize {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|table| fs::read_to_string(table).ok());
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let tcp: BTreeSet<String> =
        lines.filter_map(|line| Some(format!("socket:[{}]", line.split_whitespace().nth(9)?))).collect();
    let open = fs::read_dir("/proc/self/fd").expect("it can be read").flatten();
    let targets = open.filter_map(|fd| fs::read_link(fd.path()).ok());
    targets.filter(|target| tcp.contains(&*target.to_string_lossy())).count()
}
