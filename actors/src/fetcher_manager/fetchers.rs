//! The fetchers that run, by broker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, ArbiterHandle, Context, Handler, Message};

use kafka_troupe_proto::config::ServerAddress;

use super::{BrokerAddress, BrokerStatus, FetchSettings, FetcherManager};
use crate::broker_fetcher::{BrokerFetcher, FetcherStats, Stop};
use crate::supervise::{ChildExited, ExitGuard, RestartBudget};

/// How long a broker is left alone whose fetcher has used up its restart budget.
const COOL_DOWN: Duration = Duration::from_secs(60);

/// All fetchers of one manager.
pub(super) struct Fetchers {
    settings: Arc<FetchSettings>,
    arbiter: ArbiterHandle,
    /// By broker id.
    running: BTreeMap<i32, Running>,
    /// What is kept of a broker over its fetcher's lives.
    records: BTreeMap<i32, Record>,
    last_life: u64,
}

/// One life of a fetcher; it ends with this.
struct Running {
    address: BrokerAddress,
    life: u64,
    addr: Addr<BrokerFetcher>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.addr.do_send(Stop);
    }
}

#[derive(Default)]
struct Record {
    stats: Arc<FetcherStats>,
    budget: RestartBudget,
    address: String,
}

impl Fetchers {
    pub(super) fn new(settings: Arc<FetchSettings>, arbiter: ArbiterHandle) -> Self {
        Self { settings, arbiter, running: BTreeMap::new(), records: BTreeMap::new(), last_life: 0 }
    }

    /// Starts a broker's fetcher unless it runs.
    pub(super) fn ensure(&mut self, address: &BrokerAddress, manager: &Addr<FetcherManager>) {
        if !self.running.contains_key(&address.id) {
            let running = self.start(address, manager);
            self.running.insert(address.id, running);
        }
    }

    /// Whether a broker's fetcher runs.
    pub(super) fn runs(&self, broker: i32) -> bool {
        self.running.contains_key(&broker)
    }

    fn start(&mut self, address: &BrokerAddress, manager: &Addr<FetcherManager>) -> Running {
        self.last_life += 1;
        let life = self.last_life;
        let record = self.records.entry(address.id).or_default();
        record.address = ServerAddress::new(&address.host, address.port).to_string();
        let guard =
            ExitGuard::new(format!("broker-fetcher-{}", address.id), life, manager.clone().recipient());
        let (broker, settings, stats) =
            (address.clone(), Arc::clone(&self.settings), Arc::clone(&record.stats));
        let fetcher = BrokerFetcher::new(broker, settings, manager.clone().into(), guard, stats);
        let addr = BrokerFetcher::start_in_arbiter(&self.arbiter, |_| fetcher);
        Running { address: address.clone(), life, addr }
    }

    /// Sends to a broker's fetcher, if it runs.
    pub(super) fn send<M>(&self, broker: i32, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        BrokerFetcher: Handler<M>,
        Context<BrokerFetcher>: ToEnvelope<BrokerFetcher, M>,
    {
        if let Some(running) = self.running.get(&broker) {
            running.addr.do_send(message);
        }
    }

    /// Brokers whose fetcher runs.
    #[cfg(feature = "chaos")]
    pub(super) fn brokers(&self) -> Vec<i32> {
        self.running.keys().copied().collect()
    }

    /// Ends those that have nothing to fetch.
    pub(super) fn stop_idle(&mut self, is_needed: impl Fn(i32) -> bool) {
        self.running.retain(|broker, _| is_needed(*broker));
    }

    /// Ends a broker's fetcher that dials another address; says whether there was one.
    pub(super) fn drop_moved(&mut self, now_at: &BrokerAddress) -> bool {
        let moved = self.running.get(&now_at.id).is_some_and(|running| running.address != *now_at);
        moved && self.running.remove(&now_at.id).is_some()
    }

    /// A life has ended: whose, and when it may be followed by another. None: it was an earlier one.
    pub(super) fn exited(&mut self, exited: &ChildExited) -> Option<(i32, Duration)> {
        let (&broker, _) = self.running.iter().find(|(_, running)| running.life == exited.life)?;
        self.running.remove(&broker);
        let budget = &mut self.records.entry(broker).or_default().budget;
        Some((broker, budget.next_delay().unwrap_or(COOL_DOWN)))
    }

    pub(super) fn describe(&self) -> Vec<BrokerStatus> {
        let status = |(&broker, record): (&i32, &Record)| BrokerStatus {
            broker,
            address: record.address.clone(),
            connected: record.stats.connected(),
            partitions: record.stats.partitions(),
            requests: record.stats.requests(),
            bytes: record.stats.bytes(),
            restarts: record.budget.restarts,
            last_error: record.stats.last_error(),
        };
        self.records.iter().map(status).collect()
    }
}
