//! The fetchers that run, by broker and index.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, ArbiterHandle, Context, Handler, Message};

use kafka_troupe_proto::config::ServerAddress;

use super::sharing::{FetcherId, Sharing};
use super::{BrokerAddress, BrokerStatus, FetchSettings, FetcherManager};
use crate::broker_fetcher::{BrokerFetcher, Budget, FetcherStats, Stop};
use crate::supervise::{ChildExited, ExitGuard, RestartBudget};

/// How long the partitions of a fetcher are left alone that has used up its restart budget.
const COOL_DOWN: Duration = Duration::from_secs(60);

/// All fetchers of one manager.
pub(super) struct Fetchers {
    settings: Arc<FetchSettings>,
    arbiter: ArbiterHandle,
    running: BTreeMap<FetcherId, Running>,
    /// What is kept of a fetcher over its lives.
    records: BTreeMap<FetcherId, Record>,
    /// What the fetchers of a broker share, by its id.
    budgets: BTreeMap<i32, Arc<Budget>>,
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
        let (running, records, budgets) = Default::default();
        Self { settings, arbiter, running, records, budgets, last_life: 0 }
    }

    /// How partitions are shared out.
    pub(super) fn sharing(&self) -> Sharing {
        Sharing(self.settings.fetchers)
    }

    /// Starts a fetcher, of the broker at `address`, unless it runs.
    pub(super) fn ensure(
        &mut self,
        fetcher: FetcherId,
        address: &BrokerAddress,
        manager: &Addr<FetcherManager>,
    ) {
        if !self.running.contains_key(&fetcher) {
            let running = self.start(fetcher, address, manager);
            self.running.insert(fetcher, running);
        }
    }

    /// Whether a fetcher runs.
    pub(super) fn runs(&self, fetcher: FetcherId) -> bool {
        self.running.contains_key(&fetcher)
    }

    fn start(&mut self, id: FetcherId, address: &BrokerAddress, manager: &Addr<FetcherManager>) -> Running {
        self.last_life += 1;
        let life = self.last_life;
        let guard = ExitGuard::new(self.sharing().name_of(id), life, manager.clone().recipient());
        let record = self.records.entry(id).or_default();
        record.address = ServerAddress::new(&address.host, address.port).to_string();
        let new_budget = || Arc::new(Budget::new(self.settings.fetchers));
        let budget = Arc::clone(self.budgets.entry(id.broker).or_insert_with(new_budget));
        let (broker, settings, stats) =
            (address.clone(), Arc::clone(&self.settings), Arc::clone(&record.stats));
        let manager = manager.clone().into();
        let fetcher = BrokerFetcher::new(broker, id.index, settings, manager, guard, stats, budget);
        let addr = BrokerFetcher::start_in_arbiter(&self.arbiter, |_| fetcher);
        Running { address: address.clone(), life, addr }
    }

    /// Sends to a fetcher, if it runs.
    pub(super) fn send<M>(&self, fetcher: FetcherId, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        BrokerFetcher: Handler<M>,
        Context<BrokerFetcher>: ToEnvelope<BrokerFetcher, M>,
    {
        if let Some(running) = self.running.get(&fetcher) {
            running.addr.do_send(message);
        }
    }

    /// Those that run.
    #[cfg(feature = "chaos")]
    pub(super) fn all(&self) -> Vec<FetcherId> {
        self.running.keys().copied().collect()
    }

    /// Ends those that have nothing to fetch.
    pub(super) fn stop_idle(&mut self, is_needed: impl Fn(FetcherId) -> bool) {
        self.running.retain(|fetcher, _| is_needed(*fetcher));
    }

    /// Ends a broker's fetchers that dial another address; says whether there were any.
    pub(super) fn drop_moved(&mut self, now_at: &BrokerAddress) -> bool {
        let before = self.running.len();
        self.running.retain(|fetcher, running| fetcher.broker != now_at.id || running.address == *now_at);
        self.running.len() < before
    }

    /// A life has ended: whose, and when it may be followed by another. None: it was an earlier one.
    pub(super) fn exited(&mut self, exited: &ChildExited) -> Option<(FetcherId, Duration)> {
        let (&fetcher, _) = self.running.iter().find(|(_, running)| running.life == exited.life)?;
        self.running.remove(&fetcher);
        let budget = &mut self.records.entry(fetcher).or_default().budget;
        Some((fetcher, budget.next_delay().unwrap_or(COOL_DOWN)))
    }

    pub(super) fn describe(&self) -> Vec<BrokerStatus> {
        let status = |(&fetcher, record): (&FetcherId, &Record)| BrokerStatus {
            broker: fetcher.broker,
            fetcher: fetcher.index,
            name: self.sharing().name_of(fetcher),
            address: record.address.clone(),
            connected: record.stats.connected(),
            partitions: record.stats.partitions(),
            requests: record.stats.requests(),
            bytes: record.stats.bytes(),
            errors: record.stats.errors(),
            waited: record.stats.waited(),
            restarts: record.budget.restarts,
            last_error: record.stats.last_error(),
        };
        self.records.iter().map(status).collect()
    }
}
