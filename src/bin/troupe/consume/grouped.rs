//! Records as a member of a group gets them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::StreamExt;
use kafka_troupe::proto::zk::paths::GroupPaths;
use kafka_troupe::{
    Builder, ConsumeError, ConsumerHandle, ConsumerSystem, KafkaStream, Record, SeekError, TopicPartition,
};

use super::args::Args;
use super::group::{self, Prepared};
use super::printing::{Printing, Source};
use super::settings::Settings;
use crate::ends::Ends;
use crate::exit::{Answer, Failure, Outcome};

/// Joins the group, prints, and leaves it; a temporary group is removed.
pub async fn run(args: &Args, settings: &Settings, printing: Printing, mut ends: Ends) -> Outcome {
    let named = settings.group()?.map(str::to_owned);
    let temporary = named.is_none();
    let mut config = settings.config(&named.unwrap_or_else(group::temporary_name))?;
    let filter = args.topics.filter().map_err(Failure::usage)?;
    let (begins, deletes) = (args.from_beginning, args.delete_consumer_offsets);
    let prepared = tokio::select! {
        prepared = group::prepare(&mut config, temporary, begins, deletes) => prepared?,
        () = ends.next() => return Ok(Answer::Yes),
    };
    if let Prepared::Refused(why) = prepared {
        say!("{why}");
        return Ok(Answer::No);
    }
    let printing = printing.patient_for(config.consumer_timeout);
    let builder = ConsumerSystem::builder(config.clone());
    let builder = match (filter, &args.topics.topic) {
        (Some(filter), _) => builder.pull_matching(filter, args.threads),
        (None, topic) => builder.pull(topic.as_deref().unwrap_or_default(), args.threads),
    };
    let outcome = consume(args, builder, &config.group_id, printing, &mut ends).await;
    if temporary {
        tokio::select! {
            () = group::remove(&config) => {}
            () = ends.next() => say!("the temporary group {} may be left behind", config.group_id),
        }
    }
    outcome
}

async fn consume(args: &Args, builder: Builder, group: &str, printing: Printing, ends: &mut Ends) -> Outcome {
    let mut starting = pin!(builder.start());
    let system = tokio::select! {
        started = &mut starting => started?,
        () = ends.next() => {
            // what is half made ends as a whole does, unless a second signal says at once
            tokio::select! {
                started = starting => leave(&started?, ends).await,
                () = ends.next() => {}
            }
            return Ok(Answer::Yes);
        }
    };
    let streams = args.topics.streams(&system);
    let membership = Membership { streams, last: 0, system: system.clone(), group: group.to_owned() };
    let (membership, outcome) = printing.print(membership, ends).await;
    // a record that failed is not waited for
    drop(membership);
    leave(&system, ends).await;
    outcome
}

/// Says what could not be done within `troupe.shutdown.timeout.ms`, or before another signal.
async fn leave(system: &ConsumerHandle, ends: &mut Ends) {
    tokio::select! {
        left = system.shutdown_within(system.config().shutdown_timeout) => {
            for what in left.cut_off {
                say!("not done before the end: {what}");
            }
        }
        () = ends.next() => say!("ended before the member had left its group"),
    }
}

/// The streams of a member.
struct Membership {
    streams: Vec<KafkaStream>,
    /// Which one gave out the last record.
    last: usize,
    system: ConsumerHandle,
    group: String,
}

impl Source for Membership {
    async fn next(&mut self) -> Option<Result<Record, ConsumeError>> {
        let count = self.streams.len();
        poll_fn(|task| {
            let mut open = false;
            for at in (self.last + 1..=self.last + count).map(|at| at % count) {
                match self.streams[at].poll_next_unpin(task) {
                    Poll::Ready(Some(item)) => {
                        self.last = at;
                        return Poll::Ready(Some(item));
                    }
                    Poll::Ready(None) => {}
                    Poll::Pending => open = true,
                }
            }
            if open { Poll::Pending } else { Poll::Ready(None) }
        })
        .await
    }

    async fn step_over(&mut self, unread: &ConsumeError) -> Result<(), Failure> {
        match self.system.seek(&unread.topic, unread.partition, unread.resume_at).await {
            // it has moved away meanwhile; who has it now steps over it
            Ok(()) | Err(SeekError::NotOwned(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn advice(&self, unread: &ConsumeError) -> Option<String> {
        let ConsumeError { topic, partition, resume_at, .. } = unread;
        let path = GroupPaths::new(&self.group).offset(&TopicPartition::new(topic.as_str(), *partition));
        Some(format!("set {path} to {resume_at} while no member of the group runs"))
    }

    fn all_handled(&mut self) {
        self.streams.iter_mut().for_each(KafkaStream::ack);
    }

    fn all_but_the_last_handled(&mut self) {
        let last = self.last;
        let others = self.streams.iter_mut().enumerate().filter(|(at, _)| *at != last);
        others.for_each(|(_, stream)| stream.ack());
    }
}
