//! One pop: its queues one after the other, until it has enough.
//!
//! **Invariant:** a queue that was begun is finished or given up on every way out. Bytes of an
//! answer are bounded: no further message is read once a pull's worth is there.

use std::sync::Arc;

use rmq_pop::{
    Batch, Begin, Bounds, Init, Invisible, Nothing, OrderAsk, PopAsk, Popped, Read, ReadOrder,
    plan::{PlanAsk, Source, plan},
    redelivery::retry_max,
};
use rmq_protocol::body::{SubscriptionGroupConfig, TopicConfig};
use rmq_store::{ReadOutcome, ReadRequest, ReadStatus, RecordSlice};
use rmq_types::{
    CommitLogOffset, QueueOffset,
    pop::{POP_MESSAGES_MAX, PopTopic, REVIVE_QUEUES},
};

use super::{Cell, figures::note_taken, step, wake_cell};
use crate::{core::Core, handler::pull, metadata::PERM_READ, session::subscription::TagFilter};

/// Reads of one queue in one pop: more only when a filter leaves everything out.
const ROUNDS: usize = 8;

/// What a client wants.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The topic.
    pub(crate) topic: Arc<TopicConfig>,
    /// The group.
    pub(crate) group: Arc<SubscriptionGroupConfig>,
    /// The queue; `None` for all.
    pub(crate) queue: Option<u32>,
    /// Which messages of the topic itself.
    pub(crate) filter: TagFilter,
    /// In order.
    pub(crate) order: bool,
    /// The client's attempt, of ordered pops.
    pub(crate) attempt: Option<Box<str>>,
    /// Messages, or to hear of them.
    pub(crate) kind: WishKind,
}

/// What is done with what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WishKind {
    /// It is given out.
    Pop {
        /// Most messages.
        max: usize,
        /// For how long they are invisible.
        invisible: Invisible,
        /// Where a new group begins.
        init: Init,
    },
    /// The client is told that there is something.
    Notification,
}

impl Wish {
    fn order_ask(&self) -> Option<OrderAsk<'_>> {
        self.order.then(|| OrderAsk {
            attempt: self.attempt.as_deref(),
            retry_max: retry_max(self.group.retry_max_times),
        })
    }
}

/// What a pop got.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Messages, by queue.
    pub(crate) batches: Vec<TakenBatch>,
    /// Messages that were left in the queues looked at.
    pub(crate) rest: i64,
    /// How the last read went.
    pub(crate) status: ReadStatus,
    /// Messages in all.
    pub(crate) count: usize,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Revive queue of its handles.
    pub(crate) revive_queue: u8,
}

/// What it got of one queue.
#[derive(Debug)]
pub(crate) struct TakenBatch {
    /// Which of the topics.
    pub(crate) topic: PopTopic,
    /// The queue.
    pub(crate) queue: u32,
    /// What the machine says of them.
    pub(crate) batch: Batch,
    /// The records, in the order of `batch.messages`.
    pub(crate) records: Vec<RecordSlice>,
}

fn sources(core: &Core, wish: &Wish) -> impl Iterator<Item = Source> {
    let (topic, group) = (&wish.topic.topic_name, &wish.group.group_name);
    let retry = |kind: PopTopic| {
        if wish.order {
            return 0;
        }
        let found = core.topics.get(&kind.stored_topic(topic, group));
        let readable = found.filter(|found| found.perm & PERM_READ != 0);
        readable.map_or(0, |found| found.read_queue_nums.max(0) as u32)
    };
    plan(PlanAsk {
        queue: wish.queue,
        order: wish.order,
        queues: wish.topic.read_queue_nums.max(0) as u32,
        retry_v1_queues: retry(PopTopic::RetryV1),
        retry_v2_queues: retry(PopTopic::RetryV2),
        retry_percent: core.settings.get().pop_from_retry_probability.get() as u32,
        random: core.pops.random(),
    })
}

fn cell_of(core: &Core, wish: &Wish, source: Source) -> Option<Arc<Cell>> {
    let (topic, group) = (&wish.topic.topic_name, &wish.group.group_name);
    core.pops
        .cell_or_made((topic, source.topic), group, source.queue)
}

/// What the store and the offset table say of a queue.
fn bounds(core: &Core, cell: &Cell, stored: Option<i64>) -> Bounds {
    let place = &cell.place;
    let (topic, queue) = (place.stored.as_str(), place.queue);
    let offset = |value: i64| QueueOffset::new(value.max(0) as u64);
    let min = core.store.min_queue_offset(topic, queue).unwrap_or(0);
    let max = core.store.max_queue_offset(topic, queue).unwrap_or(0);
    let is_near = |first: CommitLogOffset| {
        core.store.max_offset().get().saturating_sub(first.get()) < core.memory_window
    };
    // A queue that cannot be read is no new one: to begin at its end would pass messages over.
    let first_in_memory = stored.is_none()
        && core.settings.get().init_pop_offset_by_check_msg_in_mem
        && core
            .store
            .log_offset_of(topic, queue, 0)
            .map_or(true, |first| first.is_some_and(is_near));
    Bounds {
        min: offset(min),
        max: offset(max),
        stored: stored.map(offset),
        first_in_memory,
    }
}

/// Pops.
pub(crate) fn take(core: &Core, wish: &Wish) -> Taken {
    let turn = core.pops.turn.load(std::sync::atomic::Ordering::Relaxed);
    let mut taken = Taken {
        batches: Vec::new(),
        rest: 0,
        status: ReadStatus::NoMessageInQueue,
        count: 0,
        bytes: 0,
        revive_queue: (turn % REVIVE_QUEUES) as u8,
    };
    let WishKind::Pop { max, .. } = wish.kind else {
        return taken;
    };
    let max = max.min(POP_MESSAGES_MAX);
    let most_bytes = core.settings.get().max_transfer_bytes_in_memory.get() as usize;
    for source in sources(core, wish) {
        if taken.count >= max || taken.bytes >= most_bytes {
            break;
        }
        if let Some(cell) = cell_of(core, wish, source) {
            take_from(core, wish, (&cell, source), &mut taken);
        }
    }
    if taken.count > 0 {
        note_taken(core, wish, &taken);
    }
    taken
}

fn take_from(core: &Core, wish: &Wish, (cell, source): (&Arc<Cell>, Source), taken: &mut Taken) {
    let WishKind::Pop {
        max,
        invisible,
        init,
    } = wish.kind
    else {
        return;
    };
    let ask = PopAsk {
        max: max.min(POP_MESSAGES_MAX) - taken.count,
        invisible,
        init: if source.topic.is_retry() {
            Init::Min
        } else {
            init
        },
        revive_queue: taken.revive_queue,
        order: wish.order_ask(),
    };
    for _ in 0..ROUNDS {
        let order = match begin(core, cell, &ask) {
            (Begin::Read(order), _) => order,
            (Begin::Nothing(why), rest) => {
                if why == Nothing::Locked {
                    cell.note_missed();
                }
                taken.rest += rest;
                return;
            }
        };
        let filter = if source.topic.is_retry() {
            &TagFilter::All
        } else {
            &wish.filter
        };
        let outcome = read(core, cell, &order, (filter, taken.bytes));
        taken.status = outcome.status;
        let popped = finish(core, cell, &order, &outcome);
        if cell.take_missed() {
            wake_cell(core, cell);
        }
        match popped {
            Some((Popped::Messages(batch), rest)) => {
                taken.rest += rest;
                keep(taken, source, batch, outcome);
                return;
            }
            Some((Popped::Again, _)) => {}
            Some((Popped::Nothing, rest)) => {
                taken.rest += rest;
                return;
            }
            None => return,
        }
    }
}

/// Begins, a pending reset first; also says how many messages the queue has to give.
fn begin(core: &Core, cell: &Arc<Cell>, ask: &PopAsk<'_>) -> (Begin, i64) {
    let place = &cell.place;
    let (reset, stored) = core.offsets.place_for_pop(
        place.stored.as_str(),
        place.group.as_str(),
        place.queue as i32,
    );
    let bounds = bounds(core, cell, stored);
    step(core, cell, |queue, now, out| {
        if let Some(to) = reset {
            queue.reset(QueueOffset::new(to.max(0) as u64), out);
        }
        let begun = queue.begin_pop(now, ask, &bounds, out);
        let position = queue.figures().position.get();
        let rest = bounds.max.get().saturating_sub(position);
        (begun, if ask.order.is_some() { 0 } else { rest as i64 })
    })
}

fn read(
    core: &Core,
    cell: &Cell,
    order: &ReadOrder,
    (filter, bytes): (&TagFilter, usize),
) -> ReadOutcome {
    let most = core.settings.get().max_transfer_bytes_in_memory.get() as usize;
    let mut outcome = core.store.read(&ReadRequest {
        topic: cell.place.stored.as_str(),
        queue_id: cell.place.queue,
        offset: order.from.get() as i64,
        max_messages: order.max,
        max_bytes: most.saturating_sub(bytes),
        filter: &|code| filter.admits_code(code),
    });
    if let TagFilter::Tags(_) = filter {
        pull::recheck(&mut outcome, filter);
    }
    outcome
}

/// `None`: the pop took too long, its messages are another one's.
fn finish(
    core: &Core,
    cell: &Arc<Cell>,
    order: &ReadOrder,
    outcome: &ReadOutcome,
) -> Option<(Popped, i64)> {
    let offsets: Vec<QueueOffset> = outcome
        .queue_offsets
        .iter()
        .map(|&offset| QueueOffset::new(offset as u64))
        .collect();
    let read = Read {
        offsets: &offsets,
        next: QueueOffset::new(outcome.next.max(0) as u64),
    };
    step(core, cell, |queue, now, out| {
        let popped = queue.finish_pop(now, order.ticket, &read, out).ok()?;
        let position = queue.figures().position.get();
        Some((popped, outcome.max.saturating_sub(position as i64).max(0)))
    })
}

fn keep(taken: &mut Taken, source: Source, batch: Batch, outcome: ReadOutcome) {
    let given = |offset: i64| {
        let offset = QueueOffset::new(offset as u64);
        batch.messages.binary_search(&offset).is_ok()
    };
    let read = outcome.messages.into_iter().zip(outcome.queue_offsets);
    let records: Vec<RecordSlice> = read
        .filter(|&(_, offset)| given(offset))
        .map(|(record, _)| record)
        .collect();
    taken.count += records.len();
    taken.bytes += records.iter().map(|record| record.len()).sum::<usize>();
    taken.batches.push(TakenBatch {
        topic: source.topic,
        queue: source.queue,
        batch,
        records,
    });
}

/// Whether a pop would find something to read.
pub(crate) fn is_ready(core: &Core, wish: &Wish) -> bool {
    sources(core, wish).any(|source| {
        let Some(cell) = cell_of(core, wish, source) else {
            return false;
        };
        let place = &cell.place;
        let (topic, group) = (place.stored.as_str(), place.group.as_str());
        let (pending, stored) = core.offsets.reset_pending(topic, group, place.queue as i32);
        if pending {
            return true;
        }
        let bounds = bounds(core, &cell, stored);
        let now = core.pops.now(core);
        let state = cell.lock();
        if state.queue.is_locked(now) {
            cell.note_missed();
            return false;
        }
        state.queue.is_ready(now, &bounds, wish.order_ask())
    })
}

/// Reads what a pop would give, without giving it out.
pub(crate) fn peek(core: &Core, wish: &Wish) -> (Vec<RecordSlice>, i64) {
    let WishKind::Pop { max, .. } = wish.kind else {
        return (Vec::new(), 0);
    };
    let (mut records, mut rest, mut bytes) = (Vec::new(), 0, 0);
    for source in sources(core, wish) {
        let Some(cell) = cell_of(core, wish, source) else {
            continue;
        };
        let place = &cell.place;
        let (topic, group) = (place.stored.as_str(), place.group.as_str());
        let stored = core.offsets.committed(topic, group, place.queue as i32);
        let from = {
            let bounds = bounds(core, &cell, stored);
            cell.lock().queue.peek_from(&bounds)
        };
        let outcome = core.store.read(&ReadRequest {
            topic,
            queue_id: place.queue,
            offset: from.get() as i64,
            max_messages: max - records.len(),
            max_bytes: pull::ANSWER_BYTES_MAX.saturating_sub(bytes),
            filter: &|_| true,
        });
        bytes += outcome.bytes;
        rest += (outcome.max - outcome.next).max(0);
        records.extend(outcome.messages);
        if records.len() >= max || bytes > pull::ANSWER_BYTES_MAX / 2 {
            break;
        }
    }
    (records, rest)
}
