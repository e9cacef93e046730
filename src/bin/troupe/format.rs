//! How a record is printed: the properties of Kafka's `DefaultMessageFormatter`.

use std::io::{self, Write};

use kafka_troupe::Record;

/// What is printed of a record, in this order, with a separator between.
pub struct Format {
    timestamp: bool,
    partition: bool,
    offset: bool,
    key: bool,
    value: bool,
    separator: String,
    end: String,
}

/// Keys and values.
pub type Properties<'a> = Vec<(&'a str, &'a str)>;

impl Default for Format {
    fn default() -> Self {
        Self {
            timestamp: false,
            partition: false,
            offset: false,
            key: false,
            value: true,
            separator: "\t".to_owned(),
            end: "\n".to_owned(),
        }
    }
}

impl Format {
    /// Takes the output's properties out of all that were given; the rest is the consumer's.
    pub fn split(properties: &[(String, String)]) -> Result<(Self, Properties<'_>), String> {
        let mut format = Self::default();
        let mut rest = Vec::new();
        for (key, value) in properties {
            if !format.set(key, value)? {
                rest.push((key.as_str(), value.as_str()));
            }
        }
        Ok((format, rest))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let flag = match key {
            "print.timestamp" => &mut self.timestamp,
            "print.partition" => &mut self.partition,
            "print.offset" => &mut self.offset,
            "print.key" => &mut self.key,
            "print.value" => &mut self.value,
            "key.separator" => {
                value.clone_into(&mut self.separator);
                return Ok(true);
            }
            "line.separator" => {
                value.clone_into(&mut self.end);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *flag = value.parse().map_err(|_| format!("{key}: must be true or false, not `{value}`"))?;
        Ok(true)
    }

    /// Prints one record; a null key or value is the word `null`.
    pub fn write(&self, record: &Record, out: &mut impl Write) -> io::Result<()> {
        let mut between: &[u8] = b"";
        let mut field = |wanted: bool, bytes: &[u8]| -> io::Result<()> {
            if wanted {
                out.write_all(std::mem::replace(&mut between, self.separator.as_bytes()))?;
                out.write_all(bytes)?;
            }
            Ok(())
        };
        if self.timestamp {
            let timestamp =
                record.timestamp().map_or("NO_TIMESTAMP".to_owned(), |at| format!("CreateTime:{at}"));
            field(true, timestamp.as_bytes())?;
        }
        if self.partition {
            field(true, format!("Partition:{}", record.partition()).as_bytes())?;
        }
        if self.offset {
            field(true, format!("Offset:{}", record.offset()).as_bytes())?;
        }
        field(self.key, record.key().unwrap_or(b"null"))?;
        field(self.value, record.value().unwrap_or(b"null"))?;
        out.write_all(self.end.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(given: &[(&str, &str)]) -> Vec<(String, String)> {
        given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_output_takes_its_own_properties_only() {
        let given =
            properties(&[("print.key", "true"), ("auto.commit.enable", "false"), ("key.separator", "|")]);
        let (format, rest) = Format::split(&given).unwrap();
        assert!(format.key && format.value && !format.offset);
        assert_eq!((format.separator.as_str(), rest), ("|", vec![("auto.commit.enable", "false")]));
    }

    #[test]
    fn a_flag_must_be_true_or_false() {
        let error = Format::split(&properties(&[("print.key", "yes")])).err().unwrap();
        assert_eq!(error, "print.key: must be true or false, not `yes`");
    }
}
