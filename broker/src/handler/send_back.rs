//! A consumer hands a message back (code 36): it comes again through `%RETRY%group` after a delay
//! that grows, and goes to `%DLQ%group` when it was tried too often.

use std::sync::Arc;

use rmq_protocol::{
    body::{SubscriptionGroupConfig, TopicConfig},
    header::SendBack,
    message::{
        Record,
        properties::{self, names},
    },
    remoting::{VERSION_MAX_RECONSUME, response_code},
};
use rmq_store::Append;
use rmq_types::{CommitLogOffset, system};

use super::{Call, send};
use crate::{
    answer::{Answer, Failure, success},
    copy,
    core::Core,
    metadata::{PERM_READ, PERM_WRITE},
    namespace,
    stats::Stat,
};

/// Level of the first redelivery.
const FIRST_LEVEL: i32 = 3;

/// How often a message of a group may come: the request's own limit counts from `V3_4_9` on.
pub(crate) fn retry_limit(
    version: i32,
    asked: Option<i32>,
    config: &SubscriptionGroupConfig,
) -> i32 {
    match asked {
        Some(max) if version >= VERSION_MAX_RECONSUME => max,
        _ => config.retry_max_times,
    }
}

/// Makes a dead-letter topic; tools read it, so it can be read and written.
pub(crate) fn make_dead_letter_topic(
    core: &Core,
    topic: &str,
) -> Result<Arc<TopicConfig>, Failure> {
    core.own_topic(topic, 1, PERM_READ | PERM_WRITE)
}

/// Code 36.
pub(crate) fn send_back(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: SendBack<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group);
    let group = header.group.as_ref();
    let config = core
        .groups
        .get(group)
        .ok_or_else(|| Failure::no_group(group))?;
    if core.settings.get().broker_permission.get() as i32 & PERM_WRITE == 0 {
        return Err(Failure::no_permission("the broker is not writable"));
    }
    if config.retry_queue_nums <= 0 {
        return Ok(success());
    }
    let offset = u64::try_from(header.offset).map_err(|_| {
        Failure::system(format!("look message by offset failed, {}", header.offset))
    })?;
    let slice = core
        .store
        .read_at(CommitLogOffset::new(offset))
        .map_err(|error| Failure::system(format!("look message by offset failed, {error}")))?;
    let (record, _) = Record::decode(&slice)
        .map_err(|error| Failure::system(format!("look message by offset failed, {error}")))?;
    let limit = retry_limit(call.header.version, header.max_reconsume_times, &config);
    let dead = header.delay_level < 0 || record.reconsume_times >= limit;
    let (topic, queues) = if dead {
        (system::dlq_topic(group), 1)
    } else {
        (system::retry_topic(group), config.retry_queue_nums)
    };
    let target = core.own_topic(&topic, queues, PERM_READ | PERM_WRITE)?;
    if target.perm & PERM_WRITE == 0 {
        return Err(Failure::no_permission(format!(
            "the topic[{topic}] sending message is forbidden"
        )));
    }
    let queue = (offset as u32) % u32::try_from(target.write_queue_nums).unwrap_or(1).max(1);
    store_copy(
        core,
        call,
        &record,
        (&topic, queue),
        if dead { None } else { Some(header.delay_level) },
    )?;
    let origin = properties::get_str(record.properties, names::RETRY_TOPIC);
    let key = format!("{}@{group}", origin.unwrap_or(record.topic));
    core.stats.add(Stat::SendBackNums, &key, 1);
    if dead {
        core.stats.add(Stat::DlqPutNums, &key, 1);
    }
    Ok(success())
}

fn store_copy(
    core: &Core,
    call: &Call<'_>,
    record: &Record<'_>,
    (topic, queue_id): (&str, u32),
    level: Option<i32>,
) -> Result<(), Failure> {
    let mut text = Vec::with_capacity(record.properties.len() + 256);
    let dropped = [
        names::WAIT,
        names::DELAY,
        names::REAL_TOPIC,
        names::REAL_QID,
    ];
    properties::copy_without(record.properties, &dropped, &mut text);
    if properties::get(record.properties, names::RETRY_TOPIC).is_none() {
        properties::push(&mut text, names::RETRY_TOPIC, record.topic.as_bytes());
    }
    if properties::get(record.properties, names::ORIGIN_MESSAGE_ID).is_none() {
        let mut id = String::new();
        let offset = CommitLogOffset::new(record.physical_offset as u64);
        send::offset_id(core, offset).write(&mut id);
        properties::push(&mut text, names::ORIGIN_MESSAGE_ID, id.as_bytes());
    }
    if level.is_none() {
        let origin = properties::get(record.properties, names::RETRY_TOPIC);
        let origin = origin.unwrap_or(record.topic.as_bytes()).to_vec();
        if properties::get(record.properties, names::DLQ_ORIGIN_TOPIC).is_none() {
            properties::push(&mut text, names::DLQ_ORIGIN_TOPIC, &origin);
        }
    }
    properties::push(&mut text, names::WAIT, b"false");
    let target = (topic, queue_id);
    let rest = level.map(|level| {
        let level = match level {
            0 => FIRST_LEVEL.saturating_add(record.reconsume_times),
            level => level,
        };
        // A Java broker that opens this folder reads the due time from the level.
        let level = core.delays.clamp(level).max(1);
        properties::push(&mut text, names::DELAY, level.to_string().as_bytes());
        send::rest(&core.delays, level, target, &mut text)
    });
    let mut append = Append {
        reconsume_times: record.reconsume_times.saturating_add(1),
        prepared_transaction_offset: 0,
        ..copy::of(record, target, &text)
    };
    if let Some(rest) = &rest {
        append.topic = rest.topic;
        append.queue_id = rest.queue_id;
    }
    let appended = core.store.append_one(&append).map_err(|error| {
        tracing::warn!(topic, peer = %call.conn.peer_addr(), %error, "a message was not sent back");
        Failure::new(response_code::SYSTEM_ERROR, error.to_string())
    })?;
    if let Some(rest) = rest {
        core.stats.add(Stat::TopicPutNums, rest.topic, 1);
        let bytes = u64::from(appended.bytes);
        core.stats.add(Stat::TopicPutSize, rest.topic, bytes);
    }
    Ok(())
}
