//! Brokers that keep a group's offsets, and speak the real wire; a script has each request answered, refused, lost or
//! carried out late.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use kafka_troupe_actors::fetcher_manager::BrokerAddress;
use kafka_troupe_proto::kafka::frame::VersionRange;
use kafka_troupe_proto::kafka::wire::{Reader, WireError, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const COMMIT: i16 = 8;
const FETCH: i16 = 9;
const FIND: i16 = 10;
const VERSIONS: i16 = 18;

/// What becomes of a request.
pub enum Fate {
    /// Refused with this code, each partition of it.
    Refused(i16),
    /// This partition is refused with a code; the others are carried out.
    RefusedOne(i32, i16),
    /// Refused as a whole (OffsetFetch 2).
    RefusedWhole(i16),
    /// Carried out, but the connection is closed instead of an answer.
    Lost,
    /// The connection is closed, and nothing done.
    Closed,
    /// Not answered, and carried out when [`Brokers::carry_out_late`] says so.
    Held,
    /// Answered without this partition.
    LeftOut(i32),
}

type Act = Box<dyn FnOnce() + Send>;

/// Two brokers, of which one is the coordinator.
#[derive(Clone)]
pub struct Brokers {
    ports: [u16; 2],
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    coordinator: usize,
    /// Answers nothing.
    deaf: Option<usize>,
    stored: BTreeMap<i32, i64>,
    /// Of topic `t`, such as `commit 0=20` or `fetch 0`; `find` for look-ups.
    seen: Vec<String>,
    fates: BTreeMap<usize, Fate>,
    acts: BTreeMap<usize, Act>,
    /// What becomes of all requests of a kind that have no fate of their own.
    refuses: BTreeMap<&'static str, i16>,
    held: Vec<(i32, i64)>,
}

impl Brokers {
    pub async fn start() -> Self {
        let listeners = [listen().await, listen().await];
        let ports = [0, 1].map(|index: usize| listeners[index].local_addr().expect("it listens").port());
        let brokers = Self { ports, state: Arc::default() };
        for (index, listener) in listeners.into_iter().enumerate() {
            let brokers = brokers.clone();
            actix::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let brokers = brokers.clone();
                    // an error: the client has hung up
                    actix::spawn(async move { drop(brokers.serve(index, socket).await) });
                }
            });
        }
        brokers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    pub fn addresses(&self) -> Vec<BrokerAddress> {
        let address = |(id, port): (i32, u16)| BrokerAddress { id, host: "127.0.0.1".to_owned(), port };
        (0..).zip(self.ports).map(address).collect()
    }

    pub fn address(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.ports[index])
    }

    /// The coordinator is this one now; the other refuses.
    pub fn move_to(&self, index: usize) {
        self.state().coordinator = index;
    }

    /// This one answers nothing from now on.
    pub fn deafen(&self, index: usize) {
        self.state().deaf = Some(index);
    }

    pub fn stored(&self, partition: i32) -> Option<i64> {
        self.state().stored.get(&partition).copied()
    }

    /// Somebody else commits.
    pub fn store(&self, partition: i32, offset: i64) {
        self.state().stored.insert(partition, offset);
    }

    /// Counting begins again, and all that was scripted is forgotten.
    pub fn begin(&self) {
        let mut state = self.state();
        state.seen.clear();
        state.fates.clear();
        state.acts.clear();
        state.refuses.clear();
    }

    /// What was asked since then.
    pub fn seen(&self) -> Vec<String> {
        self.state().seen.clone()
    }

    /// What becomes of request number `step`, from 1 since then.
    pub fn fate(&self, step: usize, fate: Fate) {
        self.state().fates.insert(step, fate);
    }

    /// Has something happen when request number `step` has come, and before anything is done about it.
    pub fn before(&self, step: usize, act: impl FnOnce() + Send + 'static) {
        self.state().acts.insert(step, Box::new(act));
    }

    /// All requests of this kind (`commit`, `fetch` or `find`) are refused.
    pub fn refuse(&self, kind: &'static str, code: i16) {
        self.state().refuses.insert(kind, code);
    }

    /// What was held is done now.
    pub fn carry_out_late(&self) {
        let mut state = self.state();
        let held: Vec<_> = state.held.drain(..).collect();
        state.stored.extend(held);
    }

    async fn serve(&self, index: usize, mut socket: TcpStream) -> std::io::Result<()> {
        loop {
            let size = socket.read_u32().await?;
            let mut frame = vec![0; size as usize];
            socket.read_exact(&mut frame).await?;
            let answer = self.handle(index, Bytes::from(frame)).expect("requests can be read");
            match answer {
                Answer::Frame(frame) => {
                    socket.write_u32(u32::try_from(frame.len()).expect("a small answer")).await?;
                    socket.write_all(&frame).await?;
                }
                Answer::HangUp => return Ok(()),
                Answer::Never => std::future::pending().await,
            }
        }
    }

    fn handle(&self, index: usize, frame: Bytes) -> Result<Answer, WireError> {
        if self.state().deaf == Some(index) {
            return Ok(Answer::Never);
        }
        let mut r = Reader::new(frame);
        let api = r.i16("api")?;
        r.i16("version")?;
        let mut out = Writer::default();
        out.i32(r.i32("correlation id")?);
        r.nullable_string("client")?;
        match api {
            VERSIONS => versions(&mut out),
            FIND => self.find(&mut out),
            FETCH | COMMIT => {
                let request = read(api, &mut r)?;
                match self.decide(index, api, request) {
                    Done::Answer { partitions, whole } => write(api, &partitions, whole, &mut out),
                    Done::HangUp => return Ok(Answer::HangUp),
                    Done::Nothing => return Ok(Answer::Never),
                }
            }
            other => panic!("unexpected request {other}"),
        }
        Ok(Answer::Frame(out.finish()?.freeze()))
    }

    fn find(&self, out: &mut Writer) {
        let mut state = self.state();
        state.seen.push("find".to_owned());
        let error = state.refuses.get("find").copied().unwrap_or_default();
        out.i16(error);
        out.i32(i32::try_from(state.coordinator).expect("one of two"));
        out.string("host", if error == 0 { "127.0.0.1" } else { "" });
        out.i32(self.ports[state.coordinator].into());
    }

    fn decide(&self, index: usize, api: i16, partitions: Vec<(i32, i64)>) -> Done {
        let (kind, fate, act) = {
            let mut state = self.state();
            let kind = if api == COMMIT { "commit" } else { "fetch" };
            let asked: Vec<String> = partitions
                .iter()
                .map(|(partition, offset)| match api {
                    COMMIT => format!("{partition}={offset}"),
                    _ => partition.to_string(),
                })
                .collect();
            state.seen.push(format!("{kind} {}", asked.join(" ")));
            let step = state.seen.len();
            (kind, state.fates.remove(&step), state.acts.remove(&step))
        };
        // not locked while others act
        act.into_iter().for_each(|act| act());
        let mut state = self.state();
        let fate = match (fate, state.refuses.get(kind)) {
            _ if index != state.coordinator => Some(Fate::Refused(16)),
            (None, Some(code)) => Some(Fate::Refused(*code)),
            (fate, _) => fate,
        };
        state.come_to(api, partitions, fate)
    }
}

enum Answer {
    Frame(Bytes),
    HangUp,
    Never,
}

enum Done {
    /// Partition, offset, error.
    Answer {
        partitions: Vec<(i32, i64, i16)>,
        whole: i16,
    },
    HangUp,
    Nothing,
}

impl State {
    fn come_to(&mut self, api: i16, mut asked: Vec<(i32, i64)>, fate: Option<Fate>) -> Done {
        let (mut error, mut refused_one, mut whole) = (0, None, 0);
        match &fate {
            Some(Fate::Refused(code)) => error = *code,
            Some(Fate::RefusedOne(partition, code)) => refused_one = Some((*partition, *code)),
            Some(Fate::RefusedWhole(code)) => {
                whole = *code;
                asked.clear();
            }
            Some(Fate::Closed) => return Done::HangUp,
            Some(Fate::Held) => {
                self.held.extend(asked);
                return Done::Nothing;
            }
            _ => {}
        }
        let error_of = |partition| match refused_one {
            Some((refused, code)) if refused == partition => code,
            _ => error,
        };
        if api == COMMIT {
            self.stored.extend(asked.iter().copied().filter(|(partition, _)| error_of(*partition) == 0));
        }
        let stored = |(partition, _)| {
            let error = error_of(partition);
            let offset = if error == 0 { self.stored.get(&partition).copied() } else { None };
            (partition, offset.unwrap_or(-1), error)
        };
        let mut partitions: Vec<_> = asked.into_iter().map(stored).collect();
        match fate {
            Some(Fate::Lost) => return Done::HangUp,
            Some(Fate::LeftOut(left_out)) => partitions.retain(|(partition, ..)| *partition != left_out),
            _ => {}
        }
        Done::Answer { partitions, whole }
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

fn versions(out: &mut Writer) {
    let range = |min, max| VersionRange::new(min, max);
    out.i16(0);
    let all = [(1, range(4, 4)), (COMMIT, range(1, 2)), (FETCH, range(1, 2)), (FIND, range(0, 0))];
    out.array("versions", &all, |out, (api, range)| {
        out.i16(*api);
        out.i16(range.min);
        out.i16(range.max);
    });
}

/// Partitions of the one topic, with offsets where it is a commit.
fn read(api: i16, r: &mut Reader) -> Result<Vec<(i32, i64)>, WireError> {
    assert_eq!(&*r.string("group")?, "g");
    if api == COMMIT {
        assert_eq!((r.i32("generation")?, &*r.string("member")?, r.i64("retention")?), (-1, "", -1));
    }
    let topics = r.array("topics", 1, |r| {
        assert_eq!(&*r.string("topic")?, "t");
        r.array("partitions", 4, |r| {
            let partition = r.i32("partition")?;
            let offset = if api == COMMIT { r.i64("offset")? } else { -1 };
            if api == COMMIT {
                assert_eq!(&*r.string("metadata")?, "");
            }
            Ok((partition, offset))
        })
    })?;
    Ok(topics.into_iter().flatten().collect())
}

fn write(api: i16, partitions: &[(i32, i64, i16)], whole: i16, out: &mut Writer) {
    out.array("topics", if whole == 0 { &["t"][..] } else { &[] }, |out, topic| {
        out.string("topic", topic);
        out.array("partitions", partitions, |out, (partition, offset, error)| {
            out.i32(*partition);
            if api == FETCH {
                out.i64(*offset);
                out.nullable_string("metadata", Some(""));
            }
            out.i16(*error);
        });
    });
    if api == FETCH {
        out.i16(whole);
    }
}
