//! A group of processes that consume one topic.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use troupe_cluster::Cluster;

use super::history::{Delivery, History};
use super::member::Member;
use super::wait::until;
use super::zk_log::{GroupHistory, Node};

pub struct Group<'a> {
    pub cluster: &'a Cluster,
    /// Of the group, and of its topic.
    pub name: String,
    folder: PathBuf,
}

impl<'a> Group<'a> {
    /// A group and a topic, both new.
    pub fn new(cluster: &'a Cluster, name: &str, partitions: i32) -> Self {
        cluster.create_topic(name, partitions, 1).expect("a topic can be made");
        Self::without_topic(cluster, name)
    }

    /// A group whose topic does not exist yet.
    pub fn without_topic(cluster: &'a Cluster, name: &str) -> Self {
        let folder = cluster.folder().join(format!("members-of-{name}"));
        fs::create_dir_all(&folder).expect("a folder can be made");
        Self { cluster, name: name.to_owned(), folder }
    }

    /// Starts a member from the beginning of the topic, with quick commits and session; `more` goes before.
    pub fn join(&self, member: &str, threads: u32, more: &[&str]) -> Member {
        self.join_through(&self.cluster.zookeeper_connect(), member, threads, more)
    }

    /// As [`join`](Self::join), by another way to ZooKeeper.
    pub fn join_through(&self, connect: &str, member: &str, threads: u32, more: &[&str]) -> Member {
        let properties = [
            "auto.offset.reset=smallest",
            "zookeeper.session.timeout.ms=6000",
            "rebalance.backoff.ms=1000",
            "auto.commit.interval.ms=100",
        ];
        let id = format!("consumer.id={member}");
        let all = properties.into_iter().chain([id.as_str()]).chain(more.iter().copied());
        self.start(connect, member, threads, all)
    }

    /// Starts a member with these properties only.
    pub fn join_plainly<'b>(
        &self,
        member: &str,
        threads: u32,
        properties: impl IntoIterator<Item = &'b str>,
    ) -> Member {
        self.start(&self.cluster.zookeeper_connect(), member, threads, properties)
    }

    fn start<'b>(
        &self,
        connect: &str,
        member: &str,
        threads: u32,
        properties: impl IntoIterator<Item = &'b str>,
    ) -> Member {
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        add("--zookeeper", connect.to_owned());
        add("--group", self.name.clone());
        add("--topic", self.name.clone());
        add("--threads", threads.to_string());
        // should nobody be there any more to end it
        add("--timeout-ms", "120000".to_owned());
        // the name of the member ends each line, which is written at once, so that the file has the true order
        let output = ["print.partition=true", "print.offset=true", &format!("line.separator=\t{member}\n")]
            .map(str::to_owned);
        for property in output.into_iter().chain(properties.into_iter().map(str::to_owned)) {
            add("--property", property);
        }
        Member::start(&arguments, &self.output(), self.folder.join(format!("{member}.log")))
    }

    /// Where all members append what they handle.
    pub fn output(&self) -> PathBuf {
        self.folder.join("output")
    }

    /// What all members have printed so far.
    pub fn history(&self) -> History {
        let text = fs::read_to_string(self.output()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let deliveries = whole.lines().map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |index: usize, name: &str| {
                let text = fields.get(index).and_then(|field| field.strip_prefix(name));
                text.and_then(|text| text.parse::<i64>().ok()).unwrap_or_else(|| panic!("odd line: {line:?}"))
            };
            let (partition, offset) = (number(0, "Partition:"), number(1, "Offset:"));
            let partition = i32::try_from(partition).expect("a partition");
            Delivery { member: fields[fields.len() - 1].to_owned(), partition, offset, at: None }
        });
        History { topic: self.name.clone(), deliveries: deliveries.collect() }
    }

    /// The values of what all members have printed so far.
    pub fn values(&self) -> Vec<String> {
        let text = fs::read_to_string(self.output()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| line.split('\t').nth(2).expect("a value").to_owned()).collect()
    }

    /// The registration of a member.
    pub fn registration(&self, member: &str) -> Node {
        let zookeeper = self.zookeeper();
        zookeeper.node(&format!("ids/{}_{member}", self.name)).expect("it is registered").clone()
    }

    pub fn zookeeper(&self) -> GroupHistory {
        GroupHistory::of(self.cluster, &self.name)
    }

    /// Waits until the partitions are owned by these threads (`member-index`), in order.
    #[track_caller]
    pub fn wait_for_owners(&self, threads: &[&str]) {
        let expected: BTreeMap<i32, String> = (0..).zip(threads.iter().map(|it| (*it).to_owned())).collect();
        until(&format!("owners {expected:?}"), || {
            let owners = self.zookeeper().owners(&self.name);
            if owners == expected { Ok(()) } else { Err(format!("{owners:?}")) }
        });
    }

    /// Waits until everything that stands in the topic is committed.
    #[track_caller]
    pub fn wait_for_all_committed(&self) {
        let ends = self.cluster.log_end_offsets(&self.name).expect("the topic has ends");
        until(&format!("commits of {ends:?}"), || {
            let committed: Vec<i64> = self.zookeeper().committed(&self.name).into_values().collect();
            if committed == ends { Ok(()) } else { Err(format!("{committed:?}")) }
        });
    }

    /// Waits until everything that stands in the topic was delivered.
    #[track_caller]
    pub fn wait_for_all(&self) -> History {
        let ends = self.cluster.log_end_offsets(&self.name).expect("the topic has ends");
        until("delivery of all", || {
            let history = self.history();
            history.covers(&ends).map(|()| history)
        })
    }

    /// Waits until so many records were delivered since now.
    #[track_caller]
    pub fn wait_for_more(&self, count: usize) {
        let before = self.history().deliveries.len();
        until(&format!("{count} more deliveries"), || {
            let now = self.history().deliveries.len();
            if now >= before + count { Ok(()) } else { Err(format!("{} more", now - before)) }
        });
    }
}
