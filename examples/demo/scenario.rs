//! What happens, in order: one member, a second that joins and is killed, a third; and what is found afterwards.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kafka_troupe::ConsumerHandle;
use tokio::time::sleep;
use troupe_cluster::Cluster;

use crate::audit::{Audit, Kill, TakenOver};
use crate::board::{Board, State};
use crate::dashboard;
use crate::group_nodes::GroupNodes;
use crate::handled_log::{self, now_micros};
use crate::live::Live;
use crate::member::{self, MemberArgs, MemberProcess, TOPIC};
use crate::producing::{PARTITIONS, Producing, share};
use crate::report::{Commits, Report};

/// When to do what, as parts of all records.
const B_JOINS: f64 = 0.15;
const B_DIES: f64 = 0.4;
const C_JOINS: f64 = 0.75;
/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The running demo.
pub struct Scenario<'a> {
    cluster: &'a Cluster,
    folder: &'a Path,
    records: u64,
    board: Arc<Board>,
    live: Live,
    nodes: GroupNodes,
    a: ConsumerHandle,
    producing: Producing,
    /// Its address.
    dashboard: String,
    /// Those that run; none of them may end by itself.
    processes: Vec<MemberProcess>,
}

impl<'a> Scenario<'a> {
    /// Creates the topic, starts member `a` in this process, then the producer.
    pub async fn start(cluster: &'a Cluster, folder: &'a Path, records: u64) -> Result<Self> {
        cluster.create_topic(TOPIC, PARTITIONS, 1)?;
        let nodes = GroupNodes::connect(&cluster.zookeeper_connect()).await?;
        let board = Arc::new(Board::default());
        let live = Live::new(Arc::clone(&board), records);
        live.say("member a joins, in this process, with 4 streams");
        board.add("a", std::process::id());
        let a = member::join(&arguments(cluster, folder, "a")).await?;
        actix::spawn(member::watch(a.clone(), "a".to_owned(), Arc::clone(&board)));
        let dashboard = dashboard::serve(a.clone())?;
        live.say(&format!("the dashboard is at {dashboard}"));
        let producing = Producing::start(cluster.client(), records);
        let processes = Vec::new();
        Ok(Self { cluster, folder, records, board, live, nodes, a, producing, dashboard, processes })
    }

    /// All of it, up to the report.
    pub async fn play(&mut self) -> Result<Report> {
        self.until_produced(B_JOINS).await?;
        self.live.say("member b joins, a process of its own");
        self.join("b")?;
        self.until("b to own half of the partitions", |now| now.board.owned_by("b") == 4).await?;
        self.until_produced(B_DIES).await?;
        // only then the kill has a consequence to be seen
        self.until("b to have handled more than is committed", |now| now.board.is_ahead_of_commits("b"))
            .await?;
        let kill = self.kill_b().await?;
        self.until_produced(C_JOINS).await?;
        self.live.say("member c joins, a process of its own");
        self.join("c")?;
        self.until("c to own half of the partitions", |now| now.board.owned_by("c") == 4).await?;
        self.until("the producer to end", |now| now.producing.produced() == now.records).await?;
        self.until("all records to be handled", |now| now.board.acked() >= now.records).await?;
        self.live.say("all records are handled");
        let commits = self.commits().await?;
        self.live.end();
        let mut logs = Vec::new();
        for member in ["a", "b", "c"] {
            logs.push((member, handled_log::read(self.folder, member)?));
        }
        let audit = Audit::of(&logs, self.records, &kill);
        Ok(Report { records: self.records, audit, kill, commits, members: self.board.members() })
    }

    /// The address of the dashboard.
    pub fn dashboard(&self) -> &str {
        &self.dashboard
    }

    /// Stays until Ctrl-C.
    pub async fn keep(&mut self) -> Result<()> {
        let mut end = std::pin::pin!(tokio::signal::ctrl_c());
        self.live.resume();
        loop {
            tokio::select! {
                ended = &mut end => return Ok(ended?),
                () = sleep(LOOK) => {}
            }
            self.processes.iter_mut().filter_map(MemberProcess::died).for_each(drop);
            if self.live.draws() {
                self.live.draw(self.producing.produced());
            }
        }
    }

    /// The members leave the group.
    pub async fn end(mut self) -> Result<()> {
        for process in self.processes.drain(..) {
            tokio::task::spawn_blocking(|| process.leave()).await??;
        }
        self.a.shutdown().await;
        self.board.set_state("a", State::Left);
        self.nodes.close().await;
        Ok(())
    }

    fn join(&mut self, name: &str) -> Result<()> {
        let arguments = arguments(self.cluster, self.folder, name);
        self.processes.push(MemberProcess::start(&arguments, &self.board)?);
        Ok(())
    }

    /// Kills member b and waits until others own its partitions.
    async fn kill_b(&mut self) -> Result<Kill> {
        let b = self.processes.pop().ok_or("member b does not run")?;
        let mut owned = Vec::new();
        for partition in 0..PARTITIONS {
            if self.nodes.owner(partition).await?.as_deref() == Some("b") {
                owned.push(partition);
            }
        }
        b.kill()?;
        let mut kill = Kill { member: "b".to_owned(), at_micros: now_micros(), partitions: Vec::new() };
        self.live.say(&format!("member b is killed -9; it owned partitions {owned:?}"));
        let mut committed = vec![0; PARTITIONS as usize];
        let begun = Instant::now();
        while !owned.is_empty() {
            self.look("others to own the partitions of b", begun).await?;
            for partition in owned.clone() {
                // the offset first: while b still owns it after that, nobody else can have committed it
                let offset = self.nodes.committed(partition).await?.unwrap_or(0);
                match self.nodes.owner(partition).await? {
                    Some(owner) if owner == "b" => committed[partition as usize] = offset,
                    Some(by) => {
                        let (committed, at_micros) = (committed[partition as usize], now_micros());
                        kill.partitions.push(TakenOver { partition, committed, by, at_micros });
                        owned.retain(|other| *other != partition);
                    }
                    None => {}
                }
            }
        }
        let took = kill.partitions.iter().map(|taken| taken.at_micros).max().unwrap_or(kill.at_micros);
        let took = (took - kill.at_micros) as f64 / 1e6;
        self.live.say(&format!("the partitions of b are owned by others, {took:.2} s after the kill"));
        Ok(kill)
    }

    /// Waits until automatic commits have reached the end of every partition, and tells how they stand.
    async fn commits(&mut self) -> Result<Vec<Commits>> {
        let ends = self.cluster.log_end_offsets(TOPIC)?;
        let begun = Instant::now();
        loop {
            let mut all = Vec::new();
            for (partition, end) in (0..).zip(&ends) {
                let owner = self.nodes.owner(partition).await?;
                let committed = self.nodes.committed(partition).await?;
                let produced = share(self.records, partition);
                all.push(Commits { partition, produced, log_end: *end, committed, owner });
            }
            if all.iter().all(Commits::is_whole) || begun.elapsed() > Duration::from_secs(10) {
                return Ok(all);
            }
            self.look("commits", begun).await?;
        }
    }

    async fn until_produced(&mut self, part: f64) -> Result<()> {
        let wanted = (self.records as f64 * part) as u64;
        self.until("the producer", |now| now.producing.produced() >= wanted).await
    }

    async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !done(self) {
            self.look(what, begun).await?;
        }
        Ok(())
    }

    /// One turn of a wait: draws, and gives up when it is hopeless.
    async fn look(&mut self, what: &str, begun: Instant) -> Result<()> {
        self.live.draw(self.producing.produced());
        self.producing.check()?;
        if let Some(name) = self.processes.iter_mut().find_map(MemberProcess::died) {
            return Err(format!("member {name} has ended by itself: see {name}.stderr and {name}.log").into());
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("waited {PATIENCE:?} for {what}").into());
        }
        sleep(LOOK).await;
        Ok(())
    }
}

fn arguments(cluster: &Cluster, folder: &Path, name: &str) -> MemberArgs {
    let zookeeper = cluster.zookeeper_connect();
    MemberArgs { name: name.to_owned(), zookeeper, folder: folder.to_owned() }
}
