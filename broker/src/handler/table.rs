//! Which handler answers which request code: one table, so that a reader finds all of them here.

use std::sync::Arc;

use rmq_protocol::remoting::request_code as code;

use super::{Call, admin, client, offset, pop, queue_lock, reply, send_back};
use crate::{answer::Answer, core::Core};

/// A handler.
pub(crate) type Handler = fn(&Arc<Core>, &Call<'_>) -> Answer;

/// Where a handler may run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// On the io thread: it only touches memory.
    Quick(Handler),
    /// On a worker: it may wait for a disk or a peer.
    Slow(Handler),
}

/// The handler of a code; sends and pulls are not here, they write their answers themselves.
pub(crate) fn handler_of(request_code: i32) -> Option<Kind> {
    use Kind::{Quick, Slow};
    Some(match request_code {
        code::HEART_BEAT => Slow(client::heartbeat),
        code::UNREGISTER_CLIENT => Quick(client::unregister),
        code::CHECK_CLIENT_CONFIG => Quick(client::check_config),
        code::GET_CONSUMER_LIST_BY_GROUP => Quick(client::consumer_ids),
        code::QUERY_CONSUMER_OFFSET => Quick(offset::query),
        code::UPDATE_CONSUMER_OFFSET => Quick(offset::update),
        code::GET_MAX_OFFSET => Quick(offset::max),
        code::GET_MIN_OFFSET => Quick(offset::min),
        code::SEARCH_OFFSET_BY_TIMESTAMP => Slow(offset::search),
        code::GET_EARLIEST_MSG_STORETIME => Slow(offset::earliest),
        code::LOCK_BATCH_MQ => Quick(queue_lock::lock_batch),
        code::UNLOCK_BATCH_MQ => Quick(queue_lock::unlock_batch),
        code::CONSUMER_SEND_MSG_BACK => Slow(send_back::send_back),
        code::BATCH_ACK_MESSAGE => Quick(pop::batch_ack),
        code::POLLING_INFO => Quick(pop::polling_info),
        code::POP_ROLLBACK => Quick(pop::rollback),
        code::SEND_REPLY_MESSAGE | code::SEND_REPLY_MESSAGE_V2 => Slow(reply::send_reply),
        other => return admin::handler_of(other),
    })
}
