//! Request codes to handlers: which run at once, and which go to the housekeeper.
//!
//! **Invariant:** a one-way request gets no answer, not even an error, and every other request gets
//! exactly one.

use std::sync::Arc;

use bytes::Bytes;
use rmq_net::{Connection, Outbox, Request, Service};
use rmq_protocol::remoting::{request_code, response_code};

use super::{
    broker,
    call::{Call, Handled, Handler, Refusal, token_of},
    cluster, config,
    core::Core,
    housekeeper::{Job, OwnedCall},
    kv, route, topic,
};

/// Registrations with a longer body are worked on off the io thread.
const INLINE_BODY_BYTES_MAX: usize = 64 * 1024;

/// Where a handler runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the io thread.
    Here,
    /// On the io thread unless the body is long or compressed.
    HereIfSmall,
    /// On the housekeeping thread: it writes a file.
    Away,
}

/// Every code but 105, which does not pass through here.
static HANDLERS: [(i32, Place, Handler); 22] = [
    (request_code::PUT_KV_CONFIG, Place::Away, kv::put),
    (request_code::GET_KV_CONFIG, Place::Here, kv::get),
    (request_code::DELETE_KV_CONFIG, Place::Away, kv::delete),
    (
        request_code::REGISTER_BROKER,
        Place::HereIfSmall,
        broker::register,
    ),
    (
        request_code::UNREGISTER_BROKER,
        Place::Here,
        broker::unregister,
    ),
    (
        request_code::GET_BROKER_CLUSTER_INFO,
        Place::Here,
        cluster::info,
    ),
    (
        request_code::WIPE_WRITE_PERM_OF_BROKER,
        Place::Here,
        cluster::wipe_write_perm,
    ),
    (
        request_code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        Place::Here,
        topic::all,
    ),
    (
        request_code::DELETE_TOPIC_IN_NAMESRV,
        Place::Here,
        topic::delete,
    ),
    (
        request_code::REGISTER_TOPIC_IN_NAMESRV,
        Place::Here,
        topic::register,
    ),
    (request_code::GET_KVLIST_BY_NAMESPACE, Place::Here, kv::list),
    (
        request_code::GET_TOPICS_BY_CLUSTER,
        Place::Here,
        topic::of_cluster,
    ),
    (
        request_code::GET_SYSTEM_TOPIC_LIST_FROM_NS,
        Place::Here,
        topic::system,
    ),
    (request_code::GET_UNIT_TOPIC_LIST, Place::Here, topic::unit),
    (
        request_code::GET_HAS_UNIT_SUB_TOPIC_LIST,
        Place::Here,
        topic::unit_sub,
    ),
    (
        request_code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        Place::Here,
        topic::unit_sub_not_unit,
    ),
    (
        request_code::UPDATE_NAMESRV_CONFIG,
        Place::Here,
        config::update,
    ),
    (request_code::GET_NAMESRV_CONFIG, Place::Here, config::get),
    (
        request_code::QUERY_DATA_VERSION,
        Place::Here,
        broker::query_data_version,
    ),
    (
        request_code::ADD_WRITE_PERM_OF_BROKER,
        Place::Here,
        cluster::add_write_perm,
    ),
    (
        request_code::GET_BROKER_MEMBER_GROUP,
        Place::Here,
        broker::members,
    ),
    (
        request_code::BROKER_HEARTBEAT,
        Place::Here,
        broker::heartbeat,
    ),
];

/// Codes that are counted one by one, beside 105.
pub(super) fn codes() -> impl Iterator<Item = i32> {
    HANDLERS.iter().map(|(code, _, _)| *code)
}

pub(super) struct Dispatch {
    core: Arc<Core>,
}

impl Dispatch {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    fn serve_one(&self, conn: &Arc<Connection>, request: &Request<'_>, out: &mut Outbox) {
        let header = &request.header;
        let call = Call {
            conn,
            header,
            body: request.body,
        };
        self.core.counters.count(header.code);
        if header.code == request_code::GET_ROUTEINFO_BY_TOPIC {
            if request.wants_reply() {
                route::serve(&self.core, &call, out);
            }
            return;
        }
        if let Some(handled) = self.handle(&call, request.wants_reply()) {
            let answer = call.finish(handled);
            if request.wants_reply() {
                out.send(&answer);
            }
        }
    }

    /// `None` when the housekeeper will answer.
    fn handle(&self, call: &Call<'_>, wants_reply: bool) -> Option<Handled> {
        let code = call.header.code;
        let Some((_, place, handler)) = HANDLERS.iter().find(|(known, _, _)| *known == code) else {
            return Some(Err(Refusal::unsupported(code)));
        };
        let large =
            call.body.len() > INLINE_BODY_BYTES_MAX || call.header.ext.is_true("compressed");
        if *place == Place::Here || (*place == Place::HereIfSmall && !large) {
            return Some(handler(&self.core, call));
        }
        let job = Job::Call(Box::new(OwnedCall {
            conn: Arc::clone(call.conn),
            header: call.header.clone().into_owned(),
            body: Bytes::copy_from_slice(call.body),
            wants_reply,
            handler: *handler,
        }));
        match self.core.jobs.push(job) {
            Ok(()) => None,
            Err(_) => Some(Err(Refusal::new(
                response_code::SYSTEM_BUSY,
                "[OVERLOAD]system busy, too much waits for the housekeeping thread",
            ))),
        }
    }
}

impl Service for Dispatch {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for (index, request) in requests.iter().enumerate() {
            if index > 0 && out.is_full() {
                out.leave(requests.len() - index);
                return;
            }
            self.serve_one(conn, request, out);
        }
    }

    fn closed(&self, conn: &Arc<Connection>) {
        self.core.connection_closed(token_of(conn));
    }
}
