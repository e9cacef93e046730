use tokio::time::Instant;

use super::*;
use crate::broker_connection::Transport;
use crate::testkit::clock::on_paused_clock;
use crate::testkit::{Generation, MemoryBrokers};

/// Asks two brokers for topic `a`, where there is `b` as well; how long it took, in ms.
fn find(brokers: &MemoryBrokers) -> (Result<(i32, Leaders), String>, u128) {
    brokers.create_topic("a", 1);
    brokers.create_topic("b", 1);
    let mut options = ConnectOptions::new("test", Duration::from_secs(30));
    options.transport = Transport::Memory { brokers: brokers.clone(), client: "test".to_owned() };
    let address = |id| BrokerAddress { id, host: format!("broker-{id}"), port: 9092 };
    on_paused_clock(async move {
        let began = Instant::now();
        let found = find_leaders(vec![address(0), address(1)], options, ["a".into()].into()).await;
        (found, began.elapsed().as_millis())
    })
}

#[test]
fn a_silent_broker_holds_up_a_lookup_for_three_seconds_and_one_that_refuses_for_none() {
    let brokers = MemoryBrokers::new(2);
    let (found, took) = find(&brokers);
    assert_eq!((found.map(|(broker, _)| broker), took), (Ok(0), 0));
    brokers.set_generation(0, Generation::Silent);
    let (found, took) = find(&brokers);
    assert_eq!((found.map(|(broker, _)| broker), took), (Ok(1), 3_000));
    brokers.stop(0);
    let (found, took) = find(&brokers);
    assert_eq!((found.map(|(broker, _)| broker), took), (Ok(1), 0));
}

#[test]
fn a_broker_that_is_slow_still_answers_after_the_next_was_asked_in_vain() {
    let brokers = MemoryBrokers::new(2);
    brokers.stop(1);
    brokers.set_pace(Arc::new(|| Duration::from_millis(900)));
    // dialling, versions, metadata; a dial in vain takes as long
    let (found, took) = find(&brokers);
    assert_eq!((found.map(|(broker, _)| broker), took), (Ok(0), 2_700));
    brokers.set_pace(Arc::new(|| Duration::from_millis(1_500)));
    let (found, took) = find(&brokers);
    assert!(found.is_ok_and(|(broker, _)| broker == 0) && took > 3_000, "{took}");
}

#[test]
fn when_none_answers_each_is_named_after_socket_timeout_ms() {
    let brokers = MemoryBrokers::new(2);
    brokers.set_generation(0, Generation::Silent);
    brokers.set_generation(1, Generation::Silent);
    let (found, took) = find(&brokers);
    let why = found.map(|_| ()).expect_err("nobody answers");
    assert!(why.contains("broker-0:9092") && why.contains("broker-1:9092") && took < 40_000, "{took}: {why}");
}

/// Such a broker would make the topics that it is asked for.
#[test]
fn brokers_that_make_topics_are_asked_for_all_and_others_for_what_is_needed() {
    for (generation, all) in
        [(Generation::Kafka0_8_2, true), (Generation::Kafka0_9, true), (Generation::Kafka1_1, false)]
    {
        let brokers = MemoryBrokers::new(1);
        brokers.set_generation(0, generation);
        let (_, leaders) = find(&brokers).0.expect("an answer");
        let of = |topic: &str| leaders.of(&TopicPartition::new(topic, 0)).is_ok();
        assert_eq!((of("a"), of("b")), (true, all), "{generation:?}");
    }
}
