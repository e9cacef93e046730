//! Makes actors panic, to try their supervision, and whole members vanish. Only with the feature `chaos`, which is for
//! tests.

use actix::prelude::*;

use crate::broker_fetcher::BrokerFetcher;
use crate::consumer_system::ConsumerSystem;
use crate::coordinator::RebalanceCoordinator;
use crate::dead_letters::DeadLetterWriter;
use crate::fetcher_manager::FetcherManager;
use crate::group_view::GroupReader;
use crate::offset_committer::OffsetCommitter;
use crate::stream_queue::StreamQueue;
use crate::topic_metadata::TopicMetadata;
use crate::zk_session::ZkSession;

/// Panic, now.
#[derive(Message, Clone, Copy, Debug)]
#[rtype(result = "()")]
pub struct Crash;

/// Have a child panic: by the name that the metrics give it, such as `offset-committer`.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
pub struct CrashChild(pub String);

/// End, now, without a word to anybody: told to a `ConsumerSystem`, all of its actors do, as in a process that is
/// killed.
#[derive(Message, Clone, Copy, Debug)]
#[rtype(result = "()")]
pub struct Vanish;

macro_rules! crashes {
    ($($actor:ty),+) => { $(
        impl Handler<Crash> for $actor {
            type Result = ();

            fn handle(&mut self, _: Crash, _: &mut Self::Context) {
                panic!("{} was told to panic", stringify!($actor));
            }
        }

        impl Handler<Vanish> for $actor {
            type Result = ();

            fn handle(&mut self, _: Vanish, ctx: &mut Self::Context) {
                ctx.terminate();
            }
        }
    )+ };
}

crashes!(
    ZkSession,
    TopicMetadata,
    RebalanceCoordinator,
    FetcherManager,
    BrokerFetcher,
    OffsetCommitter,
    DeadLetterWriter,
    GroupReader,
    StreamQueue
);

impl Handler<CrashChild> for ConsumerSystem {
    type Result = ();

    fn handle(&mut self, CrashChild(child): CrashChild, _: &mut Self::Context) {
        self.crash(&child);
    }
}

impl Handler<Vanish> for ConsumerSystem {
    type Result = ();

    fn handle(&mut self, _: Vanish, ctx: &mut Self::Context) {
        self.vanish();
        ctx.terminate();
    }
}

/// Have all fetchers panic.
#[derive(Message, Clone, Copy, Debug)]
#[rtype(result = "()")]
pub struct CrashFetchers;

impl Handler<CrashFetchers> for FetcherManager {
    type Result = ();

    fn handle(&mut self, _: CrashFetchers, _: &mut Self::Context) {
        self.crash_fetchers();
    }
}
