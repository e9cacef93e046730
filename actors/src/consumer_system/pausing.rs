//! Partitions and topics that the application does not want to be handed over for now.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;

use super::{ConsumerHandle, ConsumerSystem};
use crate::registry::OwnedPartition;
use crate::stream_queue::HaltsChanged;

/// Hand over nothing more of these: see [`ConsumerHandle::pause`].
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<(), PauseError>")]
pub struct Pause(pub Vec<TopicPartition>);

/// Go on with these: see [`ConsumerHandle::resume`].
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<(), PauseError>")]
pub struct Resume(pub Vec<TopicPartition>);

/// Hand over nothing more of a topic: see [`ConsumerHandle::pause_topic`].
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<(), PauseError>")]
pub struct PauseTopic(pub String);

/// Go on with a topic: see [`ConsumerHandle::resume_topic`].
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<(), PauseError>")]
pub struct ResumeTopic(pub String);

/// Why not all that was to be paused or resumed was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PauseError {
    /// The others are paused, or resumed.
    #[error("this member does not own {}; what it owns is done", list(.0))]
    NotOwned(Vec<TopicPartition>),
    /// It owns nothing any more.
    #[error("the consumer system has shut down")]
    NotRunning,
}

fn list(partitions: &[TopicPartition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl ConsumerHandle {
    /// Hands over nothing more of these partitions: what was fetched of them is dropped, and they are not fetched. They
    /// stay this member's, and the others of their streams go on. The record in hand is not waited for: it is
    /// acknowledged when it is handled, also of a [`KafkaStream`](crate::KafkaStream), and is the last.
    ///
    /// It lasts until [`resume`](Self::resume), and as long as this member owns the partition: whoever owns it next,
    /// this one too, begins to handle it. A [`seek`](Self::seek) changes the position of what is paused.
    ///
    /// # Errors
    /// [`PauseError::NotOwned`] names those that this member does not own; the others are paused all the same.
    pub async fn pause(
        &self,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<(), PauseError> {
        self.system.send(Pause(partitions.into_iter().collect())).await.unwrap_or(Err(PauseError::NotRunning))
    }

    /// Goes on with these partitions after the last record that is acknowledged, if they are
    /// [paused](Self::pause), were stopped by their failure policy, or have a record that cannot be read: that record is
    /// tried again. Those of a [topic that is paused](Self::pause_topic) wait for that as well.
    ///
    /// # Errors
    /// [`PauseError::NotOwned`] names those that this member does not own; the others are resumed all the same.
    pub async fn resume(
        &self,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<(), PauseError> {
        self.system
            .send(Resume(partitions.into_iter().collect()))
            .await
            .unwrap_or(Err(PauseError::NotRunning))
    }

    /// Hands over nothing more of this topic, as [`pause`](Self::pause) does for partitions, also of partitions that this
    /// member claims later, until [`resume_topic`](Self::resume_topic) or the end of the system. Other members are not
    /// concerned; members that were [added](Self::subscribe) to this one are.
    ///
    /// # Errors
    /// [`PauseError::NotRunning`].
    pub async fn pause_topic(&self, topic: impl Into<String>) -> Result<(), PauseError> {
        self.system.send(PauseTopic(topic.into())).await.unwrap_or(Err(PauseError::NotRunning))
    }

    /// Goes on with this topic, as [`resume`](Self::resume) does for partitions. A partition that is paused by itself
    /// stays so.
    ///
    /// # Errors
    /// [`PauseError::NotRunning`].
    pub async fn resume_topic(&self, topic: impl Into<String>) -> Result<(), PauseError> {
        self.system.send(ResumeTopic(topic.into())).await.unwrap_or(Err(PauseError::NotRunning))
    }
}

impl ConsumerSystem {
    /// Has the streams look at these again.
    pub(super) fn tell_halts(&self, claims: Vec<Arc<OwnedPartition>>) {
        let mut by_stream: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for claim in claims {
            let topic = Arc::clone(&claim.topic_partition.topic);
            by_stream.entry((topic, claim.thread.index())).or_default().push(claim);
        }
        for ((topic, index), claims) in by_stream {
            if let Some(stream) = self.parts.streams.of(&topic, index) {
                stream.queue.do_send(HaltsChanged(claims));
            }
        }
    }

    /// Does it to those that are this member's own; gives the others.
    fn change(
        &self,
        partitions: Vec<TopicPartition>,
        change: impl Fn(&TopicPartition) -> Option<Arc<OwnedPartition>>,
    ) -> Vec<TopicPartition> {
        let (mut claims, mut others) = (Vec::new(), Vec::new());
        for partition in partitions {
            match change(&partition) {
                Some(claim) => claims.push(claim),
                None => others.push(partition),
            }
        }
        self.tell_halts(claims);
        others
    }

    /// What is not this member's own may be an added one's.
    fn change_others<M>(
        &mut self,
        mut others: Vec<TopicPartition>,
        message: impl Fn(Vec<TopicPartition>) -> M + 'static,
    ) -> Changing
    where
        Self: Handler<M>,
        M: Message<Result = Result<(), PauseError>> + Send + 'static,
    {
        self.forget_ended();
        let added = self.added.clone();
        Box::pin(async move {
            for member in added {
                if others.is_empty() {
                    break;
                }
                match member.address().send(message(others.clone())).await {
                    Ok(Ok(())) => others.clear(),
                    Ok(Err(PauseError::NotOwned(still))) => others = still,
                    Ok(Err(PauseError::NotRunning)) | Err(_) => {}
                }
            }
            if others.is_empty() { Ok(()) } else { Err(PauseError::NotOwned(others)) }
        })
    }

    /// One that ends meanwhile has nothing to pause.
    fn tell_added<M>(&mut self, message: &M) -> Changing
    where
        Self: Handler<M>,
        M: Message<Result = Result<(), PauseError>> + Clone + Send + 'static,
    {
        self.forget_ended();
        let telling: Vec<_> = self.added.iter().map(|it| it.address().send(message.clone())).collect();
        Box::pin(async move {
            futures_util::future::join_all(telling).await;
            Ok(())
        })
    }
}

type Changing = ResponseFuture<Result<(), PauseError>>;

impl Handler<Pause> for ConsumerSystem {
    type Result = Changing;

    fn handle(&mut self, Pause(partitions): Pause, _: &mut Self::Context) -> Self::Result {
        tracing::info!(partitions = list(&partitions), why = "the application", "paused");
        let others = self.change(partitions, |partition| self.parts.registry.pause(partition));
        self.change_others(others, Pause)
    }
}

impl Handler<Resume> for ConsumerSystem {
    type Result = Changing;

    fn handle(&mut self, Resume(partitions): Resume, _: &mut Self::Context) -> Self::Result {
        tracing::info!(partitions = list(&partitions), why = "the application", "resumed");
        let others = self.change(partitions, |partition| self.parts.registry.resume(partition));
        self.change_others(others, Resume)
    }
}

impl Handler<PauseTopic> for ConsumerSystem {
    type Result = Changing;

    fn handle(&mut self, pause: PauseTopic, _: &mut Self::Context) -> Self::Result {
        tracing::info!(topic = pause.0, why = "the application", "paused");
        self.tell_halts(self.parts.registry.pause_topic(&pause.0));
        self.tell_added(&pause)
    }
}

impl Handler<ResumeTopic> for ConsumerSystem {
    type Result = Changing;

    fn handle(&mut self, resume: ResumeTopic, _: &mut Self::Context) -> Self::Result {
        tracing::info!(topic = resume.0, why = "the application", "resumed");
        self.tell_halts(self.parts.registry.resume_topic(&resume.0));
        self.tell_added(&resume)
    }
}
