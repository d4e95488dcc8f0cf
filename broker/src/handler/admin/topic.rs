//! Topics: create or change (17), delete (215), list (21).

use std::sync::Arc;

use rmq_protocol::{
    body::{TopicConfig, TopicConfigWrapper, TopicFilterType},
    header::{CreateTopic, TopicHeader},
};
use rmq_types::{TopicName, system};

use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    handler::Call,
    metadata::{check_attributes, check_settings},
};

fn check_name(core: &Core, topic: &str) -> Result<(), Failure> {
    TopicName::check_for_client(topic)?;
    if core.settings.get().validate_system_topic && system::is_system_topic(topic) {
        return Err(Failure::parameter(format!(
            "the topic[{topic}] is conflict with system topic."
        )));
    }
    Ok(())
}

/// Code 17.
pub(super) fn create(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: CreateTopic<'_> = call.decode()?;
    check_name(core, &header.topic)?;
    let old = core.topics.get(&header.topic);
    let text = header.attributes.as_deref().unwrap_or_default();
    let attributes = check_attributes(text, old.as_ref().map(|old| &old.attributes))?;
    let mixed = attributes
        .get("message.type")
        .is_some_and(|kind| kind == "MIXED");
    if mixed && !core.settings.get().enable_mixed_message_type {
        return Err(Failure::parameter("MIXED message type is not supported."));
    }
    let filter = match header.topic_filter_type.as_ref() {
        "MULTI_TAG" => TopicFilterType::MultiTag,
        _ => TopicFilterType::SingleTag,
    };
    let topic = TopicConfig {
        attributes,
        order: header.order,
        perm: header.perm,
        read_queue_nums: header.read_queue_nums,
        topic_filter_type: filter,
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        write_queue_nums: header.write_queue_nums,
        ..TopicConfig::named(header.topic.as_ref())
    };
    check_settings(&topic)?;
    core.put_topics(vec![topic])?;
    Ok(success())
}

/// Code 215: first the table, durably, then everything that hangs on the topic.
pub(super) fn delete(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: TopicHeader<'_> = call.decode()?;
    let topic = header.topic.as_ref();
    check_name(core, topic)?;
    core.topics.remove(topic, core.now())?;
    core.offsets.remove_topic(topic);
    core.stats.forget(topic);
    let waiting = {
        let mut holds = lock(&core.holds);
        let waiting = holds.take_topic(topic);
        core.arrivals.set_waiting(holds.len());
        waiting
    };
    for waiter in waiting {
        crate::arrival::answer_pull(core, waiter.what);
    }
    core.store
        .delete_topic(topic)
        .map_err(|error| Failure::system(format!("the topic's files are not deleted: {error}")))?;
    Ok(success())
}

/// Code 21, in one page.
pub(super) fn all(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let (data_version, topics) = core.topics.snapshot();
    let count = topics.len();
    let table = topics
        .iter()
        .map(|topic| (topic.topic_name.clone(), TopicConfig::clone(topic)));
    let body = TopicConfigWrapper {
        data_version,
        topic_config_table: table.collect(),
        ..TopicConfigWrapper::default()
    };
    Ok(success()
        .with_ext("totalTopicNum", count.to_string())
        .with_body(body.to_json()))
}
