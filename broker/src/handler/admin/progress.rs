//! How far groups have come: one group (208), all groups (317), in time (303), corrections for
//! replicas of a group (308), the raw tables (43 and 45).

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use rmq_protocol::{
    body::{
        ConsumeStats, ConsumeStatsList, ConsumeTimeSpan, CorrectionOffsets, MessageQueue,
        OffsetWrapper, QueueTimeSpan,
    },
    header::{GetBrokerConsumeStats, GetConsumeStats, QueryConsumeTimeSpan, QueryCorrectionOffset},
};
use rmq_types::Timestamp;

use super::is_left_behind;
use crate::{
    answer::{Answer, success},
    core::Core,
    handler::Call,
    namespace,
    pop::GroupFigures,
};

/// Most topics of one `topicList`.
const TOPICS_MAX: usize = 10_000;

/// Code 208. A group that never consumed has an empty table.
pub(super) fn of_group(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GetConsumeStats<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let group = header.consumer_group.as_ref();
    let list = header.topic_list.as_deref().unwrap_or_default();
    let listed: Vec<&str> = list
        .split(';')
        .map(str::trim)
        .filter(|topic| !topic.is_empty())
        .take(TOPICS_MAX)
        .collect();
    let mut topics: BTreeSet<String> = BTreeSet::new();
    if listed.is_empty() {
        let mut topic = header.topic.unwrap_or_default();
        namespace::join(&call.header.ext, &mut topic);
        if topic.trim().is_empty() {
            topics.extend(core.offsets.topics_of(group));
        } else {
            topics.insert(topic.into_owned());
        }
        topics.retain(|topic| !is_left_behind(core, group, topic));
    } else {
        topics.extend(listed.into_iter().map(str::to_owned));
    }
    let mut stats = ConsumeStats::default();
    for topic in &topics {
        let Some(config) = core.topics.get(topic) else {
            continue;
        };
        add_queues(core, &mut stats, (topic, group), config.read_queue_nums);
    }
    Ok(success().with_body(stats.to_json()))
}

fn add_queues(core: &Core, stats: &mut ConsumeStats, (topic, group): (&str, &str), queues: i32) {
    let committed = core.offsets.of_group(topic, group);
    let popped = core.pops.of_group(topic, group);
    for queue_id in 0..queues {
        let queue = MessageQueue {
            broker_name: core.identity.name.to_string(),
            queue_id,
            topic: topic.to_owned(),
        };
        let id = queue_id as u32;
        let consumer_offset = committed.get(&queue_id).copied().unwrap_or(0).max(0);
        let pulled = core.offsets.pulled(topic, group, queue_id).unwrap_or(0);
        let end = core.store.max_queue_offset(topic, id).unwrap_or(0);
        let popped = popped.iter().find(|one| one.queue == id);
        let (consumer_offset, pulled) = match popped {
            // What is in flight counts as not consumed, whether a record holds it or not.
            Some(one) => shown(one, consumer_offset, end),
            None => (consumer_offset, pulled),
        };
        let last = core.store.store_time_of(topic, id, consumer_offset - 1);
        let entry = OffsetWrapper {
            broker_offset: end,
            consumer_offset,
            last_timestamp: last.map_or(0, Timestamp::millis),
            pull_offset: pulled.max(consumer_offset),
        };
        stats.offset_table.insert(queue, entry);
    }
    let key = format!("{topic}@{group}");
    let minute = core.stats.view(core.now(), "GROUP_GET_NUMS", &key);
    stats.consume_tps += minute.map_or(0.0, |data| data.stats_minute.tps);
}

/// The offsets whose differences are what a pop group has in flight and not consumed.
fn shown(of: &GroupFigures, committed: i64, end: i64) -> (i64, i64) {
    let given = end - of.ready(Some(committed), end);
    ((given - of.in_flight).max(0), given.max(0))
}

/// Code 317.
pub(super) fn of_all_groups(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: GetBrokerConsumeStats = call.decode()?;
    let mut body = ConsumeStatsList {
        broker_addr: core.identity.advertised(),
        ..ConsumeStatsList::default()
    };
    for group in core.groups.snapshot().1 {
        let group = group.group_name.as_str();
        let mut list = Vec::new();
        for topic in core.offsets.topics_of(group) {
            let Some(config) = core.topics.get(&topic) else {
                continue;
            };
            if (header.is_order && !config.order) || is_left_behind(core, group, &topic) {
                continue;
            }
            let mut stats = ConsumeStats::default();
            add_queues(core, &mut stats, (&topic, group), config.write_queue_nums);
            for entry in stats.offset_table.values() {
                body.total_diff += entry.broker_offset - entry.consumer_offset;
                body.total_inflight_diff += entry.pull_offset - entry.consumer_offset;
            }
            list.push(stats);
        }
        body.consume_stats_list
            .push(BTreeMap::from([(group.to_owned(), list)]));
    }
    Ok(success().with_body(body.to_json()))
}

/// Code 303.
pub(super) fn time_span(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueryConsumeTimeSpan<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.group);
    let config = core.topic(&header.topic)?;
    let spans = (0..config.write_queue_nums)
        .map(|queue_id| span(core, &header.topic, &header.group, queue_id));
    Ok(success().with_body(
        ConsumeTimeSpan {
            consume_time_span_set: spans.collect(),
        }
        .to_json(),
    ))
}

fn span(core: &Core, topic: &str, group: &str, queue_id: i32) -> QueueTimeSpan {
    let id = queue_id as u32;
    let time = |index: i64| {
        core.store
            .store_time_of(topic, id, index)
            .map(Timestamp::millis)
    };
    let min = core.store.min_queue_offset(topic, id).unwrap_or(0);
    let max = core.store.max_queue_offset(topic, id).unwrap_or(0);
    let oldest = time(min).unwrap_or(-1);
    let committed = core
        .offsets
        .committed(topic, group, queue_id)
        .unwrap_or(0)
        .max(0);
    let consumed = if committed > 0 {
        time(committed - 1)
    } else {
        None
    };
    let next = if committed < max {
        time(committed.max(min))
    } else {
        None
    };
    QueueTimeSpan {
        consume_time_stamp: consumed.unwrap_or(oldest),
        delay_time: next.map_or(0, |next| core.now().millis().saturating_sub(next).max(0)),
        max_time_stamp: time(max - 1).unwrap_or(-1),
        message_queue: MessageQueue {
            broker_name: core.identity.name.to_string(),
            queue_id,
            topic: topic.to_owned(),
        },
        min_time_stamp: oldest,
    }
}

/// Code 308: per queue the least offset of all groups; none is due where the compared group is
/// behind it (Java's `Long.MAX_VALUE`).
pub(super) fn corrections(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueryCorrectionOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.compare_group);
    let topic = header.topic.as_ref();
    let left_out: HashSet<&str> = header
        .filter_groups
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    let mut least: BTreeMap<i32, i64> = BTreeMap::new();
    for group in core.offsets.groups_of(topic) {
        if left_out.contains(group.as_str()) {
            continue;
        }
        for (queue, offset) in core.offsets.of_group(topic, &group) {
            let min = core
                .store
                .min_queue_offset(topic, queue as u32)
                .unwrap_or(0);
            if offset >= min {
                least
                    .entry(queue)
                    .and_modify(|old| *old = (*old).min(offset))
                    .or_insert(offset);
            }
        }
    }
    for (queue, offset) in core.offsets.of_group(topic, &header.compare_group) {
        if let Some(least) = least.get_mut(&queue).filter(|least| **least > offset) {
            *least = i64::MAX;
        }
    }
    Ok(success().with_body(
        CorrectionOffsets {
            correction_offsets: least,
        }
        .to_json(),
    ))
}

/// Code 43.
pub(super) fn all_offsets(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let mut table = core.offsets.snapshot();
    table.pull_offset_table.clear();
    table.reset_offset_table.clear();
    Ok(success().with_body(table.to_json()))
}

/// Code 45.
pub(super) fn delay_offsets(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    Ok(success().with_body(core.delays.snapshot().to_json()))
}
