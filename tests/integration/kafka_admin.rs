//! Brokers of each generation, asked and told outside any group; groups of Kafka's own consumer among what they tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe::TopicPartition;
use kafka_troupe::actors::admin::{AdminError, KafkaAdmin, KafkaGroup};
use kafka_troupe::actors::broker_connection::ConnectOptions;
use kafka_troupe::proto::config::ServerAddress;
use kafka_troupe::proto::kafka::list_offsets::{EARLIEST, LATEST};
use troupe_cluster::{Cluster, JavaMember, KafkaVersion, ProduceRecord};

use crate::support::clusters::{builder, shared};
use crate::support::load::numbered;
use crate::support::system::run;
use crate::support::wait::until_async;

fn options() -> ConnectOptions {
    ConnectOptions::new("admin", Duration::from_secs(30))
}

/// A port that nobody listens at comes first.
async fn admin(cluster: &Cluster) -> KafkaAdmin {
    let (host, port) = cluster.bootstrap().split(',').next().unwrap().rsplit_once(':').map(own).unwrap();
    let servers = vec![ServerAddress::new("127.0.0.1", 1), ServerAddress::new(host, port.parse().unwrap())];
    KafkaAdmin::connect(servers, options()).await.unwrap()
}

fn own((host, port): (&str, &str)) -> (String, String) {
    (host.to_owned(), port.to_owned())
}

fn keys(topic: &str, partitions: i32) -> Vec<TopicPartition> {
    (0..partitions).map(|number| TopicPartition::new(topic, number)).collect()
}

/// What the offsets are, of partitions that all have one.
fn offsets<T: Clone>(all: &BTreeMap<TopicPartition, T>, offset: impl Fn(&T) -> i64) -> Vec<i64> {
    all.values().map(offset).collect()
}

fn told(all: &BTreeMap<TopicPartition, Result<Option<i64>, String>>) -> Vec<i64> {
    offsets(all, |offset| offset.clone().unwrap().unwrap())
}

macro_rules! of_brokers {
    ($($test:ident: $version:ident, $check:ident;)+) => { $(
        #[test]
        fn $test() {
            run($check(KafkaVersion::$version));
        }
    )+ };
}

of_brokers! {
    brokers_of_0_8_tell_of_logs_and_offsets_but_of_no_groups: V0_8_2_2, old;
    brokers_of_0_9_tell_of_logs_offsets_and_groups: V0_9_0_1, old;
    brokers_of_1_1_tell_of_logs_offsets_and_groups: V1_1_1, groups;
    brokers_of_3_9_tell_of_logs_offsets_and_groups: V3_9_1, groups;
    brokers_of_4_1_tell_of_logs_offsets_and_groups: V4_1_1, groups;
}

async fn old(version: KafkaVersion) {
    let cluster = shared(version);
    let admin = logs_and_offsets(cluster).await;
    if version == KafkaVersion::V0_8_2_2 {
        for error in [admin.groups().await.map(drop), admin.describe("admin-nobody").await.map(drop)] {
            assert!(matches!(error, Err(AdminError::Unsupported { .. })), "{error:?}");
        }
        // all that they know of it
        assert_eq!(admin.describe("admin-stored").await.unwrap().members, []);
    } else {
        members(cluster, version, &admin, "classic").await;
    }
    let refused = admin.delete_group("admin-stored").await.unwrap_err().to_string();
    assert!(refused.contains("too old") && refused.contains("DeleteGroupsRequest"), "{refused}");
}

async fn groups(version: KafkaVersion) {
    let cluster = shared(version);
    let admin = logs_and_offsets(cluster).await;
    let stored = admin.describe("admin-stored").await.unwrap();
    assert_eq!((&*stored.group_type, &*stored.state, stored.members.len()), ("classic", "Empty", 0));
    members(cluster, version, &admin, "classic").await;
    if version == KafkaVersion::V4_1_1 {
        members(cluster, version, &admin, "consumer").await;
    }
    admin.delete_group("admin-stored").await.unwrap();
    for gone in [admin.delete_group("admin-stored").await, admin.describe("admin-stored").await.map(drop)] {
        assert_eq!(gone, Err(AdminError::NoSuchGroup { group: "admin-stored".to_owned() }));
    }
    assert_eq!(admin.committed("admin-stored", None).await.unwrap(), BTreeMap::new());
}

/// What brokers of all generations can be asked.
async fn logs_and_offsets(cluster: &Cluster) -> KafkaAdmin {
    cluster.create_topic("admin", 3, 1).unwrap();
    let placed =
        (0..10).map(|n| ProduceRecord { partition: Some(n % 2), ..ProduceRecord::value(format!("{n}")) });
    cluster.produce("admin", placed).unwrap();
    let (admin, all) = (admin(cluster).await, keys("admin", 3));
    assert_eq!(admin.topics().await.unwrap()["admin"].partitions, [0, 1, 2]);
    assert_eq!(told(&admin.log_offsets(&all, EARLIEST).await), [0, 0, 0]);
    assert_eq!(told(&admin.log_offsets(&all, LATEST).await), [5, 5, 0]);
    // before anything was written, and after
    let (before, after) = (1, i64::MAX / 2);
    assert_eq!(told(&admin.log_positions(&all, before).await), [0, 0, 0]);
    let after = told(&admin.log_positions(&all, after).await);
    assert!(after == [5, 5, 0] || after == [0, 0, 0], "{after:?}: the segment's beginning before 0.10.1");
    unknown_is_said_and_not_made(&admin).await;

    let commits: Vec<_> = all[..2].iter().cloned().zip([3, 4]).collect();
    let outcomes = admin.commit("admin-stored", &commits).await.unwrap();
    assert!(outcomes.len() == 2 && outcomes.values().all(Result::is_ok), "{outcomes:?}");
    for keys in [None, Some(&*all)] {
        let committed = admin.committed("admin-stored", keys).await.unwrap();
        assert_eq!(offsets(&committed, |it| it.offset), [3, 4], "{keys:?}");
    }
    let one = admin.committed("admin-stored", Some(&all[1..2])).await.unwrap();
    assert_eq!(offsets(&one, |it| it.offset), [4]);
    assert_eq!(admin.committed("admin-unknown", None).await.unwrap(), BTreeMap::new());
    admin
}

/// One that is missing spoils nothing, costs no wait, and is not made.
async fn unknown_is_said_and_not_made(admin: &KafkaAdmin) {
    let asked = [
        TopicPartition::new("admin", 1),
        TopicPartition::new("admin", 9),
        TopicPartition::new("admin-no", 0),
    ];
    let ends =
        tokio::time::timeout(Duration::from_secs(20), admin.log_offsets(&asked, LATEST)).await.unwrap();
    assert_eq!(ends[&asked[0]], Ok(Some(5)));
    for missing in &asked[1..] {
        assert!(ends[missing].as_ref().unwrap_err().contains("there is no such"), "{ends:?}");
    }
    assert!(!admin.topics().await.unwrap().contains_key("admin-no"));
}

/// A group of Kafka's own consumer, by its protocol: listed, described, refused while it is there, and gone.
async fn members(cluster: &Cluster, version: KafkaVersion, admin: &KafkaAdmin, protocol: &str) {
    let topic = format!("admin-{protocol}");
    cluster.create_topic(&topic, 2, 1).unwrap();
    cluster.produce(&topic, numbered(10)).unwrap();
    let mut java = java_member(cluster, version, &topic, protocol);
    java.join().unwrap();
    let described = until_stable(admin, &topic).await;
    let member = &described.members[0];
    assert_eq!((&*described.group_type, described.members.len()), (protocol, 1), "{described:?}");
    assert_eq!((&member.partitions, &*member.client_id), (&keys(&topic, 2), "java"), "{described:?}");
    assert!(member.host == "127.0.0.1" && !member.id.is_empty(), "{described:?}");
    let has_instance = version >= KafkaVersion::V3_9_1;
    assert_eq!(member.instance.as_deref(), has_instance.then_some("one"));
    assert!(!described.assignor.is_empty(), "{described:?}");

    let (listed, errors) = admin.groups().await.unwrap();
    let listed = listed.iter().find(|listed| listed.name == topic).unwrap();
    assert_eq!((listed.group_type.as_deref(), &*listed.protocol_type), (Some(protocol), "consumer"));
    assert_eq!(listed.state.as_deref(), has_instance.then_some("Stable"));
    assert!(errors.is_empty(), "{errors:?}");

    let key = TopicPartition::new(&*topic, 0);
    let refused = admin.commit(&topic, &[(key.clone(), 0)]).await.unwrap();
    assert!(refused[&key].as_ref().unwrap_err().contains("are active"), "{refused:?}");
    if version >= KafkaVersion::V1_1_1 {
        let members = vec![member.id.clone()];
        let active = AdminError::Active { group: topic.clone(), members };
        assert_eq!(admin.delete_group(&topic).await, Err(active));
    }
    until_async("all handled and committed", async || {
        let committed = admin.committed(&topic, None).await.map_err(|error| error.to_string())?;
        let sum: i64 = committed.values().map(|it| it.offset).sum();
        if sum == 10 { Ok(()) } else { Err(format!("{committed:?}")) }
    })
    .await;
    java.leave().unwrap();
}

async fn until_stable(admin: &KafkaAdmin, group: &str) -> KafkaGroup {
    until_async("a member with both partitions", async || {
        let described = admin.describe(group).await.map_err(|error| error.to_string())?;
        let has_all = described.members.iter().any(|member| member.partitions.len() == 2);
        if described.state == "Stable" && has_all { Ok(described) } else { Err(format!("{described:?}")) }
    })
    .await
}

fn java_member(cluster: &Cluster, version: KafkaVersion, group: &str, protocol: &str) -> JavaMember {
    let (id, protocol) = (format!("group.id={group}"), format!("group.protocol={protocol}"));
    let mut properties =
        vec![&*id, "client.id=java", "auto.offset.reset=earliest", "auto.commit.interval.ms=100"];
    if version >= KafkaVersion::V3_9_1 {
        properties.push("group.instance.id=one");
    }
    if version >= KafkaVersion::V4_1_1 {
        properties.push(&protocol);
    }
    let journal = cluster.folder().join(format!("{group}.journal"));
    cluster.group_member(version, group, (&journal, "java"), &properties).expect("a consumer starts")
}

#[test]
fn without_any_broker_the_error_says_what_each_said_at_once() {
    run(async {
        let servers = vec![ServerAddress::new("127.0.0.1", 1), ServerAddress::new("127.0.0.1", 2)];
        let error = KafkaAdmin::connect(servers, options()).await.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:1") && error.contains("127.0.0.1:2"), "{error}");
    });
}

#[test]
fn a_silent_broker_costs_no_other_leaders_answer_and_a_restart_is_waited_for() {
    let cluster = Arc::new(builder(KafkaVersion::V3_9_1).brokers(2).start().unwrap());
    cluster.create_topic("silent", 2, 1).unwrap();
    cluster.wait_for_leaders("silent").unwrap();
    cluster.produce("silent", numbered(10)).unwrap();
    run(async {
        let (admin, all) = (admin(&cluster).await, keys("silent", 2));
        cluster.client().coordinator("silent").unwrap();
        cluster.broker(1).pause().unwrap();
        let ends = admin.clone().with_timeout(Duration::from_secs(4)).log_offsets(&all, LATEST).await;
        let silent: Vec<_> = ends.values().filter_map(|end| end.as_ref().err()).collect();
        assert!(silent.len() == 1 && silent[0].contains("broker 1 is silent"), "{ends:?}");
        cluster.broker(1).resume().unwrap();
        assert_eq!(told(&admin.log_offsets(&all, LATEST).await), [5, 5]);

        let commits: Vec<_> = all.iter().cloned().zip([1, 2]).collect();
        admin.commit("silent", &commits).await.unwrap();
        cluster.brokers().iter().for_each(|broker| broker.kill().unwrap());
        let patient = admin.with_timeout(Duration::from_secs(120));
        let restart = tokio::task::spawn_blocking({
            let cluster = Arc::clone(&cluster);
            move || cluster.brokers().iter().for_each(|broker| broker.restart().unwrap())
        });
        let committed = patient.committed("silent", None).await.unwrap();
        restart.await.unwrap();
        assert_eq!(offsets(&committed, |it| it.offset), [1, 2]);
        assert_eq!(told(&patient.log_offsets(&all, LATEST).await), [5, 5]);
    });
}
