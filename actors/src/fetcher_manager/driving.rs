//! Does what is due: looks up leaders, has positions made, hands partitions to fetchers.

use std::time::Duration;

use super::*;
use crate::broker_fetcher::{AddPartitions, NameNoReplica};
use crate::fetcher_manager::leaders::{Leaders, find_leaders};
use crate::fetcher_manager::placements::{Found, GivenBack, InDoubt, Led};
use crate::fetcher_manager::positions::{NewPosition, Outcome, Resolution, resolve};

/// So long the leaders that were found last count for partitions that start. If one has moved since, its first fetch
/// fails, and it is looked up.
const LEADERS_COUNT: Duration = Duration::from_secs(10);

impl FetcherManager {
    /// Called after every message: does what can be done now, and sets the alarm for what cannot.
    pub(super) fn drive(&mut self, ctx: &mut Context<Self>) {
        let back =
            self.placements.back_to_leaders(|broker| self.brokers.contains_key(&broker), Instant::now());
        self.remove_from_fetchers(back);
        let (placements, sharing) = (&self.placements, self.fetchers.sharing());
        self.fetchers.stop_idle(|id| {
            placements.is_fetching_at(id.broker, |key| sharing.fetcher_of(id.broker, key) == id)
        });
        self.place_known(ctx);
        self.look_up_leaders(ctx);
        self.set_alarm(ctx);
    }

    /// Spares what has just started a lookup of its own.
    fn place_known(&mut self, ctx: &mut Context<Self>) {
        if let Some((_, leaders)) = self.known.as_ref().filter(|(at, _)| at.elapsed() < LEADERS_COUNT) {
            let has_address = |led: &Led| self.brokers.contains_key(&led.broker);
            let leader_of = |key: &TopicPartition| leaders.of(key).ok().filter(has_address);
            let found = self.placements.leaders_known(leader_of, Instant::now());
            self.place(found, ctx);
        }
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        // without brokers there is nothing to wake up for: SetBrokers drives
        if self.looking_up || self.brokers.is_empty() {
            return;
        }
        self.alarm = self.placements.next_due().map(|due| {
            let delay = due.saturating_duration_since(Instant::now());
            ctx.run_later(delay, |act, ctx| {
                act.alarm = None;
                act.drive(ctx);
            })
        });
    }

    fn look_up_leaders(&mut self, ctx: &mut Context<Self>) {
        let topics = self.placements.due_topics(Instant::now());
        if self.looking_up || self.brokers.is_empty() || topics.is_empty() {
            return;
        }
        self.looking_up = true;
        let lookup = find_leaders(self.in_turn(), self.settings.connect.clone(), topics.clone());
        ctx.spawn(lookup.into_actor(self).map(move |found, act, ctx| {
            act.looking_up = false;
            match found {
                Ok((answered, leaders)) => {
                    act.leaders_found(answered, &leaders, &topics, ctx);
                    act.known = Some((Instant::now(), leaders));
                }
                Err(why) => act.lookup_failed(&why),
            }
            act.drive(ctx);
        }));
    }

    /// The brokers, from the one that answered last.
    fn in_turn(&self) -> Vec<BrokerAddress> {
        let later = self.brokers.range(self.ask_first..);
        later.chain(self.brokers.range(..self.ask_first)).map(|(_, broker)| broker.clone()).collect()
    }

    fn leaders_found(
        &mut self,
        answered: i32,
        leaders: &Leaders,
        topics: &std::collections::BTreeSet<Arc<str>>,
        ctx: &mut Context<Self>,
    ) {
        self.ask_first = answered;
        self.lookup_error = None;
        for broker in leaders.brokers.clone() {
            self.learn_address(broker, "metadata");
        }
        let leader_of = |key: &TopicPartition| {
            let led = leaders.of(key)?;
            let known = self.brokers.contains_key(&led.broker);
            if known { Ok(led) } else { Err(format!("its leader {} has no known address", led.broker)) }
        };
        let found = self.placements.leaders_found(topics, leader_of, Instant::now(), self.retry_at());
        if found.is_behind {
            // it may be another that knows better
            self.ask_first = answered.saturating_add(1);
        }
        self.place(found, ctx);
    }

    fn lookup_failed(&mut self, why: &str) {
        if self.lookup_error.as_deref() != Some(why) {
            tracing::warn!(why, "no broker answered the lookup of leaders");
            self.lookup_error = Some(why.to_owned());
        }
        // the next round begins with another broker
        self.ask_first = self.ask_first.saturating_add(1);
        self.placements.lookup_failed(Instant::now(), self.retry_at(), why);
    }

    fn place(&mut self, found: Found, ctx: &mut Context<Self>) {
        if !found.leaderless.is_empty() || !found.newly_behind.is_empty() {
            // deleted, perhaps, or made again
            self.settings.metadata.do_send(PollNow);
        }
        for partition in found.newly_behind {
            tracing::info!(%partition, "metadata tells of an earlier leader than was known; other brokers are asked");
        }
        for (partition, why) in found.leaderless {
            tracing::warn!(%partition, why, "partition waits for a leader");
        }
        for (broker, partitions) in found.fetch {
            self.hand_over(broker, partitions, false, ctx);
        }
        for (broker, in_doubt) in found.resolve {
            self.make_positions(broker, in_doubt, ctx);
        }
    }

    /// Shares partitions out among a broker's fetchers. `follows`: the broker does not lead them.
    pub(super) fn hand_over(
        &mut self,
        broker: i32,
        partitions: Vec<Assigned>,
        follows: bool,
        ctx: &mut Context<Self>,
    ) {
        let (sharing, mut by_fetcher) = (self.fetchers.sharing(), BTreeMap::<_, Vec<_>>::new());
        for assigned in partitions {
            let fetcher = sharing.fetcher_of(broker, &assigned.partition.topic_partition);
            by_fetcher.entry(fetcher).or_default().push(assigned);
        }
        for (fetcher, partitions) in by_fetcher {
            self.give(fetcher, partitions, follows, ctx);
        }
    }

    /// Gives partitions to a fetcher, which is created if need be.
    fn give(
        &mut self,
        fetcher: FetcherId,
        partitions: Vec<Assigned>,
        follows: bool,
        ctx: &mut Context<Self>,
    ) {
        if let Some(address) = self.brokers.get(&fetcher.broker) {
            self.fetchers.ensure(fetcher, address, &ctx.address());
        } else if !self.fetchers.runs(fetcher) {
            self.fetcher_gone(fetcher, "its broker is not registered (any more)", self.retry_at());
            return;
        }
        let led_until = |assigned: &Assigned| self.placements.led_until(&assigned.partition.topic_partition);
        let led_until = partitions.iter().filter_map(led_until).max();
        if let Some(until) = led_until.filter(|until| !follows && *until > Instant::now()) {
            self.fetchers.send(fetcher, NameNoReplica { until });
        }
        self.fetchers.send(fetcher, AddPartitions { partitions, follows });
    }

    /// What a fetcher had is looked up again at `retry_at`.
    pub(super) fn fetcher_gone(&mut self, gone: FetcherId, why: &str, retry_at: Instant) {
        let sharing = self.fetchers.sharing();
        let is_its = |key: &TopicPartition| sharing.fetcher_of(gone.broker, key) == gone;
        self.placements.fetcher_gone(gone.broker, is_its, why, retry_at);
    }

    fn make_positions(&mut self, broker: i32, in_doubt: Vec<InDoubt>, ctx: &mut Context<Self>) {
        // it has an address: its partitions would have waited otherwise
        let Some(address) = self.brokers.get(&broker).cloned() else { return };
        let made = resolve(address, Arc::clone(&self.settings), self.store.clone(), in_doubt);
        ctx.spawn(made.into_actor(self).map(move |resolutions, act, ctx| {
            for resolution in resolutions {
                act.resolved(broker, resolution, ctx);
            }
            act.drive(ctx);
        }));
    }

    fn resolved(
        &mut self,
        broker: i32,
        Resolution { partition, outcome }: Resolution,
        ctx: &mut Context<Self>,
    ) {
        match outcome {
            Ok(outcome) => {
                if let Some(assigned) = self.placements.resolved(broker, &partition, Instant::now()) {
                    if let Outcome::Made(position) = &outcome {
                        log(&partition, position);
                    }
                    self.hand_over(broker, vec![assigned], false, ctx);
                }
            }
            Err((disposition, why)) => {
                let (at, retry_at) = (Place::Resolving { broker }, self.retry_at());
                self.partition_failed(&at, &partition, disposition, &why, retry_at);
            }
        }
    }

    /// See [`Placements::failed`].
    pub(super) fn partition_failed(
        &mut self,
        at: &Place,
        partition: &Arc<OwnedPartition>,
        disposition: Disposition,
        why: &str,
        retry_at: Instant,
    ) -> GivenBack {
        let given_back = self.placements.failed(at, partition, disposition, why, retry_at);
        let key = &partition.topic_partition;
        match (given_back, disposition) {
            (GivenBack::Stale | GivenBack::Again, _) => {}
            (GivenBack::News, Disposition::Fatal) => {
                tracing::error!(partition = %key, why, "partition failed, and is not fetched until it is started again");
            }
            (GivenBack::News, _) if retry_at > self.retry_at() => {
                tracing::error!(partition = %key, why, "partition cannot be fetched now");
            }
            (GivenBack::News, _) => tracing::warn!(partition = %key, ?disposition, why, "partition failed"),
        }
        given_back
    }

    /// Takes in the brokers that are registered. One that is registered as before keeps the address that metadata
    /// told, which may be another listener's.
    pub(super) fn registered(&mut self, brokers: Vec<BrokerAddress>) {
        let before = std::mem::take(&mut self.registered);
        self.registered = brokers.into_iter().map(|broker| (broker.id, broker)).collect();
        if self.registered != before {
            self.known = None;
        }
        self.brokers.retain(|id, _| self.registered.contains_key(id));
        for (id, broker) in self.registered.clone() {
            if before.get(&id) != Some(&broker) || !self.brokers.contains_key(&id) {
                self.learn_address(broker, "registered");
            }
        }
    }

    /// Takes a broker in; its fetchers are replaced if it has moved.
    fn learn_address(&mut self, broker: BrokerAddress, why: &'static str) {
        if self.fetchers.drop_moved(&broker) {
            tracing::info!(broker = broker.id, host = broker.host, port = broker.port, why, "broker moved");
            self.placements.fetcher_gone(broker.id, |_| true, "its broker moved", Instant::now());
        }
        self.brokers.insert(broker.id, broker);
    }
}

fn log(partition: &OwnedPartition, position: &NewPosition) {
    let NewPosition { old, offset: new, why, skipped, lost, .. } = position;
    let tp = &partition.topic_partition;
    match lost {
        Some(lost) => tracing::warn!(partition = %tp, old, new, lost, why, "position made"),
        // there was one, and the broker has no such records (any more)
        None if *old >= 0 => tracing::warn!(partition = %tp, old, new, skipped, why, "position made"),
        None => tracing::info!(partition = %tp, new, skipped, why, "position made"),
    }
}
