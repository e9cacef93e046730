//! Examples that write what they handle into SQLite.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use troupe_cluster::ProduceRecord;
use zookeeper_async::{ZkError, ZooKeeper};

use crate::process::{Example, cluster, until};

/// A folder for a database that is not there yet.
fn folder() -> (TempDir, String) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("it.sqlite").to_str().expect("it is text").to_owned();
    (folder, path)
}

/// What a query of one row of numbers gives; zeros while there is no such table.
fn row<const N: usize>(path: &str, select: &str) -> [i64; N] {
    let read = |row: &rusqlite::Row<'_>| {
        let mut numbers = [0; N];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = row.get::<_, Option<i64>>(index)?.unwrap_or_default();
        }
        Ok(numbers)
    };
    let database = Connection::open(path).expect("a database");
    match database.query_row(select, (), read) {
        Ok(numbers) => numbers,
        Err(error) if error.to_string().contains("no such table") => [0; N],
        Err(error) => panic!("{select}: {error}"),
    }
}

fn wait_for<const N: usize>(path: &str, select: &str, wanted: [i64; N]) {
    until(select, || {
        let seen = row(path, select);
        if seen == wanted { Ok(()) } else { Err(format!("{seen:?}, not {wanted:?}")) }
    });
}

/// Numbers `from..to`, by turns to all four partitions and of two customers.
fn produce(topic: &str, numbers: std::ops::Range<i64>) {
    let record = |number: i64| ProduceRecord {
        partition: Some((number % 4) as i32),
        key: Some(vec![b'a' + (number / 4 % 2) as u8]),
        value: number.to_string().into(),
    };
    cluster().client().and_then(|client| client.produce(topic, numbers.map(record))).expect("it is produced");
}

#[test]
fn sqlite_has_each_record_at_least_once_whatever_kills_it() {
    let (_folder, path) = folder();
    let example = Example::start("sqlite", &["--database", &path]);
    let distinct = "select count(*), sum(cents) from (select distinct part, position, cents from payments)";
    let all = [10_000, 10 * 999 * 500];
    wait_for(&path, distinct, all);
    // within auto.commit.interval.ms: nothing but the position with which it began is committed
    example.kill();
    let example = Example::start("sqlite", &["--database", &path]);
    wait_for(&path, "select count(*) from payments", [20_000]);
    assert_eq!(row(&path, distinct), all);
    example.terminate();
    let committed = cluster().zookeeper_offsets("sqlite", "payments").expect("ZooKeeper answers");
    assert_eq!(committed.values().sum::<i64>(), 10_000);
}

#[test]
fn exactly_once_has_each_record_once_also_after_kill_9_and_with_a_second_member() {
    let (_folder, path) = folder();
    let client = cluster().client().expect("a client");
    client.create_topic("transfers", 4, 1).expect("a topic");
    produce("transfers", 0..1_000);
    let booked = "select sum(transfers), sum(cents) from balances";
    let sum = |count: i64| [count, count * (count - 1) / 2];

    let example = Example::start("exactly_once", &["--database", &path]);
    wait_for(&path, booked, sum(1_000));
    let mut database = Connection::open(&path).expect("a database");
    {
        // it cannot write meanwhile: what it has of these is in hand when it is killed
        let _locked = database.transaction_with_behavior(TransactionBehavior::Immediate).expect("a lock");
        produce("transfers", 1_000..2_000);
        example.kill();
    }
    assert_eq!(row(&path, booked), sum(1_000), "what was in hand is not half there");
    assert_eq!(committed_sum(), 0, "so all comes again");

    for had in [2_000, 42_000] {
        let example = Example::start("exactly_once", &["--database", &path]);
        wait_for(&path, booked, sum(had));
        // killed while it writes, wherever that is
        produce("transfers", had..had + 40_000);
        until("some more", || if row::<2>(&path, booked)[0] > had { Ok(()) } else { Err("none") });
        example.kill();
    }

    let example = Example::start("exactly_once", &["--database", &path]);
    wait_for(&path, booked, sum(82_000));

    // another takes half of it in the middle of the work, and is alone when the first is killed in its middle
    produce("transfers", 82_000..122_000);
    until("some more", || if row::<2>(&path, booked)[0] > 82_000 { Ok(()) } else { Err("none") });
    let other = Example::start("exactly_once", &["--database", &path]);
    until("both own some", || {
        let owners = owners();
        if owners.len() == 2 { Ok(()) } else { Err(format!("{owners:?}")) }
    });
    wait_for(&path, booked, sum(122_000));
    produce("transfers", 122_000..162_000);
    until("some more", || if row::<2>(&path, booked)[0] > 122_000 { Ok(()) } else { Err("none") });
    example.kill();
    wait_for(&path, booked, sum(162_000));
    other.terminate();
    assert_eq!((row(&path, booked), committed_sum()), (sum(162_000), 162_000));
}

fn committed_sum() -> i64 {
    cluster().zookeeper_offsets("exactly_once", "transfers").expect("ZooKeeper answers").values().sum()
}

/// The ids of the members that own something.
fn owners() -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let zookeeper = ZooKeeper::connect(cluster().zookeeper(), Duration::from_secs(10), |_| {}).await;
        let zookeeper = zookeeper.expect("a session");
        let mut owners = BTreeSet::new();
        for partition in 0..4 {
            let path = format!("/consumers/exactly_once/owners/transfers/{partition}");
            match zookeeper.get_data(&path, false).await {
                Ok((thread, _)) => {
                    let thread = String::from_utf8(thread).expect("text");
                    owners.extend(thread.rsplit_once('-').map(|(member, _)| member.to_owned()));
                }
                Err(ZkError::NoNode) => {}
                Err(error) => panic!("{path}: {error}"),
            }
        }
        zookeeper.close().await.expect("it is closed");
        owners
    })
}
