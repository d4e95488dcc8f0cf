//! Sessions: heartbeats, goodbyes, members of a group, the check of a client's filter.

use std::sync::Arc;

use rmq_protocol::{
    body::{CheckClientRequest, ConsumerData, ConsumerIdList, HeartbeatData},
    header::{ConsumerGroupHeader, UnregisterClient},
    remoting::response_code,
};
use rmq_types::{GroupName, system};

use super::Call;
use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    metadata::{PERM_READ, PERM_WRITE},
    namespace,
    session::{GROUPS_OF_A_CONNECTION_MAX, Heartbeat, Member, Producer, subscription::TagFilter},
};

/// Most groups one heartbeat may name.
const GROUPS_MAX: usize = 1024;
/// Most topics a group may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1024;

/// Code 34.
pub(crate) fn heartbeat(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    if call.body.is_empty() {
        return Err(Failure::system("the heartbeat has no body"));
    }
    let data = HeartbeatData::from_json(call.body)?;
    if data.client_id.is_empty() {
        return Err(Failure::system("the heartbeat has no clientID"));
    }
    if data.consumer_data_set.len() + data.producer_data_set.len() > GROUPS_MAX {
        return Err(Failure::system(format!(
            "the heartbeat names more than {GROUPS_MAX} groups"
        )));
    }
    let greedy = |group: &&ConsumerData| group.subscription_data_set.len() > SUBSCRIPTIONS_MAX;
    if let Some(group) = data.consumer_data_set.iter().find(greedy) {
        return Err(Failure::system(format!(
            "group {} subscribes to more than {SUBSCRIPTIONS_MAX} topics",
            group.group_name
        )));
    }
    if !call.conn.is_open() {
        return Err(Failure::system("the connection is closed"));
    }
    let now = core.now();
    for producer in &data.producer_data_set {
        let mut group = producer.group_name.as_str().into();
        namespace::join(&call.header.ext, &mut group);
        if GroupName::check(&group).is_err() {
            continue;
        }
        let entry = Producer {
            client_id: data.client_id.clone(),
            language: call.header.language,
            version: call.header.version,
            channel: Arc::clone(call.conn),
            seen: now,
        };
        if !lock(&core.producers).heartbeat(&group, call.conn.id().0, entry) {
            return Err(Failure::system(format!(
                "this connection is in {GROUPS_OF_A_CONNECTION_MAX} producer groups already"
            )));
        }
    }
    let mut changed = false;
    for consumer in &data.consumer_data_set {
        changed |= consumer_beat(core, call, &data, consumer);
    }
    // The connection may have closed in between; its `closed` call may then have come too early.
    if !call.conn.is_open() {
        crate::server::forget_connection(core, call.conn.id().0);
    }
    Ok(success()
        .with_ext("IS_SUPPORT_HEART_BEAT_V2", "true")
        .with_ext("IS_SUB_CHANGE", changed.to_string())
        .with_ext("version", rmq_protocol::remoting::VERSION.to_string()))
}

/// Takes one group in; a group that may not be made is left out, the others go on.
fn consumer_beat(
    core: &Arc<Core>,
    call: &Call<'_>,
    data: &HeartbeatData,
    beat: &ConsumerData,
) -> bool {
    let mut group = beat.group_name.as_str().into();
    namespace::join(&call.header.ext, &mut group);
    let config = match core.find_group(&group) {
        Ok(config) => config,
        Err(failure) => {
            tracing::debug!(group = %group, remark = failure.remark, "group of a heartbeat left out");
            return false;
        }
    };
    let retry = system::retry_topic(&group);
    if config.retry_queue_nums > 0
        && let Err(failure) =
            core.own_topic(&retry, config.retry_queue_nums, PERM_READ | PERM_WRITE)
    {
        tracing::warn!(
            topic = retry,
            remark = failure.remark,
            "retry topic not made"
        );
    }
    let without = data.heartbeat_fingerprint != 0 && data.without_sub;
    let mut subscriptions = beat.subscription_data_set.clone();
    for subscription in &mut subscriptions {
        let mut topic = subscription.topic.as_str().into();
        namespace::join(&call.header.ext, &mut topic);
        let topic = topic.into_owned();
        subscription.topic = topic;
    }
    let change = lock(&core.consumers).heartbeat(
        &group,
        Heartbeat {
            connection: call.conn.id().0,
            member: Member {
                client_id: data.client_id.clone(),
                language: call.header.language,
                version: call.header.version,
                channel: Arc::clone(call.conn),
                seen: core.now(),
            },
            consume_type: beat.consume_type,
            model: beat.message_model,
            from_where: beat.consume_from_where,
            subscriptions: (!without).then_some(&subscriptions),
        },
    );
    if change.any() {
        core.notify_members(&group);
    }
    change.subscriptions
}

/// Code 35.
pub(crate) fn unregister(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: UnregisterClient<'_> = call.decode()?;
    let connection = call.conn.id().0;
    if let Some(group) = &mut header.producer_group {
        namespace::join(&call.header.ext, group);
        lock(&core.producers).leave(group, connection);
    }
    if let Some(group) = &mut header.consumer_group {
        namespace::join(&call.header.ext, group);
        if lock(&core.consumers).leave(group, connection) {
            core.notify_members(group);
        }
    }
    Ok(success())
}

/// Code 38.
pub(crate) fn consumer_ids(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: ConsumerGroupHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let ids = lock(&core.consumers).client_ids(&header.consumer_group);
    if ids.is_empty() {
        return Err(Failure::system(format!(
            "no consumer for this group, {}",
            header.consumer_group
        )));
    }
    Ok(success().with_body(
        ConsumerIdList {
            consumer_id_list: ids,
        }
        .to_json(),
    ))
}

/// Code 46.
pub(crate) fn check_config(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    if call.body.is_empty() {
        return Err(Failure::system("the request has no body"));
    }
    let request = CheckClientRequest::from_json(call.body)?;
    let Some(subscription) = request.subscription_data else {
        return Ok(success());
    };
    if subscription.expression_type.is_empty() || subscription.expression_type == "TAG" {
        TagFilter::parse(&subscription.sub_string)?;
        return Ok(success());
    }
    if !core.settings.get().enable_property_filter {
        return Err(Failure::system(format!(
            "The broker does not support consumer to filter message by {}",
            subscription.expression_type
        )));
    }
    Err(Failure::new(
        response_code::SUBSCRIPTION_PARSE_FAILED,
        "property filters are not supported yet",
    ))
}
