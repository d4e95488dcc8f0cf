//! A broker in miniature around the machine: logs, offsets, the revive topic, marks; and the
//! reference model that watches what is given out.
//!
//! It keeps the promises that a shell has to keep: actions in order, a record's answer after the
//! record, a mark before an answer. Everything in `Disk` survives a crash, nothing else does.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this module"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rmq_pop::{
    AckOutcome, Action, Actions, Begin, Bounds, ChangeAsk, Copied, Handle, InFlightMark, Init,
    Invisible, Nothing, Now, Options, OrderAck, OrderAsk, OrderState, PopAsk, Popped, Queue, Read,
    Recovery, ReviveQueue, SavedCheckpoint,
    redelivery::{Destination, RetryRule, destination},
};
use rmq_types::{Moment, QueueOffset, Timestamp};

/// Where the wall clock stands when the steady clock begins.
pub const WALL: i64 = 1_700_000_000_000;
/// Most messages that one read looks at.
const SCAN: u64 = 6;
const GROUP: &str = "g";
const TOPIC: &str = "t";
/// The queue number that stands for queue 0 of the retry topic.
pub const RETRY: u32 = u32::MAX;

/// A defect put into the shell on purpose, to see the model find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A redelivery is reported as done and was not.
    LosesRedelivery,
    /// Time in the machine runs ahead.
    TicksEarly,
    /// One offset more is committed than the machine said.
    CommitsAhead,
    /// The mark is not kept.
    ForgetsMarks,
    /// Records are reported as written and are not.
    LosesRecords,
    /// Ordered pops are done without order.
    IgnoresOrder,
}

#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub id: u32,
    pub reconsume_times: u32,
    pub wanted: bool,
}

#[derive(Clone, Debug)]
pub enum Record {
    Checkpoint {
        queue: u32,
        start: u64,
        pop_time: i64,
        invisible: u32,
        messages: Vec<(u64, bool)>,
    },
    Acks {
        queue: u32,
        start: u64,
        pop_time: i64,
        messages: Vec<u64>,
    },
}

/// What survives a crash.
#[derive(Default)]
pub struct Disk {
    pub logs: BTreeMap<u32, Vec<Message>>,
    /// First offset that is still there.
    pub min: u64,
    pub offsets: BTreeMap<u32, u64>,
    pub revive: Vec<Record>,
    pub revive_from: u64,
    pub marks: BTreeMap<u32, InFlightMark>,
    pub order: BTreeMap<u32, OrderState>,
    pub dead: BTreeSet<u32>,
    /// Queue and offset of messages whose copy is durable.
    pub copied: BTreeSet<(u32, u64)>,
}

/// A message that a client holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub queue: u32,
    pub id: u32,
    pub handle: Handle,
}

/// What the model knows of one message.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    visible_at: u64,
    acked: bool,
    ever_acked: bool,
    deliveries: u32,
    /// A copy was made and the process died before it knew: there are two now.
    doubled: bool,
}

pub struct World {
    pub disk: Disk,
    pub steady: u64,
    pub skew: i64,
    pub queues: BTreeMap<u32, Queue>,
    pub revive: ReviveQueue,
    pub pending: VecDeque<(u32, Action)>,
    pub held: Vec<Held>,
    pub options: Options,
    pub ordered: bool,
    pub retry_max: Option<u32>,
    pub bug: Bug,
    pub wakes: usize,
    pub fail_writes: bool,
    pub batches: Vec<rmq_pop::Batch>,
    fates: BTreeMap<u32, Fate>,
    next_id: u32,
    exact_times: bool,
}

pub fn small() -> Options {
    Options {
        stay_millis: 3000,
        buffered_max: 4,
        tick_actions_max: 3,
        in_flight_max: 40,
        ..Options::default()
    }
}

impl World {
    pub fn new(options: Options, ordered: bool, queues: u32) -> Self {
        let mut world = Self {
            disk: Disk::default(),
            steady: 0,
            skew: 0,
            queues: BTreeMap::new(),
            revive: ReviveQueue::default(),
            pending: VecDeque::new(),
            held: Vec::new(),
            options,
            ordered,
            retry_max: None,
            bug: Bug::None,
            wakes: 0,
            fail_writes: false,
            batches: Vec::new(),
            fates: BTreeMap::new(),
            next_id: 0,
            exact_times: true,
        };
        for queue in (0..queues).chain([RETRY]) {
            world.disk.logs.insert(queue, Vec::new());
            world.queues.insert(queue, Queue::new(options));
        }
        world
    }

    pub fn now(&self) -> Now {
        Now {
            wall: Timestamp::from_millis(WALL + self.steady as i64 + self.skew),
            steady: Moment::from_millis(self.steady),
        }
    }

    pub fn send(&mut self, queue: u32, wanted: bool) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        if wanted {
            self.fates.insert(id, Fate::default());
        }
        let message = Message {
            id,
            reconsume_times: 0,
            wanted,
        };
        self.disk.logs.get_mut(&queue).unwrap().push(message);
        id
    }

    pub fn send_many(&mut self, queue: u32, count: usize) {
        for _ in 0..count {
            self.send(queue, true);
        }
    }

    fn with<R>(&mut self, queue: u32, f: impl FnOnce(&mut Queue, Now, &mut Actions) -> R) -> R {
        let now = self.now();
        let mut out = Actions::new();
        let result = f(self.queues.get_mut(&queue).unwrap(), now, &mut out);
        for action in out {
            match action {
                Action::Commit(offset) => {
                    let ahead = u64::from(self.bug == Bug::CommitsAhead);
                    self.disk.offsets.insert(queue, offset.get() + ahead);
                }
                Action::Resolved { revive_offset, .. } => {
                    self.revive.resolved(revive_offset);
                    if let Some(from) = self.revive.advance() {
                        self.disk.revive_from = from.get();
                    }
                }
                Action::Wake => self.wakes += 1,
                action => self.pending.push_back((queue, action)),
            }
        }
        result
    }

    pub fn bounds(&self, queue: u32) -> Bounds {
        let log = &self.disk.logs[&queue];
        Bounds {
            min: QueueOffset::new(self.disk.min.min(log.len() as u64)),
            max: QueueOffset::new(log.len() as u64),
            stored: self
                .disk
                .offsets
                .get(&queue)
                .map(|&one| QueueOffset::new(one)),
            first_in_memory: true,
        }
    }

    pub fn ask<'a>(&self, max: usize, invisible: i64, attempt: Option<&'a str>) -> PopAsk<'a> {
        PopAsk {
            max,
            invisible: Invisible::of_pop(invisible).unwrap(),
            init: Init::Min,
            revive_queue: 0,
            order: (self.ordered && self.bug != Bug::IgnoresOrder).then_some(OrderAsk {
                attempt,
                retry_max: self.retry_max,
            }),
        }
    }

    pub fn begin(&mut self, queue: u32, ask: &PopAsk<'_>) -> Begin {
        let bounds = self.bounds(queue);
        self.with(queue, |machine, now, out| {
            machine.begin_pop(now, ask, &bounds, out)
        })
    }

    /// Offsets that a read of the log finds, and where the next read begins.
    pub fn read(&self, queue: u32, order: &rmq_pop::ReadOrder) -> (Vec<QueueOffset>, QueueOffset) {
        let log = &self.disk.logs[&queue];
        let end = log.len() as u64;
        let mut at = order.from.get().max(self.disk.min);
        if at > end {
            return (Vec::new(), QueueOffset::new(end));
        }
        let until = order.until.map_or(end, |until| until.get().min(end));
        let until = until.min(at + SCAN);
        let mut found = Vec::new();
        while at < until && found.len() < order.max {
            if log[at as usize].wanted {
                found.push(QueueOffset::new(at));
            }
            at += 1;
        }
        (found, QueueOffset::new(at))
    }

    /// Pops; gives what a client gets.
    pub fn pop(
        &mut self,
        queue: u32,
        max: usize,
        invisible: i64,
        attempt: Option<&str>,
    ) -> Result<Vec<Held>, Nothing> {
        let ask = self.ask(max, invisible, attempt);
        for _ in 0..20 {
            let order = match self.begin(queue, &ask) {
                Begin::Nothing(why) => return Err(why),
                Begin::Read(order) => order,
            };
            match self.finish(queue, &order).unwrap() {
                Popped::Messages(batch) => return Ok(self.give(queue, &batch, attempt)),
                Popped::Again => {}
                Popped::Nothing => return Ok(Vec::new()),
            }
        }
        panic!("a pop that begins again and again");
    }

    pub fn finish(
        &mut self,
        queue: u32,
        order: &rmq_pop::ReadOrder,
    ) -> Result<Popped, rmq_pop::FinishError> {
        let (offsets, next) = self.read(queue, order);
        let ticket = order.ticket;
        let popped = self.with(queue, |machine, now, out| {
            let read = Read {
                offsets: &offsets,
                next,
            };
            machine.finish_pop(now, ticket, &read, out)
        });
        self.keep_mark(queue);
        popped
    }

    fn keep_mark(&mut self, queue: u32) {
        let mark = self.queues[&queue].mark();
        match mark.filter(|_| self.bug != Bug::ForgetsMarks) {
            Some(mark) => self.disk.marks.insert(queue, mark),
            None => self.disk.marks.remove(&queue),
        };
    }

    fn give(&mut self, queue: u32, batch: &rmq_pop::Batch, attempt: Option<&str>) -> Vec<Held> {
        self.batches.push(batch.clone());
        let mut given = Vec::new();
        for &offset in &batch.messages {
            let message = self.disk.logs[&queue][offset.get() as usize];
            let fate = self
                .fates
                .get_mut(&message.id)
                .expect("only wanted messages");
            assert!(
                !fate.acked || fate.doubled,
                "{message:?} was acked and comes again"
            );
            let again = self.ordered && attempt.is_some();
            let early = self.steady < fate.visible_at && self.exact_times && !again;
            // One acked before a crash may come again, and then at any time.
            assert!(
                !early || fate.doubled || fate.ever_acked,
                "{message:?} comes before its time: {fate:?} at {}",
                self.steady
            );
            fate.visible_at = self.steady + u64::from(batch.invisible_millis);
            fate.deliveries += 1;
            given.push(Held {
                queue,
                id: message.id,
                handle: Handle {
                    offset,
                    pop_time: batch.pop_time,
                },
            });
        }
        if self.ordered {
            self.check_order(queue, batch);
        }
        self.held.extend(&given);
        given
    }

    /// Nothing may be given out while something before it is neither acked nor in the same batch.
    fn check_order(&self, queue: u32, batch: &rmq_pop::Batch) {
        let first = batch.messages[0].get();
        for message in &self.disk.logs[&queue][..first as usize] {
            let fate = self.fates.get(&message.id);
            let done =
                fate.is_none_or(|fate| fate.ever_acked) || self.disk.dead.contains(&message.id);
            assert!(done, "{message:?} is skipped by {batch:?}");
        }
        assert!(batch.messages.is_sorted());
    }

    /// Acks; gives whether it counted.
    pub fn ack(&mut self, held: Held) -> bool {
        let ordered = self.ordered;
        let counted = self.with(held.queue, |machine, now, out| {
            if ordered {
                machine.ack_order(now, held.handle, out) == OrderAck::Done
            } else {
                machine.ack(held.handle, out) == AckOutcome::Done
            }
        });
        if counted {
            self.acked(held.id);
        }
        counted
    }

    fn acked(&mut self, id: u32) {
        let fate = self.fates.get_mut(&id).unwrap();
        fate.acked = true;
        fate.ever_acked = true;
    }

    pub fn change(&mut self, held: Held, invisible: i64) -> Option<Held> {
        let ordered = self.ordered;
        let ask = ChangeAsk {
            handle: held.handle,
            invisible: Invisible::of_change(invisible).unwrap(),
        };
        let changed = self.with(held.queue, |machine, now, out| {
            if ordered {
                machine.change_order(now, ask, out)
            } else {
                machine.change_invisible(now, ask, out)
            }
        });
        self.keep_mark(held.queue);
        let changed = changed.ok()?;
        let mut visible_at = self.steady + invisible as u64;
        if changed.record.is_some() {
            self.run(usize::MAX);
            if self.fail_writes {
                // The client is told of a failure: either time may hold.
                visible_at = visible_at.min(self.fates[&held.id].visible_at);
            }
        }
        self.fates.get_mut(&held.id).unwrap().visible_at = visible_at;
        let handle = Handle {
            pop_time: changed.pop_time,
            ..held.handle
        };
        let new = Held { handle, ..held };
        self.held.push(new);
        Some(new)
    }

    pub fn advance(&mut self, millis: u64) {
        self.steady += millis;
        self.tick();
    }

    pub fn tick(&mut self) {
        let queues: Vec<u32> = self.queues.keys().copied().collect();
        let early = if self.bug == Bug::TicksEarly { 600 } else { 0 };
        self.steady += early;
        for queue in queues {
            self.with(queue, Queue::tick);
        }
        self.steady -= early;
    }

    /// Ticks and works until nothing is due.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            self.tick();
            let due = self.queues.values().filter_map(Queue::wake_at);
            let idle = due.min().is_none_or(|at| at > self.now().steady);
            if self.pending.is_empty() && idle {
                return;
            }
            self.run(usize::MAX);
        }
        panic!("the machine does not come to rest");
    }

    /// Does the first actions that wait.
    pub fn run(&mut self, count: usize) {
        for _ in 0..count {
            let Some((queue, action)) = self.pending.pop_front() else {
                return;
            };
            self.perform(queue, action, true);
        }
    }

    fn perform(&mut self, queue: u32, action: Action, answer: bool) {
        match action {
            Action::WriteCheckpoint(write) => self.write_checkpoint(queue, &write, answer),
            Action::WriteAcks(write) => {
                if self.bug != Bug::LosesRecords {
                    self.disk.revive.push(Record::Acks {
                        queue,
                        start: write.start.get(),
                        pop_time: write.pop_time.millis(),
                        messages: write.messages.iter().map(|one| one.get()).collect(),
                    });
                    self.revive
                        .note(QueueOffset::new(self.disk.revive.len() as u64 - 1), 0);
                }
            }
            Action::Redeliver(message) => {
                let copied = self.copy(queue, message.offset.get(), false);
                if answer {
                    self.with(queue, |machine, now, out| {
                        machine.redelivered(now, message, copied, out);
                    });
                } else {
                    let copied = self.disk.logs[&queue][message.offset.get() as usize];
                    self.fates.get_mut(&copied.id).unwrap().doubled = true;
                }
            }
            Action::DeadLetter(offset) => {
                let copied = self.copy(queue, offset.get(), true);
                if answer {
                    self.with(queue, |machine, now, out| {
                        machine.dead_lettered(now, offset, copied, out);
                    });
                }
            }
            Action::Commit(_) | Action::Resolved { .. } | Action::Wake => {}
        }
    }

    fn write_checkpoint(&mut self, queue: u32, write: &rmq_pop::CheckpointWrite, answer: bool) {
        let key = write.key;
        if self.fail_writes {
            self.with(queue, |machine, now, out| {
                machine.record_failed(now, key, out);
            });
            return;
        }
        let at = QueueOffset::new(self.disk.revive.len() as u64);
        if self.bug != Bug::LosesRecords {
            let open = |index: usize| write.done_bits >> index & 1 == 0;
            let messages = write.messages.iter().enumerate();
            self.disk.revive.push(Record::Checkpoint {
                queue,
                start: write.start.get(),
                pop_time: write.pop_time.millis(),
                invisible: write.invisible_millis,
                messages: messages
                    .map(|(index, one)| (one.get(), open(index)))
                    .collect(),
            });
        }
        if answer {
            self.revive.note(at, 1);
            self.with(queue, |machine, _, out| {
                machine.record_written(key, at, out);
            });
        }
    }

    fn copy(&mut self, queue: u32, offset: u64, dead: bool) -> Copied {
        if self.fail_writes {
            return Copied::Failed;
        }
        if self.bug == Bug::LosesRedelivery {
            return Copied::Done;
        }
        if offset < self.disk.min {
            return Copied::Gone;
        }
        let message = self.disk.logs[&queue][offset as usize];
        let stored = if queue == RETRY { "%RETRY%g_t" } else { TOPIC };
        let rule = RetryRule {
            max: self.retry_max,
            v2: false,
        };
        // An ack that came while the copy was under way was too late.
        self.fates.get_mut(&message.id).unwrap().acked = false;
        match destination(GROUP, stored, message.reconsume_times, rule) {
            Destination::Retry {
                topic,
                reconsume_times,
            } if !dead => {
                assert_eq!(topic, "%RETRY%g_t");
                let copy = Message {
                    reconsume_times,
                    ..message
                };
                self.disk.logs.get_mut(&RETRY).unwrap().push(copy);
            }
            _ => {
                self.disk.dead.insert(message.id);
            }
        }
        self.disk.copied.insert((queue, offset));
        Copied::Done
    }

    /// The process dies: the first `done` waiting actions happened, but nobody learned of it.
    pub fn crash(&mut self, done: usize) {
        for (queue, action) in std::mem::take(&mut self.pending).into_iter().take(done) {
            self.perform(queue, action, false);
        }
        self.pending.clear();
        // That a copy was made may have been in memory only: there may be two from now on.
        let open = self.open_records();
        for &(queue, offset) in &self.disk.copied {
            if offset >= self.committed(queue) || open.contains(&(queue, offset)) {
                let message = self.disk.logs[&queue][offset as usize];
                self.fates.get_mut(&message.id).unwrap().doubled = true;
            }
        }
        // What was acked may have been in memory only.
        for fate in self.fates.values_mut() {
            fate.acked = false;
        }
        self.recover();
    }

    pub fn recover(&mut self) {
        self.revive = ReviveQueue::new(QueueOffset::new(self.disk.revive_from));
        let queues: Vec<u32> = self.disk.logs.keys().copied().collect();
        for &queue in &queues {
            self.queues.insert(queue, Queue::new(self.options));
        }
        let from = self.disk.revive_from as usize;
        let records = self.disk.revive.get(from..).unwrap_or(&[]).to_vec();
        for (index, record) in records.into_iter().enumerate() {
            self.recover_record(QueueOffset::new((from + index) as u64), record);
        }
        for queue in queues {
            let with = Recovery {
                committed: self
                    .disk
                    .offsets
                    .get(&queue)
                    .map(|&one| QueueOffset::new(one)),
                mark: self.disk.marks.get(&queue).copied(),
                ordered: self.ordered,
            };
            let order = self.disk.order.get(&queue).cloned();
            self.with(queue, |machine, now, out| {
                if let Some(order) = &order {
                    machine.recover_order(now, order);
                }
                machine.recovered(now, with, out);
            });
        }
    }

    fn recover_record(&mut self, at: QueueOffset, record: Record) {
        match record {
            Record::Checkpoint {
                queue,
                start,
                pop_time,
                invisible,
                messages,
            } => {
                let messages: Vec<_> = messages
                    .into_iter()
                    .map(|(offset, open)| (QueueOffset::new(offset), open))
                    .collect();
                let parts = self.with(queue, |machine, now, out| {
                    let saved = SavedCheckpoint {
                        start: QueueOffset::new(start),
                        pop_time: Timestamp::from_millis(pop_time),
                        invisible: Invisible::of_change(invisible.into()).unwrap(),
                        revive_queue: 0,
                        revive_offset: at,
                        messages: &messages,
                    };
                    machine.recover_checkpoint(now, &saved, out)
                });
                self.revive.note(at, parts);
            }
            Record::Acks {
                queue,
                start,
                pop_time,
                messages,
            } => {
                let messages = messages.into_iter().map(QueueOffset::new);
                let pop_time = Timestamp::from_millis(pop_time);
                self.revive.note(at, 0);
                self.with(queue, |machine, _, out| {
                    machine.recover_acks(QueueOffset::new(start), pop_time, messages, out);
                });
            }
        }
    }

    pub fn save_order(&mut self) {
        for (&queue, machine) in &self.queues {
            match machine.order_state() {
                Some(state) => self.disk.order.insert(queue, state),
                None => self.disk.order.remove(&queue),
            };
        }
    }

    /// Times of messages in flight are not compared any more: the clock stepped before a crash.
    pub fn clock_is_wrong(&mut self) {
        self.exact_times = false;
    }

    pub fn committed(&self, queue: u32) -> u64 {
        self.disk.offsets.get(&queue).copied().unwrap_or(0)
    }

    /// Every message below a committed offset must be done with, or held by a durable record.
    pub fn check_commits(&self) {
        let open = self.open_records();
        for (&queue, &committed) in &self.disk.offsets {
            let log = &self.disk.logs[&queue];
            for (offset, message) in log.iter().enumerate().take(committed as usize) {
                let at = (queue, offset as u64);
                let acked = self
                    .fates
                    .get(&message.id)
                    .is_none_or(|fate| fate.ever_acked);
                let safe = acked
                    || at.1 < self.disk.min
                    || self.disk.copied.contains(&at)
                    || self.disk.dead.contains(&message.id)
                    || open.contains(&at);
                assert!(
                    safe,
                    "committed {committed} of {queue} passes {offset}: {message:?}"
                );
            }
            assert!(
                committed <= log.len() as u64,
                "{queue} is committed behind its end"
            );
        }
    }

    fn open_records(&self) -> BTreeSet<(u32, u64)> {
        let mut open = BTreeSet::new();
        let from = self.disk.revive_from as usize;
        for record in self.disk.revive.iter().skip(from) {
            match record {
                Record::Checkpoint {
                    queue,
                    start,
                    pop_time,
                    messages,
                    ..
                } => {
                    for &(offset, _) in messages.iter().filter(|(_, open)| *open) {
                        open.insert((*queue, *start, *pop_time, offset));
                    }
                }
                Record::Acks {
                    queue,
                    start,
                    pop_time,
                    messages,
                } => {
                    for &offset in messages {
                        open.remove(&(*queue, *start, *pop_time, offset));
                    }
                }
            }
        }
        open.into_iter()
            .map(|(queue, _, _, offset)| (queue, offset))
            .collect()
    }

    /// Consumes everything; then every message must have been acked, or be a dead letter.
    pub fn drain(&mut self) {
        self.fail_writes = false;
        let queues: Vec<u32> = self.queues.keys().copied().collect();
        for _ in 0..200 {
            self.steady += 8_000;
            self.settle();
            let mut got = false;
            for &queue in &queues {
                while let Ok(list) = self.pop(queue, 5, 30_000, None) {
                    if list.is_empty() {
                        break;
                    }
                    got = true;
                    for held in list {
                        self.ack(held);
                    }
                }
            }
            self.settle();
            let flying: usize = self
                .queues
                .values()
                .map(|one| one.figures().in_flight)
                .sum();
            let left = queues.iter().any(|queue| {
                let end = self.disk.logs[queue].len() as u64;
                let figures = self.queues[queue].figures();
                figures.again > 0 || figures.position.get() < end
            });
            if !got && flying == 0 && !left {
                self.check_all_done();
                return;
            }
        }
        panic!("the queues do not run dry");
    }

    fn check_all_done(&self) {
        for (id, fate) in &self.fates {
            let gone = self.disk.logs.values().all(|log| {
                let place = log.iter().position(|one| one.id == *id);
                place.is_none_or(|at| (at as u64) < self.disk.min)
            });
            let done = fate.ever_acked || self.disk.dead.contains(id) || gone;
            assert!(done, "message {id} is lost: {fate:?}");
        }
        assert_eq!(
            self.revive.lag(),
            0,
            "records are left that nobody waits for"
        );
        for (queue, log) in &self.disk.logs {
            let committed = self.queues[queue].figures().committed.get();
            if self.queues[queue].figures().position.get() > 0 {
                assert_eq!(
                    committed,
                    log.len() as u64,
                    "the commit of {queue} is left behind"
                );
            }
        }
    }

    pub fn deliveries(&self, id: u32) -> u32 {
        self.fates[&id].deliveries
    }

    pub fn in_flight(&self, queue: u32) -> usize {
        self.queues[&queue].figures().in_flight
    }
}
