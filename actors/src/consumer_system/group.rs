//! The view of the whole group, as a member of it is asked for it.

use actix::prelude::*;
use kafka_troupe_proto::schemas::group::v1::GroupView;

use super::ConsumerSystem;
use crate::group_view::{GroupViewError, ReadGroup};

/// Asks for a [`GroupView`]; see [`ConsumerHandle::group`](super::ConsumerHandle::group).
#[derive(Message)]
#[rtype(result = "Result<GroupView, GroupViewError>")]
pub struct Group;

impl Handler<Group> for ConsumerSystem {
    type Result = ResponseFuture<Result<GroupView, GroupViewError>>;

    fn handle(&mut self, _: Group, _: &mut Self::Context) -> Self::Result {
        self.forget_ended();
        let added = self.added.iter().map(|member| &member.consumer_id);
        let own = added.chain([&self.parts.consumer_id]).map(ToString::to_string).collect();
        let asked = self.parts.group_reader.send(ReadGroup { own });
        let group = self.parts.config.group_id.clone();
        Box::pin(async move {
            let why = "its reader is being restarted; ask again";
            asked.await.unwrap_or_else(|_| Err(GroupViewError::new(&group, why)))
        })
    }
}
