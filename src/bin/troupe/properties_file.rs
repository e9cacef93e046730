//! Files in the format of Java properties.

use std::path::Path;

use crate::exit::Failure;

/// Reads one, for `flag`, if not empty. As Java does, bytes that are not UTF-8 are taken for Latin-1: they mostly stand in
/// comments.
///
/// # Errors
/// It cannot be read: exit code 2.
pub fn read(flag: &str, file: &Path) -> Result<String, Failure> {
    let flag = if flag.is_empty() { String::new() } else { format!("{flag} ") };
    let bytes =
        std::fs::read(file).map_err(|error| Failure::usage(format!("{flag}{}: {error}", file.display())))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_in_any_encoding_do_no_harm() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"# \xcf\xfb\xb7\xd1\ngroup.id=g\n").unwrap();
        assert!(read("", file.path()).unwrap().ends_with("\ngroup.id=g\n"));
        std::fs::write(file.path(), "client.id=é").unwrap();
        assert_eq!(read("", file.path()).unwrap(), "client.id=é");
    }

    #[test]
    fn a_file_that_is_not_there_names_flag_and_path() {
        let why = read("--command-config", Path::new("/no/such")).unwrap_err().to_string();
        assert!(why.starts_with("--command-config /no/such: "), "{why}");
    }
}
