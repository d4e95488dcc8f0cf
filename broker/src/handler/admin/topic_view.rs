//! Looking at topics: one (351), all (21), the system's own (305), the bounds of a topic's queues
//! (202). Changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rmq_protocol::{
    body::{
        MessageQueue, TopicConfig, TopicConfigAndQueueMapping, TopicConfigWrapper, TopicList,
        TopicOffset, TopicStatsTable,
    },
    header::{GetAllTopics, TopicHeader},
};
use rmq_types::Timestamp;

use super::{
    is_system_topic,
    page::{Asked, page},
};
use crate::{
    answer::{Answer, success},
    core::Core,
    handler::Call,
    metadata::system_topics,
    namespace,
};

/// Code 351.
pub(super) fn one(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: TopicHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let topic = core.topic(&header.topic)?;
    let body = TopicConfigAndQueueMapping::from(TopicConfig::clone(&topic));
    Ok(success().with_body(body.to_json()))
}

/// Code 21.
pub(super) fn all(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: GetAllTopics<'_> = call.decode()?;
    let (data_version, topics) = core.topics.snapshot();
    let asked = Asked {
        seq: call.header.ext.get("topicSeq").map(|_| header.topic_seq),
        max: header.max_topic_num,
        version: header.data_version.as_deref(),
    };
    let range = page(asked, data_version, topics.len())?;
    let shown = topics.get(range).unwrap_or_default();
    let table: BTreeMap<_, _> = shown
        .iter()
        .map(|topic| (topic.topic_name.clone(), TopicConfig::clone(topic)))
        .collect();
    let body = TopicConfigWrapper {
        data_version,
        topic_config_table: table,
        ..TopicConfigWrapper::default()
    };
    Ok(success()
        .with_ext("totalTopicNum", topics.len().to_string())
        .with_body(body.to_json()))
}

/// Code 305.
pub(super) fn system_list(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let own = system_topics(&core.settings.get())
        .into_iter()
        .map(|topic| topic.topic_name);
    let (_, topics) = core.topics.snapshot();
    let more = topics.iter().map(|topic| topic.topic_name.clone());
    let topic_list: BTreeSet<String> = own
        .chain(more.filter(|topic| is_system_topic(core, topic)))
        .collect();
    Ok(success().with_body(
        TopicList {
            broker_addr: None,
            topic_list,
        }
        .to_json(),
    ))
}

/// Code 202.
pub(super) fn stats(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: TopicHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let topic = header.topic.as_ref();
    let config = core.topic(topic)?;
    let count = config.read_queue_nums.max(config.write_queue_nums);
    let mut offset_table = BTreeMap::new();
    for queue_id in 0..count {
        let queue = MessageQueue {
            broker_name: core.identity.name.to_string(),
            queue_id,
            topic: topic.to_owned(),
        };
        offset_table.insert(queue, bounds(core, topic, queue_id as u32));
    }
    let minute = core.stats.view(core.now(), "TOPIC_PUT_NUMS", topic);
    let topic_put_tps = minute.map_or(0.0, |stats| stats.stats_minute.tps);
    Ok(success().with_body(
        TopicStatsTable {
            offset_table,
            topic_put_tps,
        }
        .to_json(),
    ))
}

fn bounds(core: &Core, topic: &str, queue: u32) -> TopicOffset {
    let max = core.store.max_queue_offset(topic, queue).unwrap_or(0);
    let last = core.store.store_time_of(topic, queue, max - 1);
    TopicOffset {
        last_update_timestamp: last.map_or(0, Timestamp::millis),
        max_offset: max,
        min_offset: core.store.min_queue_offset(topic, queue).unwrap_or(0),
    }
}
