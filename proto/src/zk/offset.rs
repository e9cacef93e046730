//! Committed offsets: `/consumers/<group>/offsets/<topic>/<partition>` holds the next offset to consume, in
//! ASCII decimal.

use thiserror::Error;

/// Content of an offset node that no old consumer could read either.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{path} holds {content:?}, which is not an offset: write the next offset to consume in decimal, without spaces or newline, or delete the node"
)]
#[non_exhaustive]
pub struct OffsetError {
    /// The node, relative to the chroot.
    pub path: String,
    /// What stands in it.
    pub content: String,
}

/// Reads an offset node. `None` for a negative value: the old consumer writes `-1` for "no position yet".
pub fn parse_offset(path: &str, data: &[u8]) -> Result<Option<i64>, OffsetError> {
    let parsed = str::from_utf8(data).ok().and_then(|text| text.parse::<i64>().ok());
    match parsed {
        Some(offset) => Ok(Some(offset).filter(|offset| *offset >= 0)),
        None => Err(OffsetError {
            path: path.to_owned(),
            content: String::from_utf8_lossy(&data[..data.len().min(MAX_QUOTED)]).into_owned(),
        }),
    }
}

/// Data of an offset node: plain decimal, no padding, no newline.
pub fn format_offset(offset: i64) -> String {
    offset.to_string()
}

/// Bytes of a bad node that an error repeats.
const MAX_QUOTED: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_the_old_consumer_wrote() {
        assert_eq!(parse_offset("/o", b"125"), Ok(Some(125)));
        assert_eq!(parse_offset("/o", b"0"), Ok(Some(0)));
        assert_eq!(parse_offset("/o", b"-1"), Ok(None));
        assert_eq!(parse_offset("/o", b"+5"), Ok(Some(5)));
    }

    #[test]
    fn garbage_names_the_path_and_the_content() {
        for data in [&b""[..], b"125\n", b" 1", b"1.0", b"9223372036854775808", b"\xff", b"0x1"] {
            assert!(parse_offset("/o", data).is_err(), "{data:?}");
        }
        let error = parse_offset("/consumers/g/offsets/t/0", b"125\n").unwrap_err().to_string();
        assert!(error.starts_with(r#"/consumers/g/offsets/t/0 holds "125\n""#), "{error}");
    }

    proptest! {
        #[test]
        fn offsets_come_back(offset in 0..i64::MAX) {
            prop_assert_eq!(parse_offset("/o", format_offset(offset).as_bytes()), Ok(Some(offset)));
        }
    }
}
