//! Kafka's `LoggingMessageFormatter`.

use kafka_troupe::Record;
use tracing::info;

use super::Formatter;
use super::default::Default;
use super::layout::timestamp;

/// As the default one, and says the same in the log at level info, whatever the layout leaves out.
pub struct Logging(pub Default);

impl Formatter for Logging {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        self.0.write(record, out)?;
        let text = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None => "null".to_owned(),
        };
        let timestamp = timestamp(record).map(|timestamp| timestamp + ", ").unwrap_or_default();
        info!("{timestamp}key:{}, value:{}", text(record.key()), text(record.value()));
        Ok(())
    }
}
