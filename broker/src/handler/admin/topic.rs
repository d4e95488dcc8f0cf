//! Changing topics: create or change one (17) or many (18), delete one (215).
//!
//! **Invariant:** a name is checked before it touches a table or a path, and what a request asks is
//! checked as a whole before any of it is done.

use std::{collections::BTreeMap, sync::Arc};

use rmq_protocol::{
    body::{TopicConfig, TopicConfigList, TopicFilterType},
    header::{CreateTopic, TopicHeader},
};
use rmq_types::{TopicName, system};

use super::{body_of, check_not_system};
use crate::{
    answer::{Answer, Failure, success},
    arrival,
    core::{Core, lock},
    handler::Call,
    metadata::{check_attributes, check_settings},
    namespace, pop,
};

/// Most topics of one list.
const LIST_MAX: usize = 50_000;

/// Code 17.
pub(super) fn create(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: CreateTopic<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let system = system::is_system_topic(&header.topic);
    core.topic_creation
        .measure(system, || create_one(core, &header))
}

fn create_one(core: &Core, header: &CreateTopic<'_>) -> Answer {
    let filter = TopicFilterType::from_text(&header.topic_filter_type).ok_or_else(|| {
        Failure::system(format!(
            "the custom field <topicFilterType> is no filter type: {:?}",
            header
                .topic_filter_type
                .chars()
                .take(32)
                .collect::<String>()
        ))
    })?;
    let asked = TopicConfig {
        order: header.order,
        perm: header.perm,
        read_queue_nums: header.read_queue_nums,
        topic_filter_type: filter,
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        write_queue_nums: header.write_queue_nums,
        ..TopicConfig::named(header.topic.as_ref())
    };
    let topic = merged(
        core,
        asked,
        header.attributes.as_deref().unwrap_or_default(),
    )?;
    core.put_topics(vec![topic])?;
    Ok(success())
}

/// Code 18: all topics, or none.
pub(super) fn create_list(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let body = TopicConfigList::from_json(body_of(call, "topicConfigList")?)?;
    if body.topic_config_list.is_empty() {
        return Err(Failure::parameter("topicConfigList is empty"));
    }
    if body.topic_config_list.len() > LIST_MAX {
        return Err(Failure::parameter(format!(
            "topicConfigList has more than {LIST_MAX} topics"
        )));
    }
    core.topic_creation
        .measure(false, || create_all(core, body.topic_config_list))
}

fn create_all(core: &Core, list: Vec<TopicConfig>) -> Answer {
    let mut topics = Vec::with_capacity(list.len());
    for mut asked in list {
        let text = changes(&std::mem::take(&mut asked.attributes));
        let name = asked.topic_name.clone();
        topics.push(merged(core, asked, &text).map_err(|refused| refused.about(&name))?);
    }
    core.put_topics(topics)?;
    Ok(success())
}

/// Attributes of a list's entry as a list of changes; a key without a sign is set.
fn changes(attributes: &BTreeMap<String, String>) -> String {
    let change = |(key, value): (&String, &String)| match key.chars().next() {
        Some('-') => key.clone(),
        Some('+') => format!("{key}={value}"),
        _ => format!("+{key}={value}"),
    };
    attributes.iter().map(change).collect::<Vec<_>>().join(",")
}

/// What becomes of a topic when `asked` and the attribute changes are applied to it.
fn merged(core: &Core, asked: TopicConfig, attributes: &str) -> Result<TopicConfig, Failure> {
    let name = asked.topic_name.as_str();
    TopicName::check_for_client(name)?;
    if [system::RETRY_PREFIX, system::DLQ_PREFIX].contains(&name) {
        return Err(Failure::parameter(format!("topic {name:?} names no group")));
    }
    check_not_system(core, name)?;
    check_settings(&asked)?;
    let current = core.topics.get(name);
    let before = current.as_ref().map(|topic| &topic.attributes);
    let attributes = check_attributes(attributes, before)?;
    let is_mixed = |map: &BTreeMap<String, String>| {
        map.get("message.type").is_some_and(|kind| kind == "MIXED")
    };
    if is_mixed(&attributes)
        && !before.is_some_and(is_mixed)
        && !core.settings.get().enable_mixed_message_type
    {
        return Err(Failure::parameter("MIXED message type is not supported."));
    }
    Ok(TopicConfig {
        attributes,
        ..asked
    })
}

/// Code 215. A topic that is not there is deleted already; remains on the disk go all the same.
pub(super) fn delete(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: TopicHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let topic = header.topic.as_ref();
    TopicName::check(topic)?;
    check_not_system(core, topic)?;
    let mut doomed = vec![topic.to_owned()];
    if core.settings.get().clear_retry_topic_on_delete {
        for group in core.offsets.groups_of(topic) {
            doomed.push(format!("{}{group}_{topic}", system::RETRY_PREFIX));
            doomed.push(format!("{}{group}+{topic}", system::RETRY_PREFIX));
        }
    }
    delete_one(core, topic)?;
    for retry in doomed
        .iter()
        .skip(1)
        .filter(|name| core.topics.contains(name))
    {
        delete_one(core, retry)?;
    }
    core.registrar.refresh();
    Ok(success())
}

/// First the settings, durably: from then on nobody can send. Then all that hangs on the topic, its
/// files last, so that a deletion cut short can be repeated.
fn delete_one(core: &Arc<Core>, topic: &str) -> Result<(), Failure> {
    core.topics.remove(topic, core.now())?;
    pop::topic_deleted(core, topic);
    core.offsets.remove_topic(topic);
    core.stats.forget(topic);
    let waiting = {
        let mut holds = lock(&core.holds);
        let waiting = holds.take_topic(topic);
        core.arrivals.set_waiting(holds.len());
        waiting
    };
    for waiter in waiting {
        arrival::answer_pull(core, &waiter.what);
    }
    core.store.delete_topic(topic).map_err(|error| {
        Failure::system(format!(
            "the files of topic {topic} could not be deleted: {error}"
        ))
    })?;
    tracing::info!(topic, "topic deleted");
    Ok(())
}
