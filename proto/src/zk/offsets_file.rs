//! The file of the old tools `ExportZkOffsets` and `ImportZkOffsets`: one committed offset a line,
//! `/consumers/<group>/offsets/<topic>/<partition>:<offset>`, with paths relative to the chroot.
//!
//! The old import took all up to the first empty line and dropped the rest without a word; here empty lines mean
//! nothing. It also cut at the first colon, which groups may have in their names; here the last one counts.

use std::fmt;

use crate::TopicPartition;
use crate::offset_lines::{self, LineErrors};
use crate::zk::paths::{CONSUMERS, GroupPaths};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetLine {
    /// The group.
    pub group: String,
    /// The partition.
    pub key: TopicPartition,
    /// The next offset to consume; the old consumer writes -1 for "no position yet".
    pub offset: i64,
}

impl fmt::Display for OffsetLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", GroupPaths::new(&self.group).offset(&self.key), self.offset)
    }
}

/// Reads a file; lines come sorted by group, topic and partition, each partition once.
///
/// # Errors
/// Every line that is not one, and those that say otherwise than an earlier line about the same partition.
pub fn parse(text: &str) -> Result<Vec<OffsetLine>, LineErrors> {
    let known = offset_lines::parse(text, parse_line)?;
    Ok(known.into_iter().map(|((group, key), offset)| OffsetLine { group, key, offset }).collect())
}

fn parse_line(line: &str) -> Result<((String, TopicPartition), i64), String> {
    let (path, offset) = line.rsplit_once(':').ok_or("has no colon before an offset")?;
    let offset = offset.parse().map_err(|_| format!("ends with {offset:?}, which is not an offset"))?;
    let names = path.strip_prefix(CONSUMERS).and_then(|path| path.strip_prefix('/'));
    let names: Vec<&str> = names.unwrap_or_default().split('/').collect();
    let [group, "offsets", topic, partition] = names[..] else {
        return Err("is not /consumers/<group>/offsets/<topic>/<partition>:<offset>".to_owned());
    };
    if let Some(odd) = [group, topic].into_iter().find(|name| matches!(*name, "" | "." | "..")) {
        return Err(format!("names {odd:?}, which cannot be a node of ZooKeeper"));
    }
    let number =
        partition.parse().ok().filter(|number: &i32| *number >= 0 && number.to_string() == partition);
    let number = number.ok_or_else(|| format!("names {partition:?}, which is not a partition"))?;
    Ok(((group.to_owned(), TopicPartition::new(topic, number)), offset))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetLine {
        OffsetLine { group: group.to_owned(), key: TopicPartition::new(topic, partition), offset }
    }

    fn errors(text: &str) -> Vec<String> {
        parse(text).expect_err(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_is_the_path_and_the_offset() {
        let line = line("g", "t.x", 7, 125);
        assert_eq!(line.to_string(), "/consumers/g/offsets/t.x/7:125");
        assert_eq!(parse("/consumers/g/offsets/t.x/7:125\n"), Ok(vec![line]));
    }

    #[test]
    fn what_stands_behind_an_empty_line_counts_too() {
        let text = "\n/consumers/g/offsets/t/1:5\r\n\r\n\n/consumers/g/offsets/t/0:4";
        assert_eq!(parse(text), Ok(vec![line("g", "t", 0, 4), line("g", "t", 1, 5)]));
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn names_may_have_colons() {
        let text = "/consumers/a:b/offsets/t/0:-1";
        assert_eq!(parse(text), Ok(vec![line("a:b", "t", 0, -1)]));
    }

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let shape = "is not /consumers/<group>/offsets/<topic>/<partition>:<offset>";
        let text = "/consumers/g/offsets/t/0:1\n/consumers/g/offsets/t/0\n\n/consumers/g/offsets/t/0:x\nt,0,5\n\
                    /kafka/consumers/g/offsets/t/0:1\n/consumers/g/owners/t/0:1\n/consumers/../offsets/t/0:1\n\
                    /consumers/g/offsets//0:1\n/consumers/g/offsets/t/-1:1\n/consumers/g/offsets/t/00:1\n\
                    /consumers/g/offsets/t/0: 1\n/consumers/g/offsets/t/0:1 ";
        assert_eq!(
            errors(text),
            [
                "line 2: \"/consumers/g/offsets/t/0\" has no colon before an offset",
                "line 4: \"/consumers/g/offsets/t/0:x\" ends with \"x\", which is not an offset",
                "line 5: \"t,0,5\" has no colon before an offset",
                &format!("line 6: \"/kafka/consumers/g/offsets/t/0:1\" {shape}"),
                &format!("line 7: \"/consumers/g/owners/t/0:1\" {shape}"),
                "line 8: \"/consumers/../offsets/t/0:1\" names \"..\", which cannot be a node of ZooKeeper",
                "line 9: \"/consumers/g/offsets//0:1\" names \"\", which cannot be a node of ZooKeeper",
                "line 10: \"/consumers/g/offsets/t/-1:1\" names \"-1\", which is not a partition",
                "line 11: \"/consumers/g/offsets/t/00:1\" names \"00\", which is not a partition",
                "line 12: \"/consumers/g/offsets/t/0: 1\" ends with \" 1\", which is not an offset",
                "line 13: \"/consumers/g/offsets/t/0:1 \" ends with \"1 \", which is not an offset",
            ]
        );
    }

    #[test]
    fn lines_that_contradict_each_other_are_refused() {
        let text = "/consumers/g/offsets/t/0:1\n/consumers/g/offsets/t/0:1\n/consumers/g/offsets/t/0:2\n";
        assert_eq!(errors(text), ["line 3: \"/consumers/g/offsets/t/0:2\" says otherwise than line 1"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            lines in proptest::collection::btree_map(
                ("[^/\r\n]{1,9}", "[a-zA-Z0-9._-]{1,9}", 0..=i32::MAX), any::<i64>(), 0..20,
            ),
            is_windows in any::<bool>(),
        ) {
            prop_assume!(lines.keys().all(|(group, topic, _)| ![group, topic].iter().any(|name| [".", ".."].contains(&name.as_str()))));
            let lines: Vec<OffsetLine> =
                lines.iter().map(|((group, topic, partition), offset)| line(group, topic, *partition, *offset)).collect();
            let end = if is_windows { "\r\n" } else { "\n" };
            let text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let mut sorted = lines;
            sorted.sort();
            prop_assert_eq!(parse(&text), Ok(sorted));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(/consumers/|/offsets/|[a:/0-9\\.\n-]){0,12}|.{0,40}") {
            let _ = parse(&text);
        }
    }
}
