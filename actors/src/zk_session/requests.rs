//! The handlers of what callers ask for: each hands its operation to the client's side and answers with the result.
//!
//! What a watching read has seen is noted here, where its answer is given, and not on the client's side: what a restart
//! of the actor kept from its caller is still to be told.
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::prelude::*;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::error::{ZkCall, ZkError};
use super::holder::Live;
use super::messages::{
    Claim, CreateEphemeral, CreatePersistent, Delete, Describe, ReadChildren, ReadData, Register, Registered,
    SessionEvent, SessionState, SessionStatus, SetData, Shutdown, Subscribe, Unwatch, WaitConnected,
};
use super::port::Stat;
use super::watches::{Seen, WatchKey, WatchKind};
use super::{Closed, LAST_WORD, ZkSession, operations, watches};
use crate::lease::SessionEpoch;

impl Handler<ReadChildren> for ZkSession {
    type Result = ResponseFuture<Result<Vec<String>, ZkError>>;

    fn handle(&mut self, ReadChildren { path, watch }: ReadChildren, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let key = WatchKey::new(&path, WatchKind::Children);
        if watch {
            self.holder.watches.want(key.clone());
        }
        let holder = self.holder.clone();
        let read = self.run(ZkCall::new("get children of", &path), Duration::ZERO, move |live| async move {
            operations::read_children(&live, &path, watch).await
        });
        Box::pin(async move {
            let read = read.await;
            Seen::children(&read).filter(|_| watch).map(|seen| holder.watches.saw(&key, seen));
            read
        })
    }
}

impl Handler<ReadData> for ZkSession {
    type Result = ResponseFuture<Result<(Vec<u8>, Stat), ZkError>>;

    fn handle(&mut self, ReadData { path, watch }: ReadData, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let key = WatchKey::new(&path, WatchKind::Data);
        if watch {
            self.holder.watches.want(key.clone());
        }
        let holder = self.holder.clone();
        let read = self.run(ZkCall::new("get data of", &path), Duration::ZERO, move |live| async move {
            operations::read_data(&live, &path, watch).await
        });
        Box::pin(async move {
            let read = read.await;
            Seen::data(&read).filter(|_| watch).map(|seen| holder.watches.saw(&key, seen));
            read
        })
    }
}

impl Handler<CreateEphemeral> for ZkSession {
    type Result = ResponseFuture<Result<Claim, ZkError>>;

    fn handle(&mut self, msg: CreateEphemeral, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let call = ZkCall::new("create", &msg.path);
        let (holder, key) = (self.holder.clone(), WatchKey::new(&msg.path, WatchKind::Data));
        let watched = holder.clone();
        let claim = self.run_in(msg.session, call, move |live| {
            let claiming = live.claiming();
            async move {
                let _claiming = claiming;
                operations::create_ephemeral(&live, &msg.path, &msg.data, Some(&watched.watches)).await
            }
        });
        Box::pin(async move {
            let claim = claim.await;
            if let Ok(Claim::Exists { stat, .. }) = &claim {
                holder.watches.saw(&key, Seen::of(stat));
            }
            claim
        })
    }
}

impl Handler<CreatePersistent> for ZkSession {
    type Result = ResponseFuture<Result<(), ZkError>>;

    fn handle(
        &mut self,
        CreatePersistent { session, path, data }: CreatePersistent,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.messages += 1;
        self.run_in(session, ZkCall::new("create", &path), |live| async move {
            operations::create_persistent(&live, &path, &data).await
        })
    }
}

impl Handler<SetData> for ZkSession {
    type Result = ResponseFuture<Result<Stat, ZkError>>;

    fn handle(&mut self, msg: SetData, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let SetData { session, path, data, version } = msg;
        self.run_in(session, ZkCall::new("set data of", &path), |live| async move {
            live.client.set_data(&path, data, Some(version)).await
        })
    }
}

impl Handler<Delete> for ZkSession {
    type Result = ResponseFuture<Result<(), ZkError>>;

    fn handle(&mut self, Delete { session, path, version }: Delete, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.run_in(session, ZkCall::new("delete", &path), |live| {
            let claiming = live.claiming();
            async move {
                let _claiming = claiming;
                operations::delete(&live, &path, version).await
            }
        })
    }
}

impl Handler<Register> for ZkSession {
    type Result = ResponseFuture<Result<Registered, ZkError>>;

    fn handle(&mut self, Register { path, data }: Register, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let patience = operations::register_wait(self.config.session_timeout);
        self.run(ZkCall::new("register", &path), patience, |live| async move {
            operations::register(&live, &path, &data).await
        })
    }
}

impl Handler<Unwatch> for ZkSession {
    type Result = ();

    fn handle(&mut self, Unwatch { path }: Unwatch, _: &mut Self::Context) {
        self.messages += 1;
        self.holder.watches.unwatch(&path);
    }
}

impl Handler<Subscribe> for ZkSession {
    type Result = ();

    fn handle(&mut self, Subscribe(subscriber): Subscribe, _: &mut Self::Context) {
        self.messages += 1;
        // whatever was told, it was not told to this one
        self.holder.watches.forget_seen();
        match (&self.failure, self.holder.live()) {
            (Some(why), _) => subscriber.do_send(SessionEvent::Failed { why: why.clone() }),
            (None, Some(live)) if self.state == SessionState::Connected => {
                subscriber.do_send(SessionEvent::Connected { session: live.session });
                // watches may have fired while no actor ran, or nobody had subscribed
                live.client.clone().spawn(Box::pin(watches::reread(live, self.holder.clone())));
            }
            (None, _) => {}
        }
        self.subscribers.retain(|known| *known != subscriber);
        self.subscribers.push(subscriber);
    }
}

impl Handler<WaitConnected> for ZkSession {
    type Result = ResponseFuture<Result<SessionEpoch, ZkError>>;

    fn handle(&mut self, _: WaitConnected, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let (tell, told) = oneshot::channel();
        match (&self.failure, self.holder.live()) {
            (Some(why), _) => drop(tell.send(Err(why.clone()))),
            (None, Some(live)) if self.state == SessionState::Connected => drop(tell.send(Ok(live.session))),
            (None, _) => self.waiting.push(tell),
        }
        let stopped = ZkError::ConnectionLoss(ZkCall::new("connect", "/"));
        Box::pin(async move { told.await.unwrap_or(Err(stopped)) })
    }
}

impl Handler<Shutdown> for ZkSession {
    type Result = ResponseFuture<bool>;

    fn handle(&mut self, _: Shutdown, ctx: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let was_connected =
            std::mem::replace(&mut self.state, SessionState::Closed) == SessionState::Connected;
        let live = self.holder.live().and_then(|live| self.holder.retire(live.session));
        let actor = ctx.address();
        // the last one was given up, and the server may keep it for a while
        let stood = self.holder.stood.load(Ordering::Relaxed);
        Box::pin(async move {
            let mut is_closed = !stood;
            if let Some(live) = live {
                // a library without a connection closes at once, and nobody hears of it
                let is_heard = unregister(&live).await.unwrap_or(was_connected);
                let closed = timeout(LAST_WORD, live.client.close()).await;
                is_closed = is_heard && matches!(closed, Ok(Ok(())));
                if !is_closed {
                    tracing::warn!("zookeeper session not closed: its nodes stay until it expires");
                }
                live.client.end();
            }
            actor.do_send(Closed);
            is_closed
        })
    }
}

/// Our registration goes first, and its end is waited for: those who stay must not plan for us until the session
/// expires, should the server not hear of its end. Whether it is gone; none without one.
async fn unregister(live: &Live) -> Option<bool> {
    let path = live.registered()?;
    let deleted = timeout(LAST_WORD, live.client.delete(&path, None)).await;
    let is_gone = matches!(deleted, Ok(Ok(()) | Err(ZkError::NoNode(_))));
    if !is_gone {
        tracing::warn!(path, "registration not deleted: it stays until the session ends");
    }
    Some(is_gone)
}

impl Handler<Describe> for ZkSession {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let live = self.holder.live();
        MessageResult(SessionStatus {
            state: self.state,
            session: live.as_ref().map(|live| live.session),
            id: live.as_ref().and_then(|live| live.id()),
            session_timeout: live.as_ref().map(|live| live.client.session_timeout()),
            lease_remaining: self.holder.lease.remaining(),
            messages: self.messages,
            reconnects: self.holder.reconnects.load(Ordering::Relaxed),
            claims: live.as_ref().map_or(0, |live| live.claims()),
            in_flight: live.map_or(0, |live| live.client.in_flight()),
        })
    }
}
