//! Limits of single properties, and between properties.

use std::time::Duration;

use super::{ConfigError, ConsumerConfig, OffsetReset};

type Check = Result<(), String>;

/// Group names are path segments in ZooKeeper and strings on Kafka's wire; the old consumer allows the same
/// characters.
pub(super) fn group_id(name: &String) -> Check {
    if name.is_empty() {
        return Err("it is empty, and would make an empty path segment in ZooKeeper".into());
    }
    if matches!(name.as_str(), "." | "..") {
        return Err(format!("{name:?} is not a name in a path of ZooKeeper"));
    }
    client_id(name)
}

/// May be empty.
pub(super) fn client_id(name: &String) -> Check {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(illegal) = name.chars().find(|c| !legal(*c)) {
        return Err(format!(
            "{name:?} holds {illegal:?}; only letters, digits, `.`, `_` and `-` are allowed"
        ));
    }
    if name.len() > i16::MAX as usize {
        return Err(format!("its {} bytes do not fit on the wire, at most {} do", name.len(), i16::MAX));
    }
    Ok(())
}

/// Part of the name of a node.
pub(super) fn consumer_id(id: &Option<String>) -> Check {
    match id.as_deref().and_then(|id| id.find(|c: char| c == '/' || c.is_control()).map(|_| id)) {
        Some(id) => {
            Err(format!("{id:?} holds a slash or a control character, and is to be part of a node's name"))
        }
        None => Ok(()),
    }
}

/// A string on the wire.
pub(super) fn client_rack(name: &Option<String>) -> Check {
    match name.as_ref().map_or(0, String::len) {
        bytes if bytes > i16::MAX as usize => {
            Err(format!("its {bytes} bytes do not fit on the wire, at most {} do", i16::MAX))
        }
        _ => Ok(()),
    }
}

/// A count or size from `MIN` to the largest Java int, the type on the wire.
pub(super) fn at_least<const MIN: u32>(value: &u32) -> Check {
    match *value {
        value if value < MIN => Err(format!("{value} is less than {MIN}")),
        value if value > i32::MAX as u32 => Err(format!("{value} is more than {}", i32::MAX)),
        _ => Ok(()),
    }
}

/// A time from `MIN` milliseconds to the largest Java int.
pub(super) fn millis<const MIN: u128>(value: &Duration) -> Check {
    match value.as_millis() {
        millis if millis < MIN => Err(format!("{millis} ms is less than {MIN} ms")),
        millis if millis > i32::MAX as u128 => Err(format!("{millis} ms is more than {} ms", i32::MAX)),
        _ => Ok(()),
    }
}

/// Below 1.5 s the ZooKeeper client waits 0 ms for a reply.
pub(super) fn session_timeout(value: &Duration) -> Check {
    millis::<1500>(value).map_err(|why| why + ", below which the ZooKeeper client cannot wait for a reply")
}

/// As [`millis`], if there is one.
pub(super) fn optional_millis(value: &Option<Duration>) -> Check {
    value.as_ref().map_or(Ok(()), millis::<0>)
}

pub(super) fn new_partitions_reset(value: &OffsetReset) -> Check {
    match value {
        OffsetReset::None => {
            Err("a partition that appears must start somewhere: smallest, largest or a time".into())
        }
        _ => Ok(()),
    }
}

/// How long a Scala member goes on trying for a partition after its first attempt, less what release and
/// claim take.
fn drain_limit(rebalance_backoff: Duration, rebalance_max_retries: u32) -> Duration {
    const MARGIN: Duration = Duration::from_millis(500);
    rebalance_backoff.saturating_mul(rebalance_max_retries.saturating_sub(1)).saturating_sub(MARGIN)
}

/// Default of `troupe.drain.timeout.ms`.
pub(super) fn default_drain(rebalance_backoff: Duration, rebalance_max_retries: u32) -> Duration {
    drain_limit(rebalance_backoff, rebalance_max_retries).min(Duration::from_secs(4))
}

/// What concerns more than one property.
pub(super) fn across(config: &ConsumerConfig) -> Vec<ConfigError> {
    let mut problems = Vec::new();
    let mut refuse = |broken: bool, property: &str, reason: String| {
        if broken {
            problems.push(ConfigError::invalid(property, reason));
        }
    };
    let (wait, socket) = (config.fetch_wait_max, config.socket_timeout);
    let reason =
        format!("{} ms is more than the {} ms of socket.timeout.ms", wait.as_millis(), socket.as_millis());
    refuse(wait > socket, "fetch.wait.max.ms", reason);

    let limit = drain_limit(config.rebalance_backoff, config.rebalance_max_retries);
    let reason = format!(
        "{} ms is more than {} ms (rebalance.backoff.ms x (rebalance.max.retries - 1) - 500 ms), after which a Scala member \
         gives up waiting for the partition",
        config.drain_timeout.as_millis(),
        limit.as_millis()
    );
    refuse(config.drain_timeout > limit, "troupe.drain.timeout.ms", reason);

    let message = config.fetch_message_max_bytes;
    for (property, bytes) in [
        ("troupe.queued.max.bytes", config.queued_max_bytes),
        ("troupe.fetch.response.max.bytes", config.fetch_response_max_bytes),
    ] {
        let reason = format!(
            "{bytes} is less than the {message} of fetch.message.max.bytes, so nothing could be fetched"
        );
        refuse(bytes < message, property, reason);
    }
    let limit = config.fetch_message_max_bytes_limit;
    let reason =
        format!("{limit} is less than the {message} of fetch.message.max.bytes, from which it grows");
    refuse(limit < message, "troupe.fetch.message.max.bytes.limit", reason);
    problems
}
