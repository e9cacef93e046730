//! The handlers of what callers ask for: each hands its operation to the client's side and answers with the result.
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::prelude::*;
use tokio::sync::oneshot;

use super::error::{ZkCall, ZkError};
use super::messages::{
    Claim, CreateEphemeral, CreatePersistent, Delete, Describe, ReadChildren, ReadData, Register, Registered,
    SessionEvent, SessionState, SessionStatus, SetData, SetPersistent, Subscribe, Unwatch, WaitConnected,
};
use super::port::Stat;
use super::watches::{Seen, WatchKey, WatchKind};
use super::{ZkSession, operations};
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
        self.run(ZkCall::new("get children of", &path), Duration::ZERO, |live| async move {
            let read = operations::read_children(&live, &path, watch).await;
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
        self.run(ZkCall::new("get data of", &path), Duration::ZERO, |live| async move {
            let read = operations::read_data(&live, &path, watch).await;
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
        let current = self.holder.live().map_or_else(SessionEpoch::default, |live| live.session);
        if self.failure.is_none() && current != msg.session {
            let moved = ZkError::SessionMoved { call, planned: msg.session, current };
            return Box::pin(async move { Err(moved) });
        }
        self.run(call, Duration::ZERO, |live| async move {
            operations::create_ephemeral(&live, &msg.path, &msg.data).await
        })
    }
}

impl Handler<CreatePersistent> for ZkSession {
    type Result = ResponseFuture<Result<(), ZkError>>;

    fn handle(
        &mut self,
        CreatePersistent { path, data }: CreatePersistent,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.messages += 1;
        self.run(ZkCall::new("create", &path), Duration::ZERO, |live| async move {
            operations::create_persistent(&live, &path, &data).await
        })
    }
}

impl Handler<SetPersistent> for ZkSession {
    type Result = ResponseFuture<Result<i32, ZkError>>;

    fn handle(&mut self, msg: SetPersistent, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.run(ZkCall::new("set data of", &msg.path), Duration::ZERO, |live| async move {
            operations::set_persistent(&live, &msg.path, &msg.data, msg.version).await
        })
    }
}

impl Handler<SetData> for ZkSession {
    type Result = ResponseFuture<Result<Stat, ZkError>>;

    fn handle(&mut self, SetData { path, data, version }: SetData, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.run(ZkCall::new("set data of", &path), Duration::ZERO, |live| async move {
            live.client.set_data(&path, data, Some(version)).await
        })
    }
}

impl Handler<Delete> for ZkSession {
    type Result = ResponseFuture<Result<(), ZkError>>;

    fn handle(&mut self, Delete { path, version }: Delete, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.run(ZkCall::new("delete", &path), Duration::ZERO, |live| async move {
            operations::delete(&live, &path, version).await
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
        match (&self.failure, self.holder.live()) {
            (Some(why), _) => subscriber.do_send(SessionEvent::Failed { why: why.clone() }),
            (None, Some(live)) if self.state == SessionState::Connected => {
                subscriber.do_send(SessionEvent::Connected { session: live.session });
            }
            (None, _) => {}
        }
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
            in_flight: live.map_or(0, |live| live.client.in_flight()),
        })
    }
}
