//! What the store says (a message arrived, a flush is done) becomes answers to waiting clients.
//!
//! Runs on the appending thread: an arrival that nobody waits for costs one relaxed load.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use bytes::BytesMut;
use rmq_net::Connection;
use rmq_protocol::{
    header::PullMessage,
    remoting::{Command, response_code},
};
use rmq_store::{Arrival, RecoveryProgress, StoreListener};
use rmq_types::{CommitLogOffset, system};

use crate::{
    core::{Core, lock},
    handler::{pull, send},
    metrics::{Answered, Outcome, Tally},
    parked::ParkedGroup,
    pop,
    session::subscription::TagFilter,
    starting::Starting,
};

/// A pull that waits for a message.
#[derive(Debug)]
pub(crate) struct HeldPull {
    /// Who waits.
    pub conn: Arc<Connection>,
    /// Number of the request.
    pub opaque: i32,
    /// The request.
    pub header: PullMessage<'static>,
    /// What it wants.
    pub filter: TagFilter,
    /// Its code.
    pub code: i32,
    /// When it was read from its connection.
    pub since: Instant,
}

/// The store's listener. Knows the broker once it is built; a store that recovers has no clients.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    core: OnceLock<Weak<Core>>,
    waiting: AtomicUsize,
    waiting_pops: Arc<AtomicUsize>,
    poisoned: AtomicBool,
    starting: Arc<Starting>,
}

impl Arrivals {
    /// A listener that also tells `starting` how far recovery has come.
    pub(crate) fn new(starting: Arc<Starting>) -> Self {
        Self {
            starting,
            ..Self::default()
        }
    }

    /// Connects the listener to the broker.
    pub(crate) fn attach(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Notes how many pulls wait; see [`StoreListener::arrived`].
    pub(crate) fn set_waiting(&self, count: usize) {
        self.waiting.store(count, Ordering::Release);
    }

    /// The number of pops that wait, which is kept elsewhere.
    pub(crate) fn waiting_pops(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.waiting_pops)
    }

    fn core(&self) -> Option<Arc<Core>> {
        self.core.get().and_then(Weak::upgrade)
    }
}

impl StoreListener for Arrivals {
    fn arrived(&self, topic: &str, queue_id: u32, arrivals: &[Arrival]) {
        if topic == system::SCHEDULE_TOPIC {
            if let Some(core) = self.core() {
                core.delays.arrived();
            }
            return;
        }
        let pulls = self.waiting.load(Ordering::Acquire);
        if pulls == 0 && self.waiting_pops.load(Ordering::Acquire) == 0 {
            return;
        }
        let Some(core) = self.core() else { return };
        pop::arrived(&core, topic, queue_id, arrivals);
        if pulls == 0 {
            return;
        }
        let Some(last) = arrivals.last() else { return };
        let end = last.queue_offset.get() as i64 + 1;
        let woken = {
            let mut holds = lock(&core.holds);
            let woken = holds.take(topic, queue_id, |waiter| {
                end > waiter.offset
                    && arrivals
                        .iter()
                        .any(|arrival| waiter.what.filter.admits_code(arrival.tags_code))
            });
            self.set_waiting(holds.len());
            woken
        };
        for waiter in woken {
            answer_pull(&core, &waiter.what);
        }
    }

    fn durable(&self, upto: CommitLogOffset) {
        if let Some(core) = self.core() {
            answer_parked(&core, core.parked.take_durable(upto));
            pop::durable(&core, upto);
        }
    }

    fn poisoned(&self, reason: &str) {
        self.poisoned.store(true, Ordering::Release);
        tracing::error!(
            reason,
            "the store takes no more messages: restart the broker"
        );
        if let Some(core) = self.core() {
            refuse_parked(&core, core.parked.drain(), reason);
        }
    }

    fn progress(&self, progress: RecoveryProgress) {
        self.starting.note(progress);
        tracing::info!(
            scanned_mib = progress.scanned_bytes >> 20,
            total_mib = progress.total_bytes >> 20,
            "recovering the log"
        );
    }
}

/// Runs a held pull again; this time it is answered whatever there is.
pub(crate) fn answer_pull(core: &Core, held: &HeldPull) {
    let mut out = BytesMut::new();
    let response = pull::answer_again(core, held, &mut out);
    let sent = held.conn.send_frame(&out);
    let answered = Answered {
        request: held.code,
        response,
        held: true,
        outcome: Outcome::written(&sent),
    };
    core.rpc.record(answered, held.since.elapsed(), 1);
    if let Err(error) = sent {
        tracing::debug!(peer = %held.conn.peer_addr(), %error, "a woken pull was not answered");
    }
}

/// Answers sends whose messages are on the disk.
pub(crate) fn answer_parked(core: &Core, groups: Vec<ParkedGroup>) {
    answer_stored(core, groups, response_code::SUCCESS);
}

/// Answers sends whose flush took too long: stored, but not known to be on the disk.
pub(crate) fn answer_late(core: &Core, groups: Vec<ParkedGroup>) {
    answer_stored(core, groups, response_code::FLUSH_DISK_TIMEOUT);
}

fn answer_stored(core: &Core, groups: Vec<ParkedGroup>, code: i32) {
    let settings = core.settings.get();
    for group in groups {
        let mut out = BytesMut::new();
        for reply in &group.replies {
            send::write_reply(&settings, reply, code, &mut out);
        }
        let sent = group.conn.send_frame(&out);
        note(core, &group, code, Outcome::written(&sent));
    }
}

fn refuse_parked(core: &Core, groups: Vec<ParkedGroup>, reason: &str) {
    let code = response_code::SERVICE_NOT_AVAILABLE;
    for group in groups {
        let mut outcome = Outcome::Success;
        for reply in &group.replies {
            let answer = Command::response(reply.opaque, code)
                .with_remark(format!("the flush failed: {reason}"));
            outcome = Outcome::written(&group.conn.send(&answer));
        }
        note(core, &group, code, outcome);
    }
}

/// Records how long parked sends took.
fn note(core: &Core, group: &ParkedGroup, response: i32, outcome: Outcome) {
    let mut tally = Tally::new(&core.rpc, group.since);
    for reply in &group.replies {
        tally.add(Answered {
            request: reply.code,
            response,
            held: false,
            outcome,
        });
    }
}
