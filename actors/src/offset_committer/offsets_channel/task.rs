//! The channel's task: what was told, what is due, one request at a time.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::frame::Request;
use tokio::select;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::coordinator::Coordinator;
use super::jobs::{Commit, CommitJob, Failure, Pause, Queue};
use super::{ChannelSettings, Told, requests};

/// Connecting is given this long at least, however little time is left to those who wait for a partition.
const LEAST_TO_CONNECT: Duration = Duration::from_secs(1);

pub(super) struct Task {
    hears: UnboundedReceiver<Told>,
    settings: ChannelSettings,
    coordinator: Coordinator,
    reads: Queue<(), Option<i64>>,
    commits: Queue<Commit, ()>,
    /// Until when commits are tried again while partitions are given up.
    flush_deadlines: Vec<Instant>,
}

impl Task {
    pub(super) fn new(
        settings: ChannelSettings,
        hears: UnboundedReceiver<Told>,
        address: Arc<Mutex<Option<String>>>,
    ) -> Self {
        Self {
            hears,
            coordinator: Coordinator::new(settings.clone(), address),
            settings,
            reads: Queue::default(),
            commits: Queue::default(),
            flush_deadlines: Vec::new(),
        }
    }

    /// Until there is no handle any more.
    pub(super) async fn run(mut self) {
        while self.hear().await.is_some() {
            self.commit_due().await;
            self.read_due().await;
        }
    }

    /// Takes in all that was told, waiting for it as long as nothing is due; none when there is no handle any more.
    async fn hear(&mut self) -> Option<()> {
        let due = self.commits.next_due().into_iter().chain(self.reads.next_due()).min();
        let told = match due.map(|due| due.max(self.rests_until())) {
            None => Some(self.hears.recv().await?),
            Some(due) => match timeout_at(due, self.hears.recv()).await {
                Ok(told) => Some(told?),
                Err(_) => None,
            },
        };
        told.into_iter().for_each(|told| self.take(told));
        while let Ok(told) = self.hears.try_recv() {
            self.take(told);
        }
        Some(())
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Brokers(brokers) => self.coordinator.set_brokers(brokers),
            Told::Read(read) => self.reads.push(read),
            Told::Commit(commit) => self.commits.push(commit),
            Told::Flushing(until) => {
                self.flush_deadlines.push(until);
                self.commits.give_up_after(until);
            }
            Told::Flushed(until) => {
                if let Some(at) = self.flush_deadlines.iter().position(|it| *it == until) {
                    self.flush_deadlines.swap_remove(at);
                }
            }
        }
    }

    /// Nothing is asked before. A flush does not wait for it beyond the time to try again.
    fn rests_until(&self) -> Instant {
        let rests = self.coordinator.rests_until();
        self.flush_until().map_or(rests, |until| rests.min(until))
    }

    /// The nearest deadline of partitions that are being given up, if any are.
    fn flush_until(&self) -> Option<Instant> {
        self.flush_deadlines.iter().min().copied()
    }

    fn is_resting(&self) -> bool {
        self.rests_until() > Instant::now()
    }

    async fn commit_due(&mut self) {
        if self.is_resting() {
            return;
        }
        let due = fit_to_commit(self.commits.take_due());
        if due.is_empty() {
            return;
        }
        let opened = self.coordinator.open(self.time_to_connect(&due)).await;
        // the lease may have ended meanwhile
        let due = fit_to_commit(due);
        let group = Arc::clone(&self.settings.group);
        let answered = match (opened, due.is_empty()) {
            (Ok(()), true) => return,
            (Ok(()), false) => {
                due.iter().for_each(|job| job.detail.sending());
                self.ask_within_lease(&requests::commit(group, &due), &due).await
            }
            (Err(failure), _) => Err(failure),
        };
        let mut outcome = self.outcome(answered.map(requests::committed), "commit to");
        let retries = self.retries(self.flush_until());
        self.commits.settle(due, retries, &mut outcome);
    }

    async fn read_due(&mut self) {
        if self.is_resting() {
            return;
        }
        let due = self.reads.take_due();
        if due.is_empty() {
            return;
        }
        let answered =
            self.ask_unless_flushing(&requests::fetch(Arc::clone(&self.settings.group), &due)).await;
        let mut outcome = self.outcome(answered.map(requests::fetched), "read from");
        self.reads.settle(due, self.retries(None), &mut outcome);
    }

    /// A commit that would come after the lease is of no use.
    fn time_to_connect(&self, due: &[CommitJob]) -> Duration {
        let limit = shortest_lease(due).min(self.settings.timeout());
        match self.flush_until() {
            Some(until) => limit.min(until.saturating_duration_since(Instant::now()).max(LEAST_TO_CONNECT)),
            None => limit,
        }
    }

    /// The answer is waited for as long as the lease lives, which is extended meanwhile: what nobody waits for may be
    /// carried out all the same.
    async fn ask_within_lease<R: Request>(
        &mut self,
        request: &R,
        due: &[CommitJob],
    ) -> Result<R::Response, Failure> {
        let end = Instant::now() + self.settings.timeout();
        let why = {
            let mut call = pin!(self.coordinator.call(request));
            loop {
                let until = end.min(Instant::now() + shortest_lease(due));
                if let Ok(answer) = timeout_at(until, &mut call).await {
                    return answer;
                }
                if Instant::now() >= end {
                    break no_answer_in(self.settings.timeout());
                }
                if shortest_lease(due).is_zero() {
                    break "no answer before the lease ended (zookeeper.session.timeout.ms)".to_owned();
                }
            }
        };
        Err(self.coordinator.silent(why))
    }

    /// Connects and asks. Who waits for partitions that are given up does not wait for this answer: it can be asked for
    /// again.
    async fn ask_unless_flushing<R: Request>(&mut self, request: &R) -> Result<R::Response, Failure> {
        let (began, limit, mut told) = (Instant::now(), self.settings.timeout(), Vec::new());
        let mut deadlines = self.flush_deadlines.clone();
        let cut = {
            let (coordinator, hears) = (&mut self.coordinator, &mut self.hears);
            let mut asked = pin!(async {
                match coordinator.open(limit).await {
                    Ok(()) => timeout(limit, coordinator.call(request)).await.ok(),
                    Err(failure) => Some(Err(failure)),
                }
            });
            loop {
                let until = deadlines.iter().min().map(|until| (began + LEAST_TO_CONNECT).max(*until));
                let flush = async {
                    match until {
                        Some(until) => sleep_until(until).await,
                        None => pending().await,
                    }
                };
                select! {
                    answer = &mut asked => break answer.ok_or_else(|| no_answer_in(limit)),
                    Some(it) = hears.recv() => {
                        match &it {
                            Told::Flushing(until) => deadlines.push(*until),
                            Told::Flushed(until) => deadlines.retain(|it| it != until),
                            _ => {}
                        }
                        told.push(it);
                    }
                    () = flush => break Err("cut off, for partitions are being given up".to_owned()),
                }
            }
        };
        told.into_iter().for_each(|told| self.take(told));
        cut.unwrap_or_else(|why| Err(self.coordinator.silent(why)))
    }

    /// Says how a job came out, by partition.
    fn outcome<T>(
        &mut self,
        answered: Result<requests::Outcomes<T>, Failure>,
        what: &'static str,
    ) -> impl FnMut(&TopicPartition) -> Result<T, Failure> + use<T> {
        let place = format!("{what} Kafka, group {}, {}", self.settings.group, self.coordinator.describe());
        if answered.as_ref().is_ok_and(requests::Outcomes::coordinator_is_lost) {
            self.coordinator.leave();
        }
        if answered.as_ref().is_ok_and(requests::Outcomes::is_refused) {
            // whoever asked does so again at once, and there may be many
            self.coordinator.rest();
        }
        let mut answered = answered;
        move |partition| {
            let outcome = match &mut answered {
                Ok(outcomes) => outcomes.take(partition),
                Err(failure) => Err(failure.clone()),
            };
            outcome.map_err(|failure| failure.at(&place))
        }
    }

    fn retries(&self, until: Option<Instant>) -> Pause {
        Pause { most: self.settings.max_retries, backoff: self.settings.backoff, until }
    }
}

fn no_answer_in(limit: Duration) -> String {
    format!("no answer in {limit:?} (offsets.channel.socket.timeout.ms)")
}

/// Those whose claim may still be committed, and has time to be; the others are told that it may not.
fn fit_to_commit(jobs: Vec<CommitJob>) -> Vec<CommitJob> {
    let fit = |job: CommitJob| match job.detail.refused() {
        Some(error) => {
            job.answer(Err(error));
            None
        }
        None => Some(job),
    };
    jobs.into_iter().filter_map(fit).collect()
}

fn shortest_lease(jobs: &[CommitJob]) -> Duration {
    jobs.iter().map(|job| job.detail.claim.lease_left()).min().unwrap_or_default()
}
