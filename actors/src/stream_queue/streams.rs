//! All streams of one member, by topic and thread index.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Credit, StreamQueue};
use crate::supervise::Slot;

/// One stream, as the others see it.
pub struct StreamHandle {
    /// `topic-index`, or the index alone for the streams of a topic filter.
    pub name: String,
    /// Its room.
    pub credit: Arc<Credit>,
    /// Its mailbox.
    pub queue: Slot<StreamQueue>,
}

/// Topic (none for a topic filter: its streams carry every matching topic) and thread index.
type Key = (Option<Arc<str>>, u32);

/// The streams of one member; fixed once it has started.
#[derive(Default)]
pub struct Streams(BTreeMap<Key, StreamHandle>);

impl Streams {
    /// Adds a stream; answers its name.
    pub fn add(&mut self, topic: Option<&str>, index: u32, credit: Credit) -> String {
        let name = topic.map_or_else(|| index.to_string(), |topic| format!("{topic}-{index}"));
        let handle = StreamHandle { name: name.clone(), credit: Arc::new(credit), queue: Slot::default() };
        self.0.insert((topic.map(Into::into), index), handle);
        name
    }

    /// The stream that gets a topic's partitions of one consumer thread.
    pub fn of(&self, topic: &str, index: u32) -> Option<&StreamHandle> {
        self.get(Some(topic), index).or_else(|| self.get(None, index))
    }

    /// The stream that was added with this topic and index.
    pub fn get(&self, topic: Option<&str>, index: u32) -> Option<&StreamHandle> {
        self.0.get(&(topic.map(Into::into), index))
    }

    /// All streams, by topic and index.
    pub fn all(&self) -> impl Iterator<Item = &StreamHandle> {
        self.0.values()
    }
}
