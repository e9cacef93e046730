//! What a member is asked to subscribe to.

use std::collections::BTreeSet;
use std::fmt;

use kafka_troupe_proto::zk::registration::Subscription;
use kafka_troupe_proto::zk::topic_filter::TopicFilter;

use crate::stream_queue::HandlerFactory;

/// A [`Subscription`](crate::Subscription) that is complete: it says by whom the records are handled.
#[derive(Debug)]
#[must_use = "give it to Builder::subscription"]
pub struct Subscribed {
    pub(crate) topics: Topics,
    pub(crate) streams: u32,
    /// None: they are pulled.
    pub(crate) handler: Option<HandlerFactory>,
}

impl Subscribed {
    /// What makes its handlers; none where the streams are pulled. For a stream that is run without a member, as the
    /// benches do.
    pub fn into_handler(self) -> Option<HandlerFactory> {
        self.handler
    }
}

/// Which topics.
#[derive(Debug)]
pub(crate) enum Topics {
    Named(String),
    Matching(TopicFilter),
}

impl Topics {
    /// The topic; none when there may be many.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(topic) => Some(topic),
            Self::Matching(_) => None,
        }
    }
}

impl fmt::Display for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(topic) => write!(f, "topic {topic}"),
            Self::Matching(filter) if filter.is_white_list() => write!(f, "white list {}", filter.pattern()),
            Self::Matching(filter) => write!(f, "black list {}", filter.pattern()),
        }
    }
}

/// Why this makes no sense in one registration.
pub(super) fn check(all: &[Subscribed]) -> Result<(), String> {
    if all.is_empty() {
        return Err("no topic is subscribed to".to_owned());
    }
    for (index, Subscribed { topics, streams, handler }) in all.iter().enumerate() {
        let handling = handler.as_ref().map(HandlerFactory::handling);
        if handling.is_some_and(|handling| handling.batched && !handling.in_flight.is_one()) {
            return Err(format!("{topics}: several in flight are for records one by one, not for batches"));
        }
        if *streams == 0 {
            return Err(format!("{topics}: at least one stream is needed"));
        }
        if topics.name().is_some() && all[..index].iter().any(|it| it.topics.name() == topics.name()) {
            return Err(format!("{topics} is subscribed to twice"));
        }
        if topics.name().is_none() && all.len() > 1 {
            return Err(format!(
                "{topics} stands beside other subscriptions: a registration in ZooKeeper holds either topics by \
                 name or one filter; add the others with ConsumerHandle::subscribe"
            ));
        }
    }
    // peers make the normal form of what they read once more, and all are stuck if it does not compile then
    registered(all).topic_filter().transpose().map_err(|error| error.to_string())?;
    Ok(())
}

/// The topics to which the subscriptions' failure policies may write dead letters, each once.
pub(super) fn dead_letter_topics(all: &[Subscribed]) -> Vec<String> {
    let handlers = all.iter().filter_map(|it| it.handler.as_ref());
    let topics = handlers.flat_map(|handler| handler.handling().on_failure.dead_letter_topics());
    topics.map(ToString::to_string).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What is written in ZooKeeper.
pub(super) fn registered(all: &[Subscribed]) -> Subscription {
    let mut topics = Vec::new();
    for Subscribed { topics: its, streams, .. } in all {
        match its {
            Topics::Named(topic) => topics.push((topic.clone(), *streams)),
            Topics::Matching(filter) => return Subscription::matching(filter, *streams),
        }
    }
    Subscription::Static(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(topic: &str, streams: u32) -> Subscribed {
        Subscribed { topics: Topics::Named(topic.to_owned()), streams, handler: None }
    }

    fn matching(filter: TopicFilter, streams: u32) -> Subscribed {
        Subscribed { topics: Topics::Matching(filter), streams, handler: None }
    }

    fn white(filter: &str) -> TopicFilter {
        TopicFilter::white_list(filter).unwrap()
    }

    #[test]
    fn topics_by_name_or_one_filter() {
        let topics = [named("b", 1), named("a", 12)];
        check(&topics).unwrap();
        assert_eq!(registered(&topics), Subscription::Static(vec![("b".into(), 1), ("a".into(), 12)]));
        let filter = [matching(TopicFilter::black_list("a,b").unwrap(), 2)];
        check(&filter).unwrap();
        let black = Subscription::BlackList { filter: "a|b".into(), streams: 2 };
        assert_eq!(registered(&filter), black);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let refused = |all: &[Subscribed]| check(all).unwrap_err();
        assert_eq!(refused(&[]), "no topic is subscribed to");
        assert_eq!(refused(&[named("a", 0)]), "topic a: at least one stream is needed");
        assert_eq!(refused(&[matching(white("a.*"), 0)]), "white list a.*: at least one stream is needed");
        assert_eq!(refused(&[named("a", 1), named("a", 1)]), "topic a is subscribed to twice");
        for all in [
            [named("b", 1), matching(white("a.*"), 1)],
            [matching(white("a.*"), 1), named("b", 1)],
            [matching(white("a.*"), 1), matching(white("a.*"), 1)],
        ] {
            let why = refused(&all);
            assert!(why.starts_with("white list a.* stands beside other subscriptions: "), "{why}");
        }
    }

    /// A tab before an asterisk is any number of tabs; trimmed, it is nothing that compiles.
    #[test]
    fn a_filter_that_peers_could_not_read_is_refused() {
        let filter = [matching(white("'\t*'"), 1)];
        assert!(check(&filter).unwrap_err().contains("is not a regular expression"));
    }
}
