//! What a system says that goes wrong, by place.

use std::collections::BTreeMap;

use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;

/// What is wrong in a place of a member (its id).
pub(in crate::web) type Problems = BTreeMap<(String, String), Said>;

/// What is said to be wrong.
pub(in crate::web) struct Said {
    pub(in crate::web) text: String,
    /// Whether it is so now; else it is the last that was, and may long be over.
    pub(in crate::web) lasts: bool,
}

/// All that is wrong, and the last that was, added members included.
pub(in crate::web) fn problems(status: &StatusSnapshot) -> Problems {
    let mut all = Problems::new();
    for status in std::iter::once(status).chain(&status.added) {
        let mut note = |place: String, text: &str, lasts| {
            if !text.is_empty() {
                all.insert((status.consumer_id.clone(), place), Said { text: text.to_owned(), lasts });
            }
        };
        last_errors(status, &mut note);
        partitions(status, &mut |place, text| note(place, text, true));
        others(status, &mut |place, text| note(place, text, true));
    }
    all
}

/// The last that went wrong, whatever has come after.
fn last_errors(status: &StatusSnapshot, note: &mut impl FnMut(String, &str, bool)) {
    for broker in &status.brokers {
        let place = format!("broker {} ({}), connection {}", broker.id, broker.address, broker.fetcher);
        note(place, &broker.last_error, !broker.connected);
    }
    for stream in &status.streams {
        note(format!("stream {}", stream.name), &stream.last_error, !stream.unreadable.is_empty());
    }
    if let Some(commits) = &status.commits {
        note("commits".into(), &commits.last_error, !commits.failing.is_empty());
    }
    if let Some(listener) = &status.listener {
        note("listener".into(), &listener.last_error, !listener.failing.is_empty());
    }
}

fn partitions(status: &StatusSnapshot, note: &mut impl FnMut(String, &str)) {
    for it in &status.waiting {
        note(format!("{} {}", it.topic, it.partition), &it.why);
    }
    for it in status.halted.iter().filter(|it| it.reason == "unreadable") {
        // it says where
        note(format!("{} {}", it.topic, it.partition), &it.why);
    }
    for it in status.halted.iter().filter(|it| it.reason == "failed") {
        let text = format!("stopped at offset {}: {}", it.offset, it.why);
        note(format!("{} {}, handler", it.topic, it.partition), &text);
    }
    for it in &status.retried {
        let text = format!("offset {} is tried again and again: {}", it.offset, it.why);
        note(format!("{} {}, handler", it.topic, it.partition), &text);
    }
    for it in &status.stuck {
        let text = format!("its handler is stuck at offset {}", it.offset);
        note(format!("{} {}, handler", it.topic, it.partition), &text);
    }
    for it in &status.partitions {
        note(format!("{} {}, fetching", it.topic, it.partition), &it.unfetched);
    }
    for it in status.commits.iter().flat_map(|commits| &commits.failing) {
        note(format!("{} {}, commits", it.topic, it.partition), &it.why);
    }
    for it in status.dead_letters.iter().flat_map(|letters| &letters.unwritten) {
        note(format!("{} {}, dead letter", it.topic, it.partition), &it.why);
    }
}

fn others(status: &StatusSnapshot, note: &mut impl FnMut(String, &str)) {
    note("group".into(), &status.failing);
    for stream in &status.streams {
        note(format!("stream {}, stopped", stream.name), &stream.stopped);
        if let Some(ending) = &stream.handler_ending {
            note(
                format!("stream {}, handler", stream.name),
                &format!("ends when it is made: {}", ending.why),
            );
        }
    }
    for peer in &status.peers {
        note(format!("member {}", peer.member), &peer.why);
    }
    if let Some(topics) = &status.topic_metadata {
        note("topic metadata".into(), &topics.last_error);
    }
}
