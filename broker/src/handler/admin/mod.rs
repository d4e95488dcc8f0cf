//! Administration: topics, groups, configuration, figures. One file per subject.
//!
//! **Invariant:** reading never makes a topic, a group or a queue, and every refused request says
//! which field or body was missing or out of bounds.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all handlers have one signature, also those that cannot fail"
)]

mod assign;
mod config;
mod group;
mod maintenance;
mod page;
mod progress;
mod query;
mod relay;
mod reset;
mod runtime;
mod sessions;
mod topic;
mod topic_view;
mod who;

use rmq_protocol::remoting::request_code as code;
use rmq_types::system;

use super::{Call, Kind};
use crate::{answer::Failure, core::Core};

/// The handler of an administrative code.
pub(super) fn handler_of(request_code: i32) -> Option<Kind> {
    use Kind::{Quick, Slow};
    Some(match request_code {
        code::UPDATE_AND_CREATE_TOPIC => Slow(topic::create),
        code::UPDATE_AND_CREATE_TOPIC_LIST => Slow(topic::create_list),
        code::DELETE_TOPIC_IN_BROKER => Slow(topic::delete),
        code::GET_TOPIC_CONFIG => Quick(topic_view::one),
        code::GET_ALL_TOPIC_CONFIG => Slow(topic_view::all),
        code::GET_SYSTEM_TOPIC_LIST_FROM_BROKER => Slow(topic_view::system_list),
        code::GET_TOPIC_STATS_INFO => Slow(topic_view::stats),
        code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => Slow(group::create),
        code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST => Slow(group::create_list),
        code::GET_SUBSCRIPTIONGROUP_CONFIG => Quick(group::one),
        code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => Slow(group::all),
        code::DELETE_SUBSCRIPTIONGROUP => Slow(group::delete),
        code::UPDATE_AND_GET_GROUP_FORBIDDEN => Slow(group::forbid),
        code::UPDATE_BROKER_CONFIG => Slow(config::update),
        code::GET_BROKER_CONFIG => Quick(config::show),
        code::GET_BROKER_RUNTIME_INFO => Slow(runtime::info),
        code::VIEW_BROKER_STATS_DATA => Quick(runtime::view_stats),
        code::GET_CONSUMER_CONNECTION_LIST => Quick(sessions::consumers),
        code::GET_PRODUCER_CONNECTION_LIST => Quick(sessions::producers),
        code::GET_ALL_PRODUCER_INFO => Quick(sessions::all_producers),
        code::QUERY_MESSAGE => Slow(query::by_key),
        code::VIEW_MESSAGE_BY_ID => Slow(query::by_offset),
        code::QUERY_CONSUME_QUEUE => Slow(query::queue_entries),
        code::GET_CONSUME_STATS => Slow(progress::of_group),
        code::GET_BROKER_CONSUME_STATS => Slow(progress::of_all_groups),
        code::QUERY_CONSUME_TIME_SPAN => Slow(progress::time_span),
        code::QUERY_CORRECTION_OFFSET => Slow(progress::corrections),
        code::GET_ALL_CONSUMER_OFFSET => Slow(progress::all_offsets),
        code::GET_ALL_DELAY_OFFSET => Quick(progress::delay_offsets),
        code::QUERY_TOPIC_CONSUME_BY_WHO => Quick(who::groups_of_topic),
        code::QUERY_TOPICS_BY_CONSUMER => Quick(who::topics_of_group),
        code::QUERY_SUBSCRIPTION_BY_CONSUMER => Quick(who::subscription),
        code::INVOKE_BROKER_TO_RESET_OFFSET => Slow(reset::reset),
        code::CLONE_GROUP_OFFSET => Slow(reset::clone_offsets),
        code::GET_CONSUMER_RUNNING_INFO => Slow(relay::running_info),
        code::CONSUME_MESSAGE_DIRECTLY => Slow(relay::consume_directly),
        code::INVOKE_BROKER_TO_GET_CONSUMER_STATUS => Slow(relay::consumer_status),
        code::QUERY_ASSIGNMENT => Slow(assign::query),
        code::SET_MESSAGE_REQUEST_MODE => Slow(assign::set_mode),
        code::GET_ALL_MESSAGE_REQUEST_MODE => Quick(assign::all_modes),
        code::CLEAN_EXPIRED_CONSUMEQUEUE => Quick(maintenance::clean_expired_queues),
        code::CLEAN_UNUSED_TOPIC => Slow(maintenance::clean_unused_topics),
        code::DELETE_EXPIRED_COMMITLOG => Slow(maintenance::delete_expired_log),
        code::RECALL_MESSAGE => Quick(maintenance::recall),
        code::END_TRANSACTION => Quick(maintenance::end_transaction),
        _ => return None,
    })
}

/// The body of a request that needs one; `what` names its fields.
fn body_of<'a>(call: &Call<'a>, what: &str) -> Result<&'a [u8], Failure> {
    if call.body.is_empty() {
        return Err(Failure::system(format!("the request has no body: {what}")));
    }
    Ok(call.body)
}

/// Whether a topic is one that the broker needs for itself: clients neither alter nor delete it.
fn is_system_topic(core: &Core, topic: &str) -> bool {
    let settings = core.settings.get();
    let reply = || topic.strip_suffix(system::REPLY_TOPIC_SUFFIX);
    system::is_system_topic(topic)
        || topic == core.identity.cluster.as_str()
        || topic == core.identity.name.as_str()
        || reply() == Some(core.identity.cluster.as_str())
        || (settings.trace_topic_enable && topic == settings.msg_trace_topic_name)
}

/// Refuses system topics with code 29, as long as they are protected.
fn check_not_system(core: &Core, topic: &str) -> Result<(), Failure> {
    if core.settings.get().validate_system_topic && is_system_topic(core, topic) {
        return Err(Failure::parameter(format!(
            "The topic[{topic}] is conflict with system topic."
        )));
    }
    Ok(())
}

/// Whether a group that is online leaves a topic out of its subscriptions: then its offsets there
/// are remains, which figures leave out.
fn is_left_behind(core: &Core, group: &str, topic: &str) -> bool {
    crate::core::lock(&core.consumers)
        .view(group)
        .is_some_and(|view| {
            !view.subscriptions.is_empty() && !view.subscriptions.contains_key(topic)
        })
}
