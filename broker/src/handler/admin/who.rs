//! Which groups read a topic (300), which topics a group reads (343), with which filter (345).

use std::sync::Arc;

use rmq_protocol::{
    body::{GroupList, QuerySubscriptionResponse, TopicList},
    header::{GroupHeader, QuerySubscription, TopicHeader},
};

use crate::{
    answer::{Answer, success},
    core::{Core, lock},
    handler::Call,
    namespace,
};

/// Code 300: groups that are online for the topic, and those that have offsets in it.
pub(super) fn groups_of_topic(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: TopicHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let online = lock(&core.consumers).groups_of(&header.topic);
    let stored = core.offsets.groups_of(&header.topic);
    let group_list = online.into_iter().chain(stored).collect();
    Ok(success().with_body(GroupList { group_list }.to_json()))
}

/// Code 343.
pub(super) fn topics_of_group(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GroupHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group);
    let body = TopicList {
        broker_addr: Some(core.identity.advertised()),
        topic_list: core.offsets.topics_of(&header.group).into_iter().collect(),
    };
    Ok(success().with_body(body.to_json()))
}

/// Code 345.
pub(super) fn subscription(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QuerySubscription<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group);
    let mut topic = header.topic.unwrap_or_default();
    namespace::join(&call.header.ext, &mut topic);
    let found = lock(&core.consumers).subscription(&header.group, &topic);
    let body = QuerySubscriptionResponse {
        group: header.group.into_owned(),
        subscription_data: found.into_option(),
        topic: topic.into_owned(),
    };
    Ok(success().with_body(body.to_json()))
}
