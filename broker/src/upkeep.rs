//! What happens by the clock: deadlines of waiting requests, expiry of clients and locks, writing
//! of offsets and tables, samples of counters.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::{
    arrival,
    core::{Core, lock},
    handler, pop,
    stats::SAMPLE_SECONDS,
};

const TICK: Duration = Duration::from_millis(100);
/// Ticks between expiries, table writes and samples: ten seconds.
const SLOW_TICKS: u64 = SAMPLE_SECONDS * 10;

/// The loop; ends when its task is cancelled.
pub(crate) async fn run(core: Arc<Core>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut ticks = 0u64;
    let mut offsets_due = 0i64;
    // Beside the loop: a disk that hangs keeps nobody waiting, and is no reason to end the process.
    let mut writing: Option<JoinHandle<()>> = None;
    loop {
        interval.tick().await;
        ticks += 1;
        answer_overdue(&core);
        core.pulse.beat(Instant::now());
        let now = core.now();
        if let Some(done) = writing.take_if(|writing| writing.is_finished())
            && let Err(error) = done.await
        {
            tracing::error!(%error, "writing the tables panicked");
        }
        if writing.is_none() && now.millis() >= offsets_due {
            let period = core.settings.get().flush_consumer_offset_interval.get();
            offsets_due = now.millis().saturating_add(period);
            let core = Arc::clone(&core);
            writing = Some(tokio::task::spawn_blocking(move || write_all(&core)));
        }
        if ticks.is_multiple_of(SLOW_TICKS) {
            expire(&core);
            core.stats.sample(now);
        }
    }
}

fn answer_overdue(core: &Arc<Core>) {
    let now = core.now();
    let due = {
        let mut holds = lock(&core.holds);
        let due = holds.expire(now);
        core.arrivals.set_waiting(holds.len());
        due
    };
    for waiter in due {
        arrival::answer_pull(core, &waiter.what);
    }
    let late = core.parked.take_expired(now);
    if !late.is_empty() {
        arrival::answer_late(core, late);
    }
}

fn expire(core: &Arc<Core>) {
    let settings = core.settings.get();
    let now = core.now();
    let (silent, old) = (
        settings.channel_expired_timeout.get(),
        settings.subscription_expired_timeout.get(),
    );
    let changed = lock(&core.consumers).expire(now, silent, old);
    for group in changed {
        core.notify_members(&group);
    }
    lock(&core.producers).expire(now, silent);
    lock(&core.locks).expire(now);
}

fn write_all(core: &Core) {
    // The last write of a stop waits for one that still runs.
    let _one_at_a_time = lock(&core.writing);
    for outcome in [
        core.offsets.flush(core.now()),
        core.topics.compact(),
        core.groups.compact(),
        core.pops.flush_orders(),
    ] {
        if let Err(error) = outcome {
            tracing::warn!(%error, "a table was not written and will be tried again");
        }
    }
}

/// Answers every waiting request, for the shutdown.
pub(crate) fn answer_everybody(core: &Arc<Core>) {
    let waiting = lock(&core.holds).drain();
    core.arrivals.set_waiting(0);
    for waiter in waiting {
        arrival::answer_pull(core, &waiter.what);
    }
    for held in core.pops.waits.drain() {
        handler::pop::answer_last(core, &held);
    }
    arrival::answer_parked(core, core.parked.take_durable(core.store.durable_offset()));
    arrival::answer_late(core, core.parked.drain());
}

/// Writes the last state and closes the store.
pub(crate) fn close(core: &Core) -> std::io::Result<()> {
    pop::close(core);
    write_all(core);
    if let Err(error) = core.delays.flush() {
        tracing::warn!(%error, "delay offsets not written");
    }
    core.store.shutdown()
}
