//! Reading a member's record: lenient where the Scala consumers are, an error where all of them fail.

use serde_json::{Map, Value};

use super::{Registration, Subscription};
use crate::zk::topic_filter::TopicFilterError;

pub(super) fn registration(data: &[u8]) -> Result<Registration, String> {
    let record = object(data)?;
    let pattern = record.get("pattern").ok_or("it has no `pattern`")?;
    let pattern = pattern.as_str().ok_or("`pattern` is not a string")?;
    let topics = record.get("subscription").ok_or("it has no `subscription`")?;
    let topics = topics.as_object().ok_or("`subscription` is not an object")?;
    let topics = topics.iter().map(|(name, count)| Ok((name.clone(), streams(name, count)?)));
    let subscription = subscription(pattern, topics.collect::<Result<_, String>>()?);
    // a filter that we merely cannot run is its reader's concern; one that no Java engine compiles stops
    // every peer
    if let Some(Err(why @ TopicFilterError::Invalid { .. })) = subscription.topic_filter() {
        return Err(why.to_string());
    }
    Ok(Registration { subscription, timestamp: timestamp(&record) })
}

/// Why Scala consumers before 1.0 fail on a record that later ones (and [`Registration::parse`]) read; `None`
/// if they do not.
///
/// Their JSON reader takes every number, in any field, for a 32-bit integer.
pub fn unreadable_before_1_0(data: &[u8]) -> Option<String> {
    let record = object(data).ok()?;
    record.iter().find_map(|(field, value)| {
        let number = large_or_fractional(value)?;
        Some(format!("`{field}` holds the number {number}, which is not a 32-bit integer"))
    })
}

fn object(data: &[u8]) -> Result<Map<String, Value>, String> {
    if data.is_empty() {
        return Err("it is empty".into());
    }
    let text = str::from_utf8(data).map_err(|why| format!("it is not UTF-8: {why}"))?;
    // members of 0.8 may have a lone backslash in a filter; 1.1 reads them by doubling all backslashes
    let parsed = serde_json::from_str(text).or_else(|why| {
        if !text.contains('\\') {
            return Err(why);
        }
        serde_json::from_str(&text.replace('\\', r"\\")).map_err(|_| why)
    });
    match parsed {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(why) => Err(format!("it is not JSON: {why}")),
    }
}

fn streams(name: &str, count: &Value) -> Result<u32, String> {
    let count = count.as_i64().and_then(|count| i32::try_from(count).ok());
    count
        .and_then(|count| u32::try_from(count).ok())
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("the number of streams for {name:?} is not a positive 32-bit integer"))
}

/// An unknown pattern counts as static, and so does a filter that is missing; of several filters the first
/// counts.
fn subscription(pattern: &str, topics: Vec<(String, u32)>) -> Subscription {
    match (pattern, topics.first().cloned()) {
        ("white_list", Some((filter, streams))) => Subscription::WhiteList { filter, streams },
        ("black_list", Some((filter, streams))) => Subscription::BlackList { filter, streams },
        _ => Subscription::Static(topics),
    }
}

fn timestamp(record: &Map<String, Value>) -> i64 {
    match record.get("timestamp") {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        _ => 0,
    }
}

fn large_or_fractional(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            (!fits).then(|| number.to_string())
        }
        Value::Array(values) => values.iter().find_map(large_or_fractional),
        Value::Object(fields) => fields.values().find_map(large_or_fractional),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}
