//! How a record is printed.

mod checksum;
mod default;
mod json;
mod layout;
mod logging;
mod offsets;
mod offsets_json;

use kafka_troupe::Record;
use kafka_troupe::proto::config::java_properties;
use kafka_troupe::proto::kafka::offsets_topic::OffsetsFormatter;

use super::args::Args;
use crate::properties_file;
use checksum::Checksum;
use default::Default;
use json::Json;
use layout::Layout;
use logging::Logging;
use offsets::Offsets;
use offsets_json::OffsetsJson;

/// Prints records, each as a whole.
pub trait Formatter: Send {
    /// Puts one record's text, with what ends it, behind what is in `out`; the error is why it does not decode, and
    /// then `out` may hold a part of it.
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String>;

    /// Whether stdout is for programs: then nothing else may go there.
    fn is_json(&self) -> bool {
        false
    }
}

/// Keys and values.
pub type Properties = Vec<(String, String)>;

type Make = fn(Layout) -> Box<dyn Formatter>;

/// What there is, by our names.
const FORMATTERS: &[(&str, Make)] = &[
    ("default", |layout| Box::new(Default(layout))),
    ("logging", |layout| Box::new(Logging(Default(layout)))),
    ("no-op", |_| Box::new(NoOp)),
    ("checksum", |layout| Box::new(Checksum(layout))),
    ("json", |layout| Box::new(Json(layout))),
    ("hex", |layout| Box::new(Default(layout.in_hex()))),
];

/// The classes that people have in their scripts, each generation's by its package.
const CLASSES: &[(&str, &str)] = &[
    ("DefaultMessageFormatter", "default"),
    ("LoggingMessageFormatter", "logging"),
    ("NoOpMessageFormatter", "no-op"),
    ("ChecksumMessageFormatter", "checksum"),
];

/// Of [`CLASSES`]: up to 0.8.1, up to 3.4, from 3.5.
const PACKAGES: &[&str] = &["kafka.consumer.", "kafka.tools.", "org.apache.kafka.tools.consumer."];

/// The formatter that the command line asks for, and the properties that are not its own.
pub fn chosen(args: &Args) -> Result<(Box<dyn Formatter>, Properties), String> {
    let mut layout = Layout::default();
    let mut rest = Properties::new();
    for (key, value) in from_file(args)?.iter().chain(&args.property) {
        if !layout.set(key, value)? {
            rest.push((key.clone(), value.clone()));
        }
    }
    for (key, decoder) in
        [("key.deserializer", &args.key_decoder), ("value.deserializer", &args.value_decoder)]
    {
        if let Some(decoder) = decoder {
            layout.set(key, decoder)?;
        }
    }
    Ok((named(args.formatter.as_deref().unwrap_or("default"), layout)?, rest))
}

fn from_file(args: &Args) -> Result<Properties, String> {
    let Some(file) = &args.formatter_config else { return Ok(Properties::new()) };
    let flag = "--formatter-config";
    let text = properties_file::read(flag, file).map_err(|why| why.to_string())?;
    java_properties::parse(&text).map_err(|error| format!("{flag} {}: {error}", file.display()))
}

fn named(name: &str, layout: Layout) -> Result<Box<dyn Formatter>, String> {
    let name = name.trim();
    if let Some(formatter) = OffsetsFormatter::of_class(name) {
        return Ok(Box::new(Offsets(formatter)));
    }
    if let Some(formatter) = OffsetsJson::of_class(name) {
        return Ok(Box::new(formatter));
    }
    let class = PACKAGES.iter().find_map(|package| name.strip_prefix(package));
    let ours = match class {
        Some(class) => CLASSES.iter().find(|(known, _)| *known == class).map(|(_, ours)| *ours),
        None => Some(name),
    };
    let make = FORMATTERS.iter().find(|(known, _)| Some(*known) == ours).map(|(_, make)| make);
    make.map(|make| make(layout)).ok_or_else(|| {
        let ours: Vec<_> = FORMATTERS.iter().map(|(name, _)| *name).collect();
        let classes: Vec<_> = CLASSES.iter().map(|(class, _)| *class).collect();
        format!(
            "no formatter `{name}`; there are {}, and of Kafka's classes, of any generation, {}, and for \
             __consumer_offsets OffsetsMessageFormatter and GroupMetadataMessageFormatter",
            ours.join(", "),
            classes.join(", ")
        )
    })
}

/// Prints nothing: `NoOpMessageFormatter`.
struct NoOp;

impl Formatter for NoOp {
    fn write(&mut self, _: &Record, _: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
