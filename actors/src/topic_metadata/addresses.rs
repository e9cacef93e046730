//! Whom to ask next, and when to believe that something is gone. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::metadata::TopicId;
use tokio::time::Instant;

use super::picture::Picture;

/// So long one broker, and no other, must go on saying that something is gone: it may have just started.
pub(super) const ALONE_FOR: Duration = Duration::from_secs(5);

/// Whom to ask.
pub(super) struct Addresses {
    /// `bootstrap.servers`.
    servers: Vec<ServerAddress>,
    /// Who answered last.
    first: Option<ServerAddress>,
    /// Topics that others know to have been made again, and the ids by which they are known here.
    outdated: BTreeMap<Arc<str>, TopicId>,
    /// Who has told these.
    avoided: BTreeSet<ServerAddress>,
}

impl Addresses {
    pub(super) fn new(servers: Vec<ServerAddress>) -> Self {
        Self { servers, first: None, outdated: BTreeMap::new(), avoided: BTreeSet::new() }
    }

    /// Who answered last, the other `bootstrap.servers`, the brokers that were learnt. Those that tell what is outdated
    /// come last; while something is missing, brokers come first that are known to be others than those that say so.
    pub(super) fn in_turn(&self, known: Option<&Picture>, missing: Option<&Missing>) -> Vec<ServerAddress> {
        let mut all: Vec<_> = self.first.iter().chain(&self.servers).cloned().collect();
        if let Some(picture) = known {
            all.extend(picture.brokers.iter().map(|broker| ServerAddress::new(&broker.host, broker.port)));
        }
        let mut seen = BTreeSet::new();
        all.retain(|address| seen.insert(address.clone()));
        let is_another = |address: &ServerAddress| {
            missing.is_none_or(|it| {
                known.and_then(|known| known.broker_at(address)).is_some_and(|id| !it.by.contains(&id))
            })
        };
        all.sort_by_key(|address| (self.avoided.contains(address), !is_another(address)));
        all
    }

    /// An answer counts that came from there. Whether to go on asking there.
    pub(super) fn answered(&mut self, address: ServerAddress, picture: &Picture) -> bool {
        let is_outdated = self.outdated.iter().any(|(topic, id)| picture.id_of(topic) == Some(*id));
        if is_outdated {
            self.avoid(address, picture);
        } else {
            (self.outdated, self.avoided) = (BTreeMap::new(), BTreeSet::new());
            self.first = Some(address);
        }
        !is_outdated
    }

    /// What was told last is outdated in this.
    pub(super) fn is_outdated(&mut self, topic: Arc<str>, id: TopicId, known: Option<&Picture>) {
        let first = self.first.take_if(|_| known.is_some_and(|known| known.id_of(&topic) == Some(id)));
        self.outdated.insert(topic, id);
        if let Some((first, known)) = first.zip(known) {
            self.avoid(first, known);
        }
    }

    fn avoid(&mut self, address: ServerAddress, known: &Picture) {
        self.avoided.insert(address);
        self.first = None;
        if self.in_turn(Some(known), None).iter().all(|address| self.avoided.contains(address)) {
            // all say so: from the beginning
            self.avoided.clear();
        }
    }
}

/// Something is missing that was there.
pub(super) struct Missing {
    since: Instant,
    /// Brokers that have said so. (One address may be another name of the same broker.)
    by: BTreeSet<i32>,
}

impl Missing {
    pub(super) fn since(now: Instant) -> Self {
        Self { since: now, by: BTreeSet::new() }
    }

    /// Once more, by this broker if it is known which it was. Whether it is to be believed now.
    pub(super) fn is_told(&mut self, broker: Option<i32>, now: Instant) -> bool {
        self.by.extend(broker);
        self.by.len() > 1 || now.saturating_duration_since(self.since) >= ALONE_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetcher_manager::BrokerAddress;
    use crate::topic_metadata::KnownTopic;

    fn address(host: &str) -> ServerAddress {
        ServerAddress::new(host, 9092)
    }

    /// Brokers 0 to 2; 0 is reached by its bootstrap name as well.
    fn picture() -> Picture {
        let brokers =
            (0..3).map(|id| BrokerAddress { id, host: format!("broker-{id}"), port: 9092 }).collect();
        let topic = KnownTopic { id: Some(TopicId([1; 16])), ..KnownTopic::default() };
        Picture { brokers, topics: [(Arc::from("a"), topic)].into() }
    }

    fn hosts(addresses: &Addresses, missing: Option<&Missing>) -> Vec<String> {
        addresses.in_turn(Some(&picture()), missing).into_iter().map(|address| address.host).collect()
    }

    #[test]
    fn two_names_of_one_broker_are_not_two_brokers() {
        let (picture, now) = (picture(), Instant::now());
        let mut missing = Missing::since(now);
        for host in ["bootstrap", "broker-0", "bootstrap", "broker-0"] {
            let told_by = picture.broker_at(&address(host));
            assert!(!missing.is_told(told_by, now + ALONE_FOR / 2), "{host}");
        }
        let mut addresses = Addresses::new(vec![address("bootstrap")]);
        assert!(addresses.answered(address("bootstrap"), &picture));
        assert_eq!(hosts(&addresses, Some(&missing)), ["broker-1", "broker-2", "bootstrap", "broker-0"]);
        assert_eq!(hosts(&addresses, None), ["bootstrap", "broker-0", "broker-1", "broker-2"]);
        assert!(missing.is_told(picture.broker_at(&address("broker-1")), now));
        // nobody else answers
        let mut missing = Missing::since(now);
        assert!(!missing.is_told(None, now) && missing.is_told(None, now + ALONE_FOR));
    }

    #[test]
    fn who_tells_what_is_outdated_is_asked_last_until_somebody_knows_better() {
        let (old, outdated) = (picture(), TopicId([1; 16]));
        let mut new = picture();
        new.topics.values_mut().for_each(|topic| topic.id = Some(TopicId([2; 16])));
        let mut addresses = Addresses::new(vec![address("bootstrap")]);
        addresses.answered(address("bootstrap"), &old);
        addresses.is_outdated("a".into(), outdated, Some(&old));
        assert_eq!(hosts(&addresses, None), ["broker-0", "broker-1", "broker-2", "bootstrap"]);
        assert!(!addresses.answered(address("broker-0"), &old));
        assert_eq!(hosts(&addresses, None)[0], "broker-1");
        assert!(addresses.answered(address("broker-1"), &new));
        assert_eq!(hosts(&addresses, None)[..2], ["broker-1", "bootstrap"]);
        // all of them tell the same
        for host in ["bootstrap", "broker-0", "broker-1", "broker-2"] {
            addresses.is_outdated("a".into(), outdated, Some(&old));
            assert!(!addresses.answered(address(host), &old));
        }
        assert_eq!(hosts(&addresses, None).len(), 4);
    }
}
