//! The journal of all members of a round, and what must be true of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Handled {
        partition: i32,
        offset: i64,
        key: String,
    },
    Committing,
    /// What is stored of a partition.
    Committed {
        partition: i32,
        offset: i64,
    },
    Failed(String),
}

/// All lines, in the order in which they were written, each with the member that wrote it.
pub struct Journal {
    file: File,
    /// What was read after the last whole line.
    rest: Vec<u8>,
    entries: Vec<(String, Entry)>,
    keys: BTreeSet<String>,
    handled: BTreeMap<String, usize>,
    commits: BTreeMap<String, usize>,
}

impl Journal {
    /// An empty one.
    pub fn create(path: &Path) -> Self {
        let file = File::options().create_new(true).append(true).read(true).open(path);
        Self {
            file: file.expect("a file can be made"),
            rest: Vec::new(),
            entries: Vec::new(),
            keys: BTreeSet::new(),
            handled: BTreeMap::new(),
            commits: BTreeMap::new(),
        }
    }

    /// Reads what was written since the last time. A line that a kill cut off is none: its record counts as not
    /// handled.
    pub fn read_on(&mut self) -> &Self {
        self.file.read_to_end(&mut self.rest).expect("the journal can be read");
        let bytes = std::mem::take(&mut self.rest);
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if let Some(last) = lines.pop_if(|last| !last.ends_with(b";")) {
            self.rest = last.to_vec();
        }
        for line in lines.iter().filter_map(|line| line.strip_suffix(b";")) {
            self.add(parse(std::str::from_utf8(line).expect("a journal is text")));
        }
        self
    }

    fn add(&mut self, (member, entry): (String, Entry)) {
        match &entry {
            Entry::Handled { key, .. } => {
                self.keys.insert(key.clone());
                *self.handled.entry(member.clone()).or_default() += 1;
            }
            Entry::Committing => *self.commits.entry(member.clone()).or_default() += 1,
            Entry::Committed { .. } | Entry::Failed(_) => {}
        }
        self.entries.push((member, entry));
    }

    /// How many records a member has handled.
    pub fn handled_by(&self, member: &str) -> usize {
        self.handled.get(member).copied().unwrap_or_default()
    }

    /// How many commits a member has begun.
    pub fn commits_of(&self, member: &str) -> usize {
        self.commits.get(member).copied().unwrap_or_default()
    }

    /// How many records were handled, each counted once.
    pub fn distinct(&self) -> usize {
        self.keys.len()
    }

    fn handled(&self) -> impl Iterator<Item = (&str, (i32, i64))> {
        self.entries.iter().filter_map(|(member, entry)| match entry {
            Entry::Handled { partition, offset, .. } => Some((member.as_str(), (*partition, *offset))),
            Entry::Committing | Entry::Committed { .. } | Entry::Failed(_) => None,
        })
    }

    /// Everything that must be true whatever is killed when. How many records were handled again, by the
    /// killed member that had handled them before.
    #[track_caller]
    pub fn check(&self, killed: &BTreeSet<String>, streams: usize) -> BTreeMap<String, usize> {
        self.check_order_in_each_life();
        self.check_nothing_is_skipped();
        self.check_where_each_begins();
        self.check_commits();
        self.handled_again(killed, streams)
    }

    /// Each member handles the records of a partition in their order, none twice.
    #[track_caller]
    fn check_order_in_each_life(&self) {
        let mut last = BTreeMap::new();
        for (member, (partition, offset)) in self.handled() {
            let before = last.insert((member, partition), offset).unwrap_or(-1);
            assert!(offset > before, "{member} handled {partition}@{offset} after {before}");
        }
    }

    /// No record is handled before all that come before it in its partition were.
    #[track_caller]
    pub fn check_nothing_is_skipped(&self) {
        let mut next = BTreeMap::new();
        for (member, (partition, offset)) in self.handled() {
            let next = next.entry(partition).or_insert(0);
            assert!(offset <= *next, "{member} handled {partition}@{offset} before {next}");
            *next = (*next).max(offset + 1);
        }
    }

    /// Whoever takes a partition over begins at or after what was stored of it before.
    #[track_caller]
    fn check_where_each_begins(&self) {
        let (mut stored, mut holder) = (BTreeMap::new(), BTreeMap::new());
        for (member, entry) in &self.entries {
            match entry {
                Entry::Committed { partition, offset } => {
                    let stored = stored.entry(*partition).or_insert(0);
                    *stored = (*offset).max(*stored);
                }
                Entry::Handled { partition, offset, .. } => {
                    let before = holder.insert(*partition, member);
                    let stored = stored.get(partition).copied().unwrap_or(0);
                    let goes_on = before == Some(member) || *offset >= stored;
                    assert!(goes_on, "{member} began {partition} at {offset}, and {stored} was stored");
                }
                Entry::Committing | Entry::Failed(_) => {}
            }
        }
    }

    #[track_caller]
    fn check_commits(&self) {
        let failed: Vec<_> =
            self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Failed(_))).collect();
        assert!(failed.is_empty(), "commits that failed: {failed:?}");
    }

    /// What is handled again was left uncommitted by a kill: it was handled since the last commit that was answered was
    /// begun, or was in the hands of so many streams then.
    #[track_caller]
    fn handled_again(&self, killed: &BTreeSet<String>, streams: usize) -> BTreeMap<String, usize> {
        let mut again: BTreeMap<String, usize> = killed.iter().map(|member| (member.clone(), 0)).collect();
        let mut holder: BTreeMap<(i32, i64), &str> = BTreeMap::new();
        for (member, record) in self.handled() {
            let Some(before) = holder.insert(record, member) else { continue };
            let Some(count) = again.get_mut(before) else {
                panic!("{member} handled {record:?} again, which {before} had, that was not killed")
            };
            *count += 1;
        }
        for (member, count) in &again {
            let left = self.left_by(member);
            assert!(
                *count <= left + streams,
                "{count} that {member} had were handled again, and it left {left}"
            );
        }
        again
    }

    /// How many records a member has handled since it began the last of its commits that was answered.
    fn left_by(&self, member: &str) -> usize {
        let (mut since_answered, mut since_begun) = (0, 0);
        for (_, entry) in self.entries.iter().filter(|(its, _)| its == member) {
            match entry {
                Entry::Handled { .. } => {
                    since_answered += 1;
                    since_begun += 1;
                }
                Entry::Committing => since_begun = 0,
                Entry::Committed { .. } => since_answered = since_begun,
                Entry::Failed(_) => {}
            }
        }
        since_answered
    }
}

fn parse(line: &str) -> (String, Entry) {
    let fields: Vec<&str> = line.splitn(3, ' ').collect();
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("odd line: {line:?}"));
    let rest: Vec<&str> = fields.get(2).map(|rest| rest.split(' ').collect()).unwrap_or_default();
    let entry = match (fields[1], rest.as_slice()) {
        ("handled", [partition, offset, key]) => Entry::Handled {
            partition: number(partition) as i32,
            offset: number(offset),
            key: (*key).to_owned(),
        },
        ("committing", []) => Entry::Committing,
        ("committed", [partition, offset]) => {
            Entry::Committed { partition: number(partition) as i32, offset: number(offset) }
        }
        ("failed", why) => Entry::Failed(why.join(" ")),
        _ => panic!("odd line: {line:?}"),
    };
    (fields[0].to_owned(), entry)
}
