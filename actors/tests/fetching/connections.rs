//! Several connections to one broker, and connections that it closes.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kafka_troupe_actors::fetcher_manager::FetchSettings;

use super::Result;
use super::fake_broker::{Act, Fetch, start_scripted};
use super::harness::{Fetching, PATIENCE, settings};

const TOPIC: &str = "orders";

/// Fetching from a broker that does with each fetch what `script` says; and what it was asked, and when.
fn start(
    partitions: i32,
    settings: FetchSettings,
    script: impl Fn(Fetch) -> Act + Send + Sync + 'static,
) -> Result<(Fetching, Receiver<(Instant, Fetch)>)> {
    let (seen, sees) = channel();
    let script = move |fetch| {
        // a test that has seen enough is gone
        let _ = seen.send((Instant::now(), fetch));
        script(fetch)
    };
    let port = start_scripted(TOPIC, partitions, Arc::new(script))?;
    let fetching = Fetching::start(settings);
    fetching.set_brokers(vec![(0, port)]);
    fetching.fetch(TOPIC, (0..partitions).map(|partition| (partition, Some(0))), &fetching.stream(2, false));
    Ok((fetching, sees))
}

fn next(sees: &Receiver<(Instant, Fetch)>, wished: impl Fn(&Fetch) -> bool) -> Fetch {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (_, fetch) = sees.recv_timeout(left).expect("such a fetch in time");
        if wished(&fetch) {
            return fetch;
        }
    }
}

/// Nothing would be fetched again in time.
fn patient() -> FetchSettings {
    let mut settings = settings();
    settings.leader_backoff = Duration::from_secs(3_600);
    settings
}

#[test]
fn a_dead_connection_of_one_fetcher_does_not_stop_the_other() -> Result {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    // of two fetchers the old consumer gives partition 0 to the second, and 1 to the first
    let stuck = |fetch: Fetch| fetch.partition == 0 && fetch.number == 1;
    let script = move |fetch: Fetch| match stuck(fetch) {
        true => released.lock().unwrap().recv().map_or(Act::HangUp, |()| Act::Answer),
        false => Act::Answer,
    };
    let mut two = settings();
    two.fetchers = 2;
    let (fetching, sees) = start(2, two, script)?;
    next(&sees, |fetch| stuck(*fetch));
    let first = next(&sees, |fetch| fetch.partition == 1);
    for _ in 0..5 {
        let fetch = next(&sees, |_| true);
        assert_eq!((fetch.partition, fetch.connection), (1, first.connection), "{fetch:?}");
    }
    let rows = |fetching: &Fetching| -> Vec<_> {
        let brokers = fetching.describe().brokers.into_iter();
        brokers.map(|it| (it.name, it.partitions, it.connected, it.last_error.is_some())).collect()
    };
    let of = |fetcher: u32, failed: bool| (format!("broker-fetcher/{fetcher}-0"), 1, true, failed);
    assert_eq!(rows(&fetching), [of(0, false), of(1, false)]);

    drop(release);
    let again = next(&sees, |fetch| fetch.partition == 0);
    assert!(again.connection > 1 && again.number == 0, "it has another connection: {again:?}");
    next(&sees, |fetch| fetch.partition == 0);
    let other = next(&sees, |fetch| fetch.partition == 1);
    assert_eq!(other.connection, first.connection, "and the other fetcher has its own still");
    fetching.until("both fetched", |status| status.waiting.is_empty());
    Ok(())
}

#[test]
fn a_connection_that_is_closed_while_it_is_at_rest_is_opened_anew_and_is_no_failure() -> Result {
    let script = |fetch: Fetch| if fetch.number == 2 { Act::AnswerAndClose } else { Act::Answer };
    let (fetching, sees) = start(1, patient(), script)?;
    next(&sees, |fetch| fetch.connection == 4);
    let status = fetching.describe();
    let broker = &status.brokers[0];
    assert!(status.waiting.is_empty() && broker.last_error.is_none() && broker.connected, "{status:?}");
    Ok(())
}

#[test]
fn a_connection_that_is_opened_anew_and_closed_again_is_a_failure() -> Result {
    let script = |fetch: Fetch| match (fetch.connection, fetch.number) {
        (0, 0) => Act::AnswerAndClose,
        _ => Act::HangUp,
    };
    let (fetching, sees) = start(1, patient(), script)?;
    let last = next(&sees, |fetch| fetch.connection == 1);
    assert_eq!(last.number, 0);
    let status = fetching.until("given back", |status| status.waiting.len() == 1);
    assert!(status.brokers[0].last_error.is_some(), "{status:?}");
    assert!(sees.try_recv().is_err(), "and is not fetched before it is due");
    Ok(())
}

#[test]
fn a_broker_that_closes_every_connection_is_asked_no_faster_than_the_backoff() -> Result {
    let (_fetching, sees) = start(1, settings(), |_| Act::HangUp)?;
    let asked: Vec<_> = (0..4).map(|_| sees.recv_timeout(PATIENCE)).collect::<std::result::Result<_, _>>()?;
    // refresh.leader.backoff.ms is 200
    let took = asked[3].0 - asked[0].0;
    assert!(took.as_millis() >= 600, "3 more fetches in {took:?}");
    Ok(())
}
