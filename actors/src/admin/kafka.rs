//! Who is asked, and how often.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::offsets_topic::OFFSETS_TOPIC;
use tokio::time::{Instant, sleep, timeout_at};

use super::AdminError;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError, ConnectionProblem};
use crate::fetcher_manager::{
    BrokerAddress, KnownBrokers, PATIENCE, ask_metadata, find_coordinator, in_turn,
};
use crate::topic_metadata::{KnownTopic, Picture};

/// Between two tries: as Kafka's `retry.backoff.ms`.
pub(super) const BACKOFF: Duration = Duration::from_millis(100);

/// Brokers that are asked, and told, outside any group. Each question has connections of its own; what passes by
/// itself (a leader or coordinator that moves, is loading or restarts) is tried again until the [timeout](
/// Self::with_timeout). It makes no topics; but to [commit](Self::commit) has brokers make that of offsets.
#[derive(Clone, Debug)]
pub struct KafkaAdmin {
    /// Who was named first.
    seeds: Vec<BrokerAddress>,
    /// As they were told last.
    known: Arc<KnownBrokers>,
    pub(super) options: ConnectOptions,
    pub(super) limit: Duration,
    /// Nothing is tried again.
    pub(super) once: bool,
    pub(super) read_committed: bool,
    /// Groups are known to have something in Kafka.
    is_used: bool,
}

/// So long an answer without any topic is doubted.
const SETTLED: Duration = Duration::from_secs(3);

/// Why a try came to nothing.
pub(super) enum Trouble {
    /// It may go better the next time.
    Passing(String),
    /// It will not.
    Final(String),
    /// The broker does not know such requests.
    Unsupported(String),
    /// The group has members.
    Active,
    /// There is no such group.
    NoSuchGroup,
}

impl From<ConnectionError> for Trouble {
    fn from(error: ConnectionError) -> Self {
        let why = error.to_string();
        match error.problem {
            ConnectionProblem::NoCommonVersion { .. } => Self::Unsupported(why),
            ConnectionProblem::Refused { error, .. } => Self::refused(error, why),
            _ => Self::Passing(why),
        }
    }
}

impl From<ErrorCode> for Trouble {
    fn from(error: ErrorCode) -> Self {
        Self::refused(error, error)
    }
}

impl Trouble {
    pub(super) fn refused(error: ErrorCode, why: impl Display) -> Self {
        match (error, error.disposition()) {
            (ErrorCode::NonEmptyGroup | ErrorCode::GroupSubscribedToTopic, _) => Self::Active,
            (ErrorCode::GroupIdNotFound, _) => Self::NoSuchGroup,
            (_, Disposition::Fatal | Disposition::ResetOffset | Disposition::Rebalance) => {
                Self::Final(why.to_string())
            }
            _ => Self::Passing(why.to_string()),
        }
    }
}

impl KafkaAdmin {
    /// Asks `servers` (`bootstrap.servers`) in turn for the brokers, once each.
    ///
    /// # Errors
    /// [`AdminError::Unreachable`]: none answered, with what each said.
    pub async fn connect(servers: Vec<ServerAddress>, options: ConnectOptions) -> Result<Self, AdminError> {
        // numbered as in Kafka's own client: no broker has such a number
        let seeds = (1..).zip(servers);
        let seeds = seeds.map(|(number, it)| BrokerAddress { id: -number, host: it.host, port: it.port });
        let admin = Self::from_brokers(seeds.collect(), options);
        let (_, response) = ask_metadata(admin.brokers(), admin.options.clone(), None)
            .await
            .map_err(|why| AdminError::Unreachable { why })?;
        if let Ok(picture) = Picture::next(None, response) {
            admin.known.set(&picture.brokers);
        }
        Ok(admin)
    }

    /// Those that stand in ZooKeeper, say; nobody is asked yet.
    pub fn from_brokers(brokers: Vec<BrokerAddress>, options: ConnectOptions) -> Self {
        let limit = options.socket_timeout;
        let known = Arc::default();
        Self { seeds: brokers, known, options, limit, once: false, read_committed: false, is_used: false }
    }

    /// How long each question may take, tries again included. Default: `socket.timeout.ms` of the options (30 s).
    pub fn with_timeout(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Tries nothing again: for who asks again soon anyway.
    pub(crate) fn asking_once(self) -> Self {
        Self { once: true, ..self }
    }

    /// For who knows that groups have something in Kafka: that there is a topic for it is not looked at each time.
    pub(crate) fn of_groups_in_kafka(self) -> Self {
        Self { is_used: true, ..self }
    }

    /// Takes for the end of a log where the first transaction begins that is still open (`isolation.level`). Default:
    /// where the next record will be written.
    pub fn with_read_committed(self, read_committed: bool) -> Self {
        Self { read_committed, ..self }
    }

    /// Whom to ask: the brokers as they were told last, then those that were named first.
    pub fn brokers(&self) -> Vec<BrokerAddress> {
        let mut all = self.known.get();
        let is_new = |seed: &&BrokerAddress| {
            !all.iter().any(|it| it.host == seed.host && it.port == seed.port || it.id == seed.id)
        };
        let seeds: Vec<_> = self.seeds.iter().filter(is_new).cloned().collect();
        all.extend(seeds);
        all
    }

    /// All topics that exist, Kafka's own among them.
    ///
    /// # Errors
    /// [`AdminError::TimedOut`]: no broker answered, or none knows the cluster yet.
    pub async fn topics(&self) -> Result<BTreeMap<Arc<str>, KnownTopic>, AdminError> {
        let asked = async || self.picture().await.map(|picture| picture.topics);
        self.persist("topics", asked).await
    }

    /// Topics and brokers; the latter are asked from now on.
    pub(super) async fn picture(&self) -> Result<Picture, Trouble> {
        let asked = ask_metadata(self.brokers(), self.options.clone(), None).await;
        let (_, response) = asked.map_err(Trouble::Passing)?;
        let picture = Picture::next(None, response).map_err(Trouble::Passing)?;
        self.known.set(&picture.brokers);
        Ok(picture)
    }

    pub(super) async fn dial(&self, broker: &BrokerAddress) -> Result<BrokerConnection, ConnectionError> {
        BrokerConnection::connect(&broker.host, broker.port, self.options.clone()).await
    }

    /// A connection to the coordinator of a group that may be there; none where no group can have anything in Kafka. For
    /// whoever asks for a coordinator has brokers make the topic of offsets.
    pub(super) async fn coordinator_if_any(&self, group: &str) -> Result<Option<BrokerConnection>, Trouble> {
        match self.is_used || self.may_have(group).await? {
            true => self.coordinator(group).await.map(Some),
            false => Ok(None),
        }
    }

    /// A broker that has just started tells in good faith of no topics at all: that counts when it stays so for a while.
    async fn settled_picture(&self) -> Result<Picture, Trouble> {
        let until = Instant::now() + SETTLED.min(self.limit / 3);
        loop {
            let picture = self.picture().await?;
            if !picture.topics.is_empty() || Instant::now() >= until {
                return Ok(picture);
            }
            sleep(BACKOFF).await;
        }
    }

    async fn may_have(&self, group: &str) -> Result<bool, Trouble> {
        let picture = self.settled_picture().await?;
        if picture.topics.contains_key(OFFSETS_TOPIC) {
            return Ok(true);
        }
        // who may not see that topic may be shown the group all the same; to ask for it by name has some brokers make it
        for broker in &picture.brokers {
            match self.groups_at(broker).await {
                Ok(groups) if groups.iter().any(|it| it.name == group) => return Ok(true),
                // brokers of 0.8 hide nothing
                Ok(_) | Err(Trouble::Unsupported(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(false)
    }

    /// A connection to the group's coordinator: brokers are asked in turn who it is.
    pub(super) async fn coordinator(&self, group: &str) -> Result<BrokerConnection, Trouble> {
        let group = Arc::from(group);
        // all of the time is not one silent broker's
        let patience = PATIENCE.min(self.limit / 3);
        let brokers = self.brokers();
        let asked = in_turn(&brokers, patience, async |broker| {
            match find_coordinator(broker, &group, self.options.clone()).await {
                Err(error) if !matches!(error.problem, ConnectionProblem::Refused { .. }) => Err(error),
                answer => Ok(answer),
            }
        });
        let unanswered = |errors: Vec<ConnectionError>| {
            let refusals: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Trouble::Passing(format!("no coordinator: {}", refusals.join("; ")))
        };
        let (asked, found) = asked.await.map_err(unanswered)??;
        match asked.address() == ServerAddress::new(&found.host, found.port).to_string() {
            true => Ok(asked),
            false => Ok(self.dial(&found).await?),
        }
    }

    /// Tries until it goes well, cannot go well, or the time is up.
    pub(super) async fn persist<T>(
        &self,
        what: impl Display,
        ask: impl AsyncFn() -> Result<T, Trouble>,
    ) -> Result<T, AdminError> {
        self.persist_for_group(what, "", ask).await
    }

    /// As [`Self::persist`]; `group` is whom it is about.
    pub(super) async fn persist_for_group<T>(
        &self,
        what: impl Display,
        group: &str,
        ask: impl AsyncFn() -> Result<T, Trouble>,
    ) -> Result<T, AdminError> {
        let (limit, group) = (self.limit, group.to_owned());
        let deadline = Instant::now() + limit;
        let mut last = "the brokers are silent".to_owned();
        loop {
            let trouble = match timeout_at(deadline, ask()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(trouble)) => trouble,
                Err(_) => return Err(AdminError::TimedOut { what: what.to_string(), limit, why: last }),
            };
            let what = what.to_string();
            match trouble {
                Trouble::Passing(why) if self.once => return Err(AdminError::Refused { what, why }),
                Trouble::Passing(why) => last = why,
                Trouble::Final(why) => return Err(AdminError::Refused { what, why }),
                Trouble::Unsupported(why) => return Err(AdminError::Unsupported { what, why }),
                Trouble::Active => return Err(AdminError::Active { group, members: Vec::new() }),
                Trouble::NoSuchGroup => return Err(AdminError::NoSuchGroup { group }),
            }
            if Instant::now() + BACKOFF >= deadline {
                return Err(AdminError::TimedOut { what, limit, why: last });
            }
            sleep(BACKOFF).await;
        }
    }
}
