//! A member of the group: an actix app with four handler actors. The demo is one itself, and starts others as
//! processes of their own.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::actors::zk_session::ZOOKEEPER_LOG_FILTER;
use kafka_troupe::{ConsumerConfig, ConsumerHandle, ConsumerSystem, HandlerResult, Record, StatusSnapshot};
use prost::Message as _;
use tokio::time::{sleep, timeout};
use tracing_subscriber::EnvFilter;

use crate::board::{Board, State};
use crate::handled_log::{Entry, HandledLog, now_micros};

pub const GROUP: &str = "demo";
pub const TOPIC: &str = "demo";
pub const STREAMS: u32 = 4;
/// Short, so that one sees the partitions of a killed member move.
pub const SESSION_TIMEOUT: Duration = Duration::from_millis(3000);
/// Short, so that little is handled again after a kill.
pub const COMMIT_INTERVAL: Duration = Duration::from_millis(500);
/// How often a member tells how it stands.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How long leaving may take.
const LEAVE: Duration = Duration::from_secs(5);

/// Where a member finds its cluster, and the demo its traces.
#[derive(clap::Args, Clone)]
pub struct MemberArgs {
    /// Its name, which becomes its consumer.id
    #[arg(long)]
    pub name: String,
    /// Connect string of the ensemble
    #[arg(long)]
    pub zookeeper: String,
    /// Folder of the logs
    #[arg(long)]
    pub folder: PathBuf,
}

/// The handler: writes down what it is given. Were it to fail, the record would come again.
struct WriteDown(Arc<HandledLog>);

impl Actor for WriteDown {
    type Context = Context<Self>;
}

impl Handler<Record> for WriteDown {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        let sequence = record.text().parse()?;
        let (partition, offset) = (record.partition(), record.offset());
        Ok(self.0.append(Entry { partition, offset, sequence, micros: now_micros() })?)
    }
}

/// Joins the group in this process.
pub async fn join(args: &MemberArgs) -> Result<ConsumerHandle, Box<dyn Error>> {
    log_to(&args.folder.join(format!("{}.log", args.name)))?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(args.zookeeper.as_str())
        .group_id(GROUP)
        .property("consumer.id", &args.name)
        .property("zookeeper.session.timeout.ms", &SESSION_TIMEOUT.as_millis().to_string())
        .property("auto.commit.interval.ms", &COMMIT_INTERVAL.as_millis().to_string())
        .property("auto.offset.reset", "smallest")
        .build()?;
    let log = Arc::new(HandledLog::create(&args.folder, &args.name)?);
    let make = move || WriteDown(Arc::clone(&log));
    Ok(ConsumerSystem::builder(config).handle(TOPIC, STREAMS, make).start().await?)
}

fn log_to(path: &Path) -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = filter.add_directive(ZOOKEEPER_LOG_FILTER.parse()?);
    let file = File::create(path)?;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Arc::new(file)).init();
    Ok(())
}

/// Puts on the board how the member in this process stands, until it has left.
pub async fn watch(consumer: ConsumerHandle, name: String, board: Arc<Board>) {
    while let Ok(snapshot) = consumer.metrics().await {
        board.update(&name, snapshot);
        sleep(REPORT_INTERVAL).await;
    }
}

/// The life of a member process: its status goes to standard output, and it leaves when its standard input closes,
/// which it does however the demo ends.
pub async fn serve(args: MemberArgs) -> Result<(), Box<dyn Error>> {
    let consumer = join(&args).await?;
    let mut end = tokio::task::spawn_blocking(|| io::stdin().read(&mut [0]));
    loop {
        tokio::select! {
            _ = &mut end => break,
            () = sleep(REPORT_INTERVAL) => {}
        }
        if tell(&consumer.metrics().await?).is_err() {
            break;
        }
    }
    // when the demo was killed, ZooKeeper is gone as well, and there is nobody to take leave of
    let _ = timeout(LEAVE, consumer.shutdown()).await;
    Ok(())
}

fn tell(snapshot: &StatusSnapshot) -> io::Result<()> {
    let bytes = snapshot.encode_to_vec();
    let mut out = io::stdout().lock();
    out.write_all(&u32::try_from(bytes.len()).unwrap_or_default().to_le_bytes())?;
    out.write_all(&bytes)?;
    out.flush()
}

/// A member process, seen by the demo.
pub struct MemberProcess {
    name: String,
    child: Child,
    reader: Option<JoinHandle<io::Result<()>>>,
    board: Arc<Board>,
}

impl MemberProcess {
    /// Runs this program again as a member.
    pub fn start(args: &MemberArgs, board: &Arc<Board>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("member").args(["--name", &args.name, "--zookeeper", &args.zookeeper]);
        command.arg("--folder").arg(&args.folder);
        let errors = File::create(args.folder.join(format!("{}.stderr", args.name)))?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        board.add(&args.name, child.id());
        let reader = child.stdout.take().map(|mut status| {
            let (name, board) = (args.name.clone(), Arc::clone(board));
            std::thread::spawn(move || {
                loop {
                    board.update(&name, receive(&mut status)?);
                }
            })
        });
        Ok(Self { name: args.name.clone(), child, reader, board: Arc::clone(board) })
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.ended(State::Killed)
    }

    /// Lets it leave the group, and waits for it.
    pub fn leave(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.ended(State::Left)
    }

    /// Its name, if it has ended by itself.
    pub fn died(&mut self) -> Option<String> {
        self.child.try_wait().ok()??;
        self.board.set_state(&self.name, State::Killed);
        Some(self.name.clone())
    }

    /// Waits for its end and its last words.
    fn ended(&mut self, state: State) -> io::Result<()> {
        self.child.wait()?;
        if let Some(reader) = self.reader.take() {
            // its error is the end of the pipe
            let _ = reader.join();
        }
        self.board.set_state(&self.name, state);
        Ok(())
    }
}

fn receive(status: &mut impl Read) -> io::Result<StatusSnapshot> {
    let mut length = [0; 4];
    status.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    status.read_exact(&mut bytes)?;
    StatusSnapshot::decode(bytes.as_slice()).map_err(io::Error::other)
}
