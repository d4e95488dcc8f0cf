//! Pop consumption: the shell around `rmq-pop`. It keeps the queues, carries out what they ask for,
//! holds pops that wait, and brings everything back at a start.
//!
//! | file | what it owns |
//! |---|---|
//! | `cell` | a queue behind its lock, and the table of all |
//! | `step` | an event, and carrying out what follows from it |
//! | `revive` | records of the revive topic, and up to where they are done with |
//! | `copies` | redelivered messages and dead letters |
//! | `take` | one pop over several queues |
//! | `waits` | pops that wait |
//! | `alarms` | the thread that does what is due |
//! | `marks` | what a killed process had in flight |
//! | `orders` | `consumerOrderInfo.json` |
//! | `start` | recovery, and the last writes of a stop |
//!
//! **Invariant:** no lock of a queue is held while another queue, a waiting pop or the log is
//! touched; under it only leaves are taken (offset table, marks, alarms). Requests and answers are
//! not here: `handler/pop` has them.

mod alarms;
mod cell;
mod copies;
mod figures;
mod marks;
mod orders;
mod revive;
mod start;
mod step;
mod take;
mod waits;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Instant,
};

use rmq_pop::{Now, Options, polls::PollLimits};
use rmq_types::{ClusterName, Moment, pop::PopTopic, system::RETRY_PREFIX};

pub(crate) use alarms::run;
pub(crate) use cell::{Cell, Place};
pub(crate) use figures::{Counters, GroupFigures, note_acks};
pub(crate) use revive::durable;
pub(crate) use start::{close, recover};
use step::wake as wake_cell;
pub(crate) use step::{step, step_on};
pub(crate) use take::{Taken, TakenBatch, Wish, WishKind, is_ready, peek, take};
pub(crate) use waits::Held;

use rmq_store::Arrival;

use crate::{config::Settings, core::Core, handler};
use alarms::Alarms;
use cell::Cells;
use marks::Marks;
use revive::Revive;
use waits::Waits;

/// All that pop consumption keeps.
#[derive(Debug)]
pub(crate) struct Pops {
    options: Options,
    since: Instant,
    cells: Cells,
    revive: Revive,
    marks: Marks,
    /// Pops that wait.
    pub(crate) waits: Waits,
    /// What is due when.
    pub(crate) alarms: Alarms,
    /// For the page.
    pub(crate) counters: Counters,
    turn: AtomicU32,
    orders_changed: AtomicBool,
    orders_path: std::path::PathBuf,
}

impl Pops {
    /// Opens what lies in `folder`; [`recover`] brings the queues back.
    pub(crate) fn open(
        folder: &Path,
        cluster: &ClusterName,
        (settings, waiting): (&Settings, Arc<AtomicUsize>),
    ) -> io::Result<Self> {
        let defaults = Options::default();
        let options = Options {
            stay_millis: settings.pop_ck_stay_buffer_time.get() as u64,
            buffered_max: settings.pop_ck_max_buffer_size.get() as usize,
            ..defaults
        };
        let limits = PollLimits {
            of_key: settings.pop_polling_size.get() as usize,
            total: settings.max_pop_polling_size.get() as usize,
        };
        Ok(Self {
            options,
            since: Instant::now(),
            cells: Cells::default(),
            revive: Revive::new(cluster),
            marks: Marks::open(folder)?,
            waits: Waits::new(limits, waiting),
            alarms: Alarms::default(),
            counters: Counters::default(),
            turn: AtomicU32::new(0),
            orders_changed: AtomicBool::new(false),
            orders_path: folder.join(orders::FILE),
        })
    }

    /// The time on both clocks.
    pub(crate) fn now(&self, core: &Core) -> Now {
        let millis = self.since.elapsed().as_millis();
        Now {
            wall: core.now(),
            steady: Moment::from_millis(millis as u64),
        }
    }

    /// A number that spreads pops over queues; chance is not needed, only evenness.
    fn random(&self) -> u32 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        // The finishing mix of a well-known hash: neighbours come out far apart.
        let mut mixed = turn.wrapping_mul(0x9e37_79b9);
        mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
        mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
        mixed ^ (mixed >> 16)
    }

    /// The queue, if a pop made it or a start brought it back.
    pub(crate) fn cell(&self, stored: &str, group: &str, queue: u32) -> Option<Arc<Cell>> {
        self.cells.get(stored, group, queue)
    }

    /// The queue; made when needed. `None` if a name is too long to be one.
    fn cell_or_made(
        &self,
        (topic, kind): (&str, PopTopic),
        group: &str,
        queue: u32,
    ) -> Option<Arc<Cell>> {
        let stored = stored_topic(kind, topic, group);
        if let Some(found) = self.cells.get(&stored, group, queue) {
            return Some(found);
        }
        let place = Place::parse(topic, kind, group, queue)?;
        Some(self.cells.get_or_make(place, self.options, &self.marks))
    }

    /// Notes that the file of ordered groups is old.
    pub(crate) fn note_order(&self) {
        self.orders_changed.store(true, Ordering::Release);
    }
}

/// The stored topic of a kind; the usual one costs no memory.
pub(crate) fn stored_topic<'t>(
    kind: PopTopic,
    topic: &'t str,
    group: &str,
) -> std::borrow::Cow<'t, str> {
    match kind {
        PopTopic::Normal => topic.into(),
        PopTopic::RetryV1 | PopTopic::RetryV2 => kind.stored_topic(topic, group).into(),
    }
}

/// Messages came: those that wait for them look again.
pub(crate) fn arrived(core: &Core, topic: &str, queue: u32, arrivals: &[Arrival]) {
    let pops = &core.pops;
    // Appended under a lock of the shell itself; nobody pops it.
    if pops.waits.count() == 0 || topic == pops.revive.topic() {
        return;
    }
    let mut woken = pops.waits.arrived(topic, queue, arrivals);
    if topic.starts_with(RETRY_PREFIX) {
        for (popped, group) in pops.cells.readers(topic) {
            for _ in arrivals {
                woken.extend(pops.waits.wake(popped.as_str(), group.as_str(), None));
            }
        }
    }
    handler::pop::serve_woken(core, woken);
}

/// A topic was deleted: what is in flight of it is void, and who waits for it is answered.
pub(crate) fn topic_deleted(core: &Core, topic: &str) {
    for cell in core.pops.cells.take_topic(topic) {
        step::void(core, &cell);
    }
    core.pops.counters.forget(topic);
    for held in core.pops.waits.take_topic(topic) {
        handler::pop::answer_now(core, held);
    }
}

/// A group was deleted: what it had in flight is void.
pub(crate) fn group_deleted(core: &Core, group: &str) {
    for cell in core.pops.cells.take_group(group) {
        step::void(core, &cell);
    }
    core.pops.counters.forget(group);
}

/// A pending reset of a group's queue is to be looked at by whoever waits.
pub(crate) fn wake(core: &Core, topic: &str, group: &str, queue: u32) {
    let woken = core.pops.waits.wake(topic, group, Some(queue));
    handler::pop::serve_woken(core, woken);
}
