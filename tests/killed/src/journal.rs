//! What outlives the member: lines in a file that all members of a group append to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use kafka_troupe::TopicPartition;

/// One member's way into the file.
pub struct Journal {
    file: File,
    /// First in each of its lines.
    name: String,
}

impl Journal {
    pub fn open(path: &str, name: String) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).create(true).open(path)?, name })
    }

    /// The side effect of handling a record.
    pub fn handled(&self, partition: i32, offset: i64, key: &str) -> io::Result<()> {
        self.write(&format!("handled {partition} {offset} {key}"))
    }

    /// A commit is being made.
    pub fn committing(&self) -> io::Result<()> {
        self.write("committing")
    }

    /// The answer of a commit: what is stored of a partition.
    pub fn committed(&self, partition: &TopicPartition, offset: i64) -> io::Result<()> {
        self.write(&format!("committed {} {offset}", partition.partition))
    }

    /// The answer of a commit that failed.
    pub fn failed(&self, error: &str) -> io::Result<()> {
        self.write(&format!("failed {}", error.replace(['\n', ';'], ",")))
    }

    /// One write(2), so that lines of several members do not mix. It may be cut off by a kill where it goes over a page
    /// of the file: so a line begins with its newline, and counts only with its semicolon.
    fn write(&self, what: &str) -> io::Result<()> {
        let line = format!("\n{} {what};", self.name);
        match (&self.file).write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            written => Err(io::Error::other(format!("{written} of {line:?} were written"))),
        }
    }
}
