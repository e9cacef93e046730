//! Rows of a reset in a file, as `kafka-consumer-groups --reset-offsets --export` prints and `--from-file` reads them:
//! `topic,partition,offset` (0.11 on), or `group,topic,partition,offset` (2.2 on, for several groups).
//!
//! Releases from 2.2 on put quotes around names that are long or odd; so they are read here, and written where needed.

use std::fmt;

use crate::TopicPartition;
use crate::offset_lines::{self, LineErrors};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResetRow {
    /// The group; none in a file of one group.
    pub group: Option<String>,
    /// The partition.
    pub key: TopicPartition,
    /// The offset it is to have.
    pub offset: i64,
}

impl fmt::Display for ResetRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "{},", quoted(group))?;
        }
        write!(f, "{},{},{}", quoted(&self.key.topic), self.key.partition, self.offset)
    }
}

fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) || name.trim() != name || name.is_empty() {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

/// Reads a file; empty lines mean nothing. Rows come sorted, each partition of a group once.
///
/// # Errors
/// Every line that is not a row, that has not as many fields as the first, or says otherwise than an earlier one.
pub fn parse(text: &str) -> Result<Vec<ResetRow>, LineErrors> {
    let mut first = None;
    let known = offset_lines::parse(text, |line| {
        let ResetRow { group, key, offset } = parse_row(line)?;
        match *first.get_or_insert(group.is_some()) == group.is_some() {
            true => Ok(((group, key), offset)),
            false => Err("has not as many fields as the lines before".to_owned()),
        }
    })?;
    Ok(known.into_iter().map(|((group, key), offset)| ResetRow { group, key, offset }).collect())
}

fn parse_row(line: &str) -> Result<ResetRow, String> {
    let fields = fields(line)?;
    let (group, topic, partition, offset) = match &fields[..] {
        [topic, partition, offset] => (None, topic, partition, offset),
        [group, topic, partition, offset] => (Some(group.clone()), topic, partition, offset),
        _ => return Err("is neither topic,partition,offset nor group,topic,partition,offset".to_owned()),
    };
    if topic.is_empty() || group.as_deref() == Some("") {
        return Err("has an empty name".to_owned());
    }
    let number = partition.parse().ok().filter(|number: &i32| *number >= 0);
    let number = number.ok_or_else(|| format!("has {partition:?} where a partition should be"))?;
    let offset = offset.parse().map_err(|_| format!("has {offset:?} where an offset should be"))?;
    Ok(ResetRow { group, key: TopicPartition::new(topic.as_str(), number), offset })
}

/// The fields of one line, without the quotes and the blanks around them.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let (field, after) = match rest.trim_start().strip_prefix('"') {
            Some(inside) => quoted_field(inside)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("has text behind a quote".to_owned()),
        }
    }
}

/// What stands up to the closing quote, in which two quotes are one, and what follows.
fn quoted_field(mut rest: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    loop {
        let (inside, after) = rest.split_once('"').ok_or("has a quote that is not closed")?;
        field.push_str(inside);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => return Ok((field, after.trim_start())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn row(group: Option<&str>, topic: &str, partition: i32, offset: i64) -> ResetRow {
        ResetRow { group: group.map(str::to_owned), key: TopicPartition::new(topic, partition), offset }
    }

    #[test]
    fn rows_of_one_group_and_of_several_are_read() {
        let rows = vec![row(None, "t.x", 0, 5), row(None, "t.x", 1, 6)];
        assert_eq!(parse("t.x,1,6\n\n t.x , 0 , 5\r\n"), Ok(rows));
        let rows =
            vec![row(Some("a, b"), "t", 0, 5), row(Some("g"), "a-topic-with-a-long-name-indeed", 3, -1)];
        let text = "g,\"a-topic-with-a-long-name-indeed\",3,-1\n\"a, b\",t,0,5\n";
        assert_eq!(parse(text), Ok(rows));
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn every_bad_row_is_told_with_its_number() {
        let text = "t,0,5\ng,t,0,5\nt,0\nt,x,5\nt,-1,5\nt,0,\n,0,5\n\"t,0,5\n\"t\"x,0,5\nt,0,6\nt,0,5\n";
        let errors: Vec<String> = parse(text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                r#"line 2: "g,t,0,5" has not as many fields as the lines before"#,
                r#"line 3: "t,0" is neither topic,partition,offset nor group,topic,partition,offset"#,
                r#"line 4: "t,x,5" has "x" where a partition should be"#,
                r#"line 5: "t,-1,5" has "-1" where a partition should be"#,
                r#"line 6: "t,0," has "" where an offset should be"#,
                r#"line 7: ",0,5" has an empty name"#,
                r#"line 8: "\"t,0,5" has a quote that is not closed"#,
                r#"line 9: "\"t\"x,0,5" has text behind a quote"#,
                r#"line 10: "t,0,6" says otherwise than line 1"#,
            ]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            rows in proptest::collection::btree_map(
                ("[^\r\n]{1,9}", "[a-zA-Z0-9._-]{1,9}", 0..=i32::MAX), any::<i64>(), 0..20,
            ),
            has_groups in any::<bool>(),
        ) {
            let mut known = BTreeMap::new();
            for ((group, topic, partition), offset) in &rows {
                let row = row(has_groups.then_some(group.as_str()), topic, *partition, *offset);
                known.entry((row.group.clone(), row.key.clone())).or_insert(row);
            }
            let rows: Vec<ResetRow> = known.into_values().collect();
            let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
            prop_assert_eq!(parse(&text), Ok(rows));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a,\"0-9 \n-]{0,20}|.{0,40}") {
            let _ = parse(&text);
        }
    }
}
