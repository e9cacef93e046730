//! An ensemble of three ZooKeeper servers that loses its leader, its quorum, or one of its followers.

use std::collections::BTreeMap;

use kafka_troupe::proto::schemas::status::v1::SessionState;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record};
use troupe_cluster::{Cluster, Ensemble, KafkaVersion};

use crate::support::clusters::{CHROOT, ensemble};
use crate::support::group::Group;
use crate::support::history::History;
use crate::support::load::Load;
use crate::support::rounds;
use crate::support::system::{Log, Recorder, config, now_ms, run, wait_for_owners};
use crate::support::wait::{until, until_async};
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    sessions_outlive_their_leader_and_a_short_loss_of_quorum,
    a_member_behind_a_cut_off_follower_stops_before_another_claims,
    a_member_behind_a_leader_that_stands_still_stops_before_another_claims,
    a_member_that_leaves_a_cut_off_follower_keeps_its_partitions,
    nobody_delivers_while_the_quorum_is_lost_for_longer_than_a_session,
);

/// Of members that are to lose it.
const SESSION: i64 = 3000;
/// Delivery ends so long after the last heartbeat that was answered, when time is measured around a handler on a
/// machine under load.
const LEASE: i64 = SESSION * 2 / 3 + 250;

fn sessions_outlive_their_leader_and_a_short_loss_of_quorum(version: KafkaVersion) {
    let cluster = ensemble(version).start().unwrap();
    let (servers, name) = (cluster.ensemble(), "outlived");
    let group = Group::new(&cluster, name, 4);
    let load = Load::start(&cluster, name);
    let properties = ["zookeeper.session.timeout.ms=40000"];
    let (one, two) = (group.join("m1", 1, &properties), group.join("m2", 1, &properties));
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    wait_for_commits(&group);
    let (before, tenures_before) = (ephemeral_nodes(&group), group.zookeeper().tenures.len());
    assert_eq!(before.len(), 2 + 4, "{before:?}");

    for _ in 0..rounds().unwrap_or(1) {
        let leader = servers.leader().unwrap();
        servers.servers()[leader].kill().unwrap();
        assert_ne!(servers.leader().unwrap(), leader);
        wait_for_commits(&group);
        servers.start_missing().unwrap();
    }

    lose_quorum(servers);
    group.wait_for_more(10);
    servers.start_missing().unwrap();
    wait_for_commits(&group);

    servers.kill_all().unwrap();
    group.wait_for_more(10);
    servers.start_missing().unwrap();
    wait_for_commits(&group);
    assert_eq!(ephemeral_nodes(&group), before, "the same sessions and nodes");

    // they still watch
    let three = group.join("m3", 1, &properties);
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m3-0"]);
    let tenures = group.zookeeper().tenures;
    assert_eq!(tenures.len(), tenures_before + 1, "only what was handed over moved: {tenures:?}");
    load.end();
    group.wait_for_all();
    for member in [one, two, three] {
        member.leave();
    }
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}

/// Session and creation of every registration and owner node.
fn ephemeral_nodes(group: &Group<'_>) -> BTreeMap<String, (i64, (i64, i64))> {
    let nodes = group.zookeeper().nodes.into_iter();
    nodes.filter_map(|(path, node)| Some((path, (node.session?, node.created)))).collect()
}

/// Waits until each partition is committed further than now: so all members are at work with ZooKeeper.
#[track_caller]
fn wait_for_commits(group: &Group<'_>) {
    let before = group.zookeeper().committed(&group.name);
    until("a commit of each partition", || {
        let now = group.zookeeper().committed(&group.name);
        let further =
            now.len() == 4 && now.iter().all(|(partition, offset)| before.get(partition) < Some(offset));
        if further { Ok(()) } else { Err(format!("{before:?} to {now:?}")) }
    });
}

/// Kills the leader and a follower, and waits until the third serves nobody; epoch milliseconds of the loss.
fn lose_quorum(ensemble: &Ensemble) -> i64 {
    let leader = ensemble.leader().unwrap();
    let lost = [leader, (leader + 1) % 3];
    lost.iter().for_each(|server| ensemble.servers()[*server].kill().unwrap());
    let at = now_ms();
    until("the third to notice", || match ensemble.servers()[(leader + 2) % 3].mode() {
        None => Ok(()),
        Some(mode) => Err(mode),
    });
    at
}

async fn start(
    cluster: &Cluster,
    group: &str,
    member: &str,
    log: &Log,
    more: &[(&str, &str)],
) -> ConsumerHandle {
    let handler = Recorder::factory(member, log, |_: &Record| Ok(()));
    let system = ConsumerSystem::builder(config(cluster, group, member, more)).handle(group, 1, handler);
    system.start().await.expect("a member starts")
}

/// The session of a member, as ZooKeeper has it.
fn session(cluster: &Cluster, group: &str, member: &str) -> i64 {
    let zookeeper = GroupHistory::of(cluster, group);
    zookeeper.node(&format!("ids/{group}_{member}")).and_then(|node| node.session).expect("it is registered")
}

/// A member that knows one server only, and another that knows its peers only, with their deliveries.
struct Apart<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    log: Log,
    load: Load,
    members: [ConsumerHandle; 2],
}

const SHARES: [&str; 4] = ["m1-0", "m1-0", "m2-0", "m2-0"];

impl<'a> Apart<'a> {
    async fn start(cluster: &'a Cluster, name: &'a str, server: usize) -> Self {
        cluster.create_topic(name, 4, 1).unwrap();
        let (log, load) = (Log::default(), Load::start(cluster, name));
        let servers = cluster.ensemble().servers().iter().enumerate();
        let [its, peers] = [true, false].map(|its| {
            let of = servers.clone().filter(|(index, _)| (*index == server) == its);
            of.map(|(_, server)| server.connect()).collect::<Vec<_>>().join(",") + CHROOT
        });
        let join = async |member, connect: &str, timeout: &str| {
            let properties = [("zookeeper.connect", connect), ("zookeeper.session.timeout.ms", timeout)];
            start(cluster, name, member, &log, &properties).await
        };
        let one = join("m1", &its, &SESSION.to_string()).await;
        let two = join("m2", &peers, "30000").await;
        Self { cluster, name, log, load, members: [one, two] }
    }

    fn zookeeper(&self) -> GroupHistory {
        GroupHistory::of(self.cluster, self.name)
    }

    fn session(&self) -> i64 {
        session(self.cluster, self.name, "m1")
    }

    async fn wait_for_owners(&self, owners: [&str; 4]) {
        wait_for_owners(self.cluster, self.name, self.name, &owners).await;
    }

    /// The first member is back, in a new session, and stopped between the cut and its end before others claimed.
    async fn check(&self, old: i64, cut: i64, joined: i64) {
        self.wait_for_owners(SHARES).await;
        assert_ne!(self.session(), old, "a new session");
        let (history, zookeeper) = (self.log.history(self.name), self.zookeeper());
        println!("{}: expired {} ms after the cut", self.name, zookeeper.ended[&old] - cut);
        check_stopped_before_claims(&history, &zookeeper, cut, joined);
    }

    async fn end(self) {
        self.log.wait_for_more(100).await;
        self.load.end();
        self.log.wait_for_all(self.cluster, self.name).await;
        for member in self.members {
            member.shutdown().await;
        }
        self.log.history(self.name).check(&GroupHistory::of(self.cluster, self.name));
    }
}

/// Twice, or as often as it takes to close an issue: the follower is joined again while it still answers, and after
/// it has given its leader up.
fn a_member_behind_a_cut_off_follower_stops_before_another_claims(version: KafkaVersion) {
    let cluster = ensemble(version).start().unwrap();
    let servers = cluster.ensemble();
    let follower = (servers.leader().unwrap() + 1) % 3;
    run(async {
        let group = Apart::start(&cluster, "behind", follower).await;
        for round in 0..rounds().unwrap_or(2) {
            group.wait_for_owners(SHARES).await;
            group.log.wait_for_more(100).await;
            let (old, cut) = (group.session(), now_ms());
            servers.cut_off(follower);
            let deceived = wait_while_deceived(&cluster, group.name, follower, old).await;
            let expired = group.zookeeper().ended[&old];
            assert!(deceived > expired, "the follower was last asked at {deceived}, before {expired}");
            // enough to see whether the first goes on
            group.log.wait_for_more(400).await;
            if round % 2 == 1 {
                until("the follower to give up", || servers.servers()[follower].mode().map_or(Ok(()), Err));
            }
            let joined = now_ms();
            servers.join_again(follower);
            group.check(old, cut, joined).await;
        }
        group.end().await;
    });
}

/// Its peers elect another; it believes to lead still when it goes on.
fn a_member_behind_a_leader_that_stands_still_stops_before_another_claims(version: KafkaVersion) {
    let cluster = ensemble(version).start().unwrap();
    let servers = cluster.ensemble();
    let leader = servers.leader().unwrap();
    run(async {
        let group = Apart::start(&cluster, "deposed", leader).await;
        group.wait_for_owners(SHARES).await;
        group.log.wait_for_more(100).await;
        let (old, cut) = (group.session(), now_ms());
        servers.servers()[leader].pause().unwrap();
        group.wait_for_owners(["m2-0"; 4]).await;
        group.log.wait_for_more(400).await;
        let resumed = now_ms();
        servers.servers()[leader].resume().unwrap();
        group.check(old, cut, resumed).await;
        group.end().await;
    });
}

/// It knows another follower, and goes on there before its lease ends.
fn a_member_that_leaves_a_cut_off_follower_keeps_its_partitions(version: KafkaVersion) {
    let cluster = ensemble(version).start().unwrap();
    let (servers, name) = (cluster.ensemble(), "leaves");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(&cluster, name);
    let leader = servers.leader().unwrap();
    let followers = [(leader + 1) % 3, (leader + 2) % 3];
    let connect = followers.map(|index| servers.servers()[index].connect()).join(",") + CHROOT;
    run(async {
        let log = Log::default();
        // a follower goes on for longer without its leader
        let its = [("zookeeper.connect", connect.as_str()), ("zookeeper.session.timeout.ms", "4500")];
        let one = start(&cluster, name, "m1", &log, &its).await;
        let two = start(&cluster, name, "m2", &log, &[("zookeeper.session.timeout.ms", "20000")]).await;
        wait_for_owners(&cluster, name, name, &SHARES).await;
        log.wait_for_more(100).await;
        let before = session(&cluster, name, "m1");
        let tenures = GroupHistory::of(&cluster, name).tenures.len();
        let is_at = |index: usize| {
            let connections = servers.servers()[index].command("cons").unwrap_or_default();
            connections.contains(&format!("sid=0x{before:x},"))
        };
        let cut_off = if is_at(followers[0]) { 0 } else { 1 };
        let cut = now_ms();
        servers.cut_off(followers[cut_off]);
        until_async("a peer to have the session", async || {
            if is_at(followers[1 - cut_off]) { Ok(()) } else { Err(format!("{} ms", now_ms() - cut)) }
        })
        .await;
        println!("went on with a peer {} ms after the cut", now_ms() - cut);
        log.wait_for_more(400).await;
        servers.join_again(followers[cut_off]);
        load.end();
        log.wait_for_all(&cluster, name).await;
        assert_eq!(session(&cluster, name, "m1"), before);
        assert_eq!(GroupHistory::of(&cluster, name).tenures.len(), tenures, "nothing moved");
        one.shutdown().await;
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(&cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

/// Waits until the second member owns all; when the follower last told, after that if at all, that the first one's
/// session still owns its part.
async fn wait_while_deceived(cluster: &Cluster, name: &str, follower: usize, session: i64) -> i64 {
    let follower = &cluster.ensemble().servers()[follower];
    let mut deceived = 0;
    until_async("the second member to own all", async || {
        let owners = GroupHistory::of(cluster, name).owners(name);
        if holds(&follower.command("dump").unwrap_or_default(), session, &format!("owners/{name}/0")) {
            deceived = now_ms();
        }
        if owners.values().map(String::as_str).eq(["m2-0"; 4]) { Ok(()) } else { Err(format!("{owners:?}")) }
    })
    .await;
    deceived
}

/// Whether a server's `dump` has the node among those of the session: below its id, indented.
fn holds(dump: &str, session: i64, node: &str) -> bool {
    let its = dump.lines().skip_while(|line| *line != format!("0x{session:x}:")).skip(1);
    its.take_while(|line| line.starts_with('\t')).any(|line| line.ends_with(node))
}

/// The first member, of which partitions 0 and 1 were, between the cut and its end.
fn check_stopped_before_claims(history: &History, zookeeper: &GroupHistory, cut: i64, joined: i64) {
    for partition in 0..2 {
        let its = history.of(partition).filter(|it| it.member == "m1").filter_map(|it| it.at);
        let last = its.filter(|at| *at < joined).max().expect("it has delivered");
        let claims = zookeeper.tenures.iter().filter(|it| it.partition == partition).map(|it| it.from.0);
        let claim = claims.filter(|at| *at > cut).min().expect("it was claimed");
        println!(
            "partition {partition}: last delivery {} ms after the cut, {} ms before the claim",
            last - cut,
            claim - last
        );
        assert!(last < claim, "delivered at {last}, claimed at {claim}");
        assert!(last < cut + LEASE, "delivered at {last}, cut off at {cut}");
    }
}

fn nobody_delivers_while_the_quorum_is_lost_for_longer_than_a_session(version: KafkaVersion) {
    let cluster = ensemble(version).start().unwrap();
    let (servers, name) = (cluster.ensemble(), "lost");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(&cluster, name);
    run(async {
        let log = Log::default();
        let session_ms = SESSION.to_string();
        let short = [("zookeeper.session.timeout.ms", session_ms.as_str())];
        let members = [
            start(&cluster, name, "m1", &log, &short).await,
            start(&cluster, name, "m2", &log, &short).await,
        ];
        wait_for_owners(&cluster, name, name, &SHARES).await;
        log.wait_for_more(100).await;
        let sessions = || ["m1", "m2"].map(|member| session(&cluster, name, member));
        let before = sessions();
        let lost = lose_quorum(servers);
        for member in &members {
            wait_until_session_is_given_up(member).await;
        }
        // which counts from a heartbeat that may have been sent before the last server was gone
        until_async("the loss to outlast a session", async || match now_ms() - lost {
            lasted if lasted > SESSION => Ok(()),
            lasted => Err(format!("{lasted} ms")),
        })
        .await;
        let begun = now_ms();
        servers.start_missing().unwrap();
        until_async("new sessions that own all", async || {
            let zookeeper = GroupHistory::of(&cluster, name);
            let owners = zookeeper.nodes.iter().filter(|(path, _)| path.contains("/owners/"));
            let new: Vec<_> =
                owners.filter_map(|(_, node)| node.session).filter(|it| !before.contains(it)).collect();
            if new.len() == 4 { Ok(()) } else { Err(format!("{new:?}, not {before:?}")) }
        })
        .await;
        wait_for_owners(&cluster, name, name, &SHARES).await;
        assert!(sessions().iter().all(|session| !before.contains(session)));
        log.wait_for_more(100).await;
        load.end();
        log.wait_for_all(&cluster, name).await;
        for member in members {
            member.shutdown().await;
        }
        let history = log.history(name);
        history.check(&GroupHistory::of(&cluster, name));
        let late = |at: i64| (lost + LEASE..begun).contains(&at);
        let late = history.deliveries.iter().filter(|it| it.at.is_some_and(late));
        assert_eq!(late.count(), 0, "lost at {lost}, back after {begun}");
    });
}

async fn wait_until_session_is_given_up(member: &ConsumerHandle) {
    until_async("the end of a session", async || {
        let session = member.metrics().await.expect("it runs").session.unwrap_or_default();
        if session.state() == SessionState::Connecting { Ok(()) } else { Err(format!("{session:?}")) }
    })
    .await;
}
