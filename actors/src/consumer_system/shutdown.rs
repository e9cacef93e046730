//! Leaving the group, in order: delivery stops, offsets are flushed, owner nodes go, the session closes, threads end.

use std::time::Duration;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::config::OffsetsStorage;

use super::{ConsumerHandle, ConsumerSystem, Shutdown};
use crate::{coordinator, fetcher_manager, offset_committer, stream_queue, topic_metadata, zk_session};

/// What a step may take beyond the time that handlers get to finish.
const STEP: Duration = Duration::from_secs(5);

impl Handler<Shutdown> for ConsumerSystem {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Shutdown, _: &mut Self::Context) -> Self::Result {
        if std::mem::replace(&mut self.stopping, true) {
            // who asks a second time waits for the end of this actor: threads must not be stopped before
            return Box::pin(std::future::pending().into_actor(self));
        }
        // they are kept: what their handlers have in hand may still be committed by this one's handle
        let added = self.added.clone();
        let parts = &self.parts;
        let (session, coordinator) = (parts.session.clone(), parts.coordinator.clone());
        let (fetchers, committer) = (parts.fetchers.clone(), parts.committer.clone());
        let metadata = parts.metadata.clone();
        let streams = std::sync::Arc::clone(&parts.streams);
        let in_flight = match parts.config.offsets_storage {
            // nothing fences them, so answers are waited for: that of the commit in flight, and of the last
            OffsetsStorage::Kafka => parts.config.offsets_channel_socket_timeout * 2,
            _ => Duration::ZERO,
        };
        let drain = parts.config.drain_timeout + in_flight + STEP;
        let own = async move {
            // an actor that is gone or hangs holds nothing up: closing the session releases what it left
            let _ = tokio::time::timeout(drain, coordinator.send(coordinator::Shutdown)).await;
            for stream in streams.all() {
                stream.queue.do_send(stream_queue::Stop);
                stream.queue.clear();
            }
            metadata.do_send(topic_metadata::Stop);
            fetchers.do_send(fetcher_manager::Stop);
            committer.do_send(offset_committer::Stop);
            // whoever waits for its next life need not
            committer.clear();
            let _ = tokio::time::timeout(STEP, session.send(zk_session::Shutdown)).await;
            tracing::info!("consumer system left the group");
        };
        let all = async move { tokio::join!(own, join_all(added.iter().map(ConsumerHandle::shutdown))) };
        Box::pin(all.into_actor(self).map(|_, _, ctx| ctx.stop()))
    }
}
