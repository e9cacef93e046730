//! The consumer's properties: from the file, the command line, and what the old tool adds.

use kafka_troupe::ConsumerConfig;
use kafka_troupe::proto::config::{ConfigErrors, Parsed, java_properties};

use super::args::Args;
use super::formatter::Properties;
use crate::exit::Failure;
use crate::properties_file;
use crate::servers::consumer_config;

const RESET: &str = "auto.offset.reset";

/// Properties in the order in which they count: the last of a key is the one.
pub struct Settings(Properties);

impl Settings {
    /// From the file, the command line's properties, of which `rest` are those that are no formatter's, and its flags.
    pub fn gather(args: &Args, rest: Properties) -> Result<Self, Failure> {
        let mut properties = Properties::new();
        // what is the consumer's own counts more
        for file in args.servers.command_config.iter().chain(&args.consumer_config) {
            let unusable = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
            let text = properties_file::read("", file)?;
            properties.extend(java_properties::parse(&text).map_err(|error| unusable(&error))?);
        }
        properties.extend(rest);
        properties.extend(args.consumer_property.iter().cloned());
        let flags = [
            ("zookeeper.connect", &args.servers.zookeeper),
            ("bootstrap.servers", &args.servers.bootstrap_server),
            ("group.id", &args.group),
            ("isolation.level", &args.isolation_level),
        ];
        for (key, value) in flags {
            properties.extend(value.iter().map(|value| (key.to_owned(), value.clone())));
        }
        let mut settings = Self(properties);
        settings.reset(args.from_beginning)?;
        Ok(settings)
    }

    /// `--from-beginning`, which must not be said otherwise elsewhere.
    fn reset(&mut self, from_beginning: bool) -> Result<(), Failure> {
        match (from_beginning, self.get(RESET)) {
            (false, _) | (true, Some("smallest" | "earliest")) => {}
            (true, None) => self.0.push((RESET.to_owned(), "smallest".to_owned())),
            (true, Some(other)) => {
                return Err(Failure::usage(format!(
                    "Can't simultaneously specify --from-beginning and 'auto.offset.reset={other}', please remove one \
                     option"
                )));
            }
        }
        Ok(())
    }

    /// The value that counts.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, value)| value.trim())
    }

    /// Whether there is only brokers to ask.
    pub fn without_zookeeper(&self) -> bool {
        self.get("zookeeper.connect").is_none() && self.get("bootstrap.servers").is_some()
    }

    /// The group that was named, wherever; the same one everywhere.
    pub fn group(&self) -> Result<Option<&str>, Failure> {
        let mut groups: Vec<&str> = Vec::new();
        for (_, group) in self.0.iter().filter(|(key, _)| key == "group.id") {
            if !groups.contains(&group.trim()) {
                groups.push(group.trim());
            }
        }
        if groups.len() > 1 {
            let groups: Vec<_> = groups.iter().map(|group| format!("'{group}'")).collect();
            return Err(Failure::usage(format!(
                "The group ids provided in different places (directly using '--group', via '--consumer-property', or \
                 via '--consumer.config') do not match. Detected group ids: {}",
                groups.join(", ")
            )));
        }
        Ok(groups.first().copied())
    }

    /// The member's configuration; what it says about properties goes to stderr.
    pub fn config(&self, group: &str) -> Result<ConsumerConfig, Failure> {
        let builder = self
            .0
            .iter()
            .fold(ConsumerConfig::builder(), |builder, (key, value)| builder.property(key, value));
        let builder = builder.property("group.id", group);
        let parsed = builder.build_with_report().map_err(|errors: ConfigErrors| Failure::usage(errors))?;
        Ok(told(parsed))
    }

    /// The same where there is no group.
    pub fn config_without_group(&self) -> Result<ConsumerConfig, Failure> {
        consumer_config(&self.0).map(told)
    }
}

fn told(parsed: Parsed) -> ConsumerConfig {
    parsed.report.iter().for_each(|notice| say!("{notice}"));
    parsed.config
}
