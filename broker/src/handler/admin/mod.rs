//! Administration: topics, groups, configuration, figures. One file per subject.

mod group;
mod topic;

use rmq_protocol::remoting::request_code as code;

use super::Kind;

/// The handler of an administrative code.
pub(super) fn handler_of(request_code: i32) -> Option<Kind> {
    Some(match request_code {
        code::UPDATE_AND_CREATE_TOPIC => Kind::Slow(topic::create),
        code::DELETE_TOPIC_IN_BROKER => Kind::Slow(topic::delete),
        code::GET_ALL_TOPIC_CONFIG => Kind::Slow(topic::all),
        code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => Kind::Slow(group::create),
        code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => Kind::Slow(group::all),
        _ => return None,
    })
}
