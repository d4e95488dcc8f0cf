//! Messages that come again, and those that came too often: copied to a retry topic or to the
//! dead-letter topic of their group.
//!
//! **Invariant:** exactly the message at the offset is copied, never a neighbour; a copy is told of
//! as done when it counts as stored (with `SYNC_FLUSH`: is on the disk). Bodies are copied once.

use std::sync::Arc;

use rmq_pop::{
    Action, Actions, Copied, Redelivery,
    redelivery::{Destination, RetryRule, destination, retry_max},
};
use rmq_protocol::{
    body::TopicConfig,
    message::{
        Record,
        properties::{self, names},
    },
};
use rmq_store::{Append, ReadRequest, ReadStatus, RecordSlice};
use rmq_types::{CommitLogOffset, QueueOffset, pop::PopTopic, system::dlq_topic};

use super::{Cell, step::locked};
use crate::{
    config::FlushDiskType,
    copy,
    core::Core,
    handler::send,
    metadata::{PERM_READ, PERM_WRITE},
    metrics::MessageType,
    stats::Stat,
};

/// Copies of one append.
const GROUP: usize = 32;
/// Bytes of messages of one append, but for the last of them.
const GROUP_BYTES: usize = 1 << 20;

/// A copy that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Copy {
    Again(Redelivery),
    Dead(QueueOffset),
}

impl Copy {
    pub(super) fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Redeliver(message) => Some(Self::Again(*message)),
            Action::DeadLetter(offset) => Some(Self::Dead(*offset)),
            _ => None,
        }
    }

    fn offset(self) -> QueueOffset {
        match self {
            Self::Again(message) => message.offset,
            Self::Dead(offset) => offset,
        }
    }
}

/// A message and where it goes.
struct Ready {
    copy: Copy,
    slice: RecordSlice,
    topic: String,
    dead: bool,
    reconsume_times: i32,
    text: Vec<u8>,
}

/// Makes the copies and tells the queue how they went.
pub(super) fn make(core: &Core, cell: &Arc<Cell>, copies: &[Copy], more: &mut Actions) {
    let mut rest = copies;
    while !rest.is_empty() {
        let mut ready = Vec::with_capacity(rest.len().min(GROUP));
        let mut outcomes = Vec::new();
        let (mut seen, mut bytes) = (0, 0);
        for &copy in rest.iter().take(GROUP) {
            seen += 1;
            match prepare(core, cell, copy) {
                Ok(one) => {
                    bytes += one.slice.len();
                    ready.push(one);
                }
                Err(copied) => outcomes.push((copy, copied)),
            }
            if bytes >= GROUP_BYTES {
                break;
            }
        }
        append(core, cell, &ready, &mut outcomes);
        locked(core, cell, more, |queue, now, out| {
            for (copy, copied) in outcomes {
                match copy {
                    Copy::Again(message) => queue.redelivered(now, message, copied, out),
                    Copy::Dead(offset) => queue.dead_lettered(now, offset, copied, out),
                }
            }
        });
        rest = &rest[seen..];
    }
}

/// Reads a message and says where it goes; or why it goes nowhere.
fn prepare(core: &Core, cell: &Cell, copy: Copy) -> Result<Ready, Copied> {
    let place = &cell.place;
    let (stored, group) = (place.stored.as_str(), place.group.as_str());
    let Some(config) = core.groups.get(group) else {
        return Err(Copied::Gone);
    };
    let slice = read(core, cell, copy.offset())?;
    let Ok((record, _)) = Record::decode(&slice) else {
        return Err(Copied::Gone);
    };
    let rule = RetryRule {
        max: retry_max(config.retry_max_times),
        v2: core.settings.get().enable_retry_topic_v2,
    };
    let before = u32::try_from(record.reconsume_times).unwrap_or(0);
    let to = match copy {
        Copy::Again(_) => destination(group, stored, before, rule),
        Copy::Dead(_) => Destination::DeadLetter {
            topic: dlq_topic(group),
        },
    };
    let (topic, dead) = match to {
        Destination::Retry { topic, .. } => (topic, false),
        Destination::DeadLetter { topic } => (topic, true),
    };
    let target = own_topic(core, cell, &topic, dead).ok_or(Copied::Failed)?;
    if target.perm & PERM_WRITE == 0 {
        return Err(Copied::Failed);
    }
    let text = properties_of(core, cell, &record, copy, dead);
    Ok(Ready {
        copy,
        reconsume_times: record.reconsume_times.saturating_add(1),
        slice,
        topic,
        dead,
        text,
    })
}

/// The message at exactly this offset.
fn read(core: &Core, cell: &Cell, offset: QueueOffset) -> Result<RecordSlice, Copied> {
    let outcome = core.store.read(&ReadRequest {
        topic: cell.place.stored.as_str(),
        queue_id: cell.place.queue,
        offset: offset.get() as i64,
        max_messages: 1,
        max_bytes: usize::MAX,
        filter: &|_| true,
    });
    let exact = outcome.queue_offsets.first() == Some(&(offset.get() as i64));
    match (outcome.status, outcome.messages.into_iter().next()) {
        (ReadStatus::Found, Some(slice)) if exact => Ok(slice),
        // The queue's file could not be read: perhaps later.
        (ReadStatus::OffsetFoundNull, _) => Err(Copied::Failed),
        _ => Err(Copied::Gone),
    }
}

/// The topic of copies: found or made. Nobody waits for the NameServers here.
fn own_topic(core: &Core, cell: &Cell, topic: &str, dead: bool) -> Option<Arc<TopicConfig>> {
    if let Some(found) = core.topics.get(topic) {
        return Some(found);
    }
    let made = TopicConfig {
        read_queue_nums: 1,
        write_queue_nums: 1,
        perm: PERM_READ | PERM_WRITE,
        ..TopicConfig::named(topic)
    };
    match core.topics.put(vec![made], core.now()) {
        Ok(_) => core.registrar.refresh(),
        Err(error) => {
            tracing::warn!(topic, %error, "a topic of copies was not made and will be tried again");
            return None;
        }
    }
    if !dead {
        // From its first message on, and known to whoever waits.
        let group = cell.place.group.as_str();
        if core.offsets.committed(topic, group, 0).is_none() {
            core.offsets.commit(topic, group, 0, 0);
        }
    }
    core.topics.get(topic)
}

fn properties_of(core: &Core, cell: &Cell, record: &Record<'_>, copy: Copy, dead: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(record.properties.len() + 128);
    let dropped = [names::WAIT, names::DELAY, names::POP_CK];
    properties::copy_without(record.properties, &dropped, &mut text);
    if let Copy::Again(message) = copy
        && properties::get(record.properties, names::FIRST_POP_TIME).is_none()
    {
        let time = message.pop_time.millis().to_string();
        properties::push(&mut text, names::FIRST_POP_TIME, time.as_bytes());
    }
    if properties::get(record.properties, names::ORIGIN_MESSAGE_ID).is_none() {
        let mut id = String::new();
        let offset = CommitLogOffset::new(record.physical_offset as u64);
        send::offset_id(core, offset).write(&mut id);
        properties::push(&mut text, names::ORIGIN_MESSAGE_ID, id.as_bytes());
    }
    if dead && properties::get(record.properties, names::DLQ_ORIGIN_TOPIC).is_none() {
        let topic = cell.place.topic.as_str();
        properties::push(&mut text, names::DLQ_ORIGIN_TOPIC, topic.as_bytes());
    }
    properties::push(&mut text, names::WAIT, b"false");
    text
}

fn append(core: &Core, cell: &Cell, ready: &[Ready], outcomes: &mut Vec<(Copy, Copied)>) {
    let mut group = Vec::with_capacity(ready.len());
    let mut appended = Vec::with_capacity(ready.len());
    for one in ready {
        if !one.dead {
            make_reader(core, cell, &one.topic);
        }
        // It was read a moment ago, from the same bytes.
        let Ok((record, _)) = Record::decode(&one.slice) else {
            outcomes.push((one.copy, Copied::Gone));
            continue;
        };
        appended.push(one);
        group.push(Append {
            reconsume_times: one.reconsume_times,
            prepared_transaction_offset: 0,
            ..copy::of(&record, (&one.topic, 0), &one.text)
        });
    }
    let mut results = Vec::with_capacity(group.len());
    core.store.append(&group, &mut results);
    let sync = core.settings.get().flush_disk_type == FlushDiskType::Sync;
    let stored = !sync || core.store.flush().is_ok();
    for (one, result) in appended.into_iter().zip(results) {
        let copied = match result {
            Ok(done) if stored => {
                count(core, cell, one, u64::from(done.bytes));
                Copied::Done
            }
            Ok(_) => Copied::Failed,
            Err(error) => {
                let (topic, from) = (&one.topic, &cell.place.stored);
                tracing::warn!(topic, %from, %error, "a message was not sent again yet");
                Copied::Failed
            }
        };
        outcomes.push((one.copy, copied));
    }
}

/// The retry topic's own queue, through which arrivals there reach who waits.
fn make_reader(core: &Core, cell: &Cell, retry: &str) {
    let group = cell.place.group.as_str();
    if core.pops.cell(retry, group, 0).is_none() {
        let kind = PopTopic::of(retry);
        core.pops
            .cell_or_made((cell.place.topic.as_str(), kind), group, 0);
    }
}

fn count(core: &Core, cell: &Cell, one: &Ready, bytes: u64) {
    core.stats
        .stored(&one.topic, MessageType::Normal, (1, bytes));
    let counters = &core.pops.counters;
    if one.dead {
        let key = format!("{}@{}", cell.place.topic, cell.place.group);
        core.stats.add(Stat::DlqPutNums, &key, 1);
    } else {
        counters.redelivered(&cell.place);
    }
}
