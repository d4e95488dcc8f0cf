//! The store's own threads: flush, queue writes, disk watch, clean-up (page preparation: `prepare`).
//!
//! **Invariant:** none of them holds a lock that appends need while it waits for the disk; a panic in
//! one poisons the store. All end when the store is shut down.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, atomic::Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    checkpoint::Checkpoint,
    core::{Core, OVER_LIMIT},
    lock::lock,
    options::FlushMode,
    prepare,
    storage::DiskAction,
};

/// Entries that may wait in memory before queues are written early.
const WAITING_UNITS_MAX: usize = 4_000_000;
/// Queue writes take at most one part in so many of the time: with very many queues rounds are rarer.
const ROUND_SHARE: u32 = 20;
/// Longest time between two rounds of queue writes, which bounds the walk after a crash.
const ROUND_PAUSE_MAX: Duration = Duration::from_mins(1);
/// Queue files that are forced one by one; beyond it the whole file system is.
const SYNC_FILES_MAX: usize = 64;
/// Queues written between two pauses.
const PACE_QUEUES: usize = 128;

/// State of the rounds that write queues and checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) checkpoint: Checkpoint,
    unsynced: Unsynced,
}

/// Entries that earlier rounds wrote and did not bring to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unsynced {
    /// None.
    #[default]
    Nothing,
    /// A round ended between its writes and its sync: the next sync must cover all files.
    Written,
    /// A sync failed: the kernel may have dropped the pages, so no later sync proves anything, and the
    /// checkpoint stays where it is until the next start walks the log from there.
    Lost,
}

impl Rounds {
    pub(crate) fn new(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            unsynced: Unsynced::Nothing,
        }
    }
}

/// Lets a thread wait for time or for the end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits; `true` once stopped.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let stopped = lock(&self.stopped);
        let (stopped, _) = self
            .changed
            .wait_timeout_while(stopped, time, |stopped| !*stopped)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *stopped
    }

    /// One that is set from the start.
    fn stopped() -> Self {
        let stop = Self::default();
        stop.set();
        stop
    }

    pub(crate) fn is_set(&self) -> bool {
        *lock(&self.stopped)
    }

    fn set(&self) {
        *lock(&self.stopped) = true;
        self.changed.notify_all();
    }
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct Threads {
    stop: Arc<Stop>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts them.
    pub(crate) fn start(core: &Arc<Core>) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let mut threads = Self {
            stop,
            handles: Vec::new(),
        };
        let flusher = threads.spawn("store-flush", core, flush_loop)?;
        let _ = core.flusher.set(flusher);
        let preparer = threads.spawn("store-prepare", core, prepare::run)?;
        let _ = core.preparer.set(preparer);
        threads.spawn("store-upkeep", core, upkeep_loop)?;
        if core.options.index_enabled {
            threads.spawn("store-index", core, index_loop)?;
        }
        Ok(threads)
    }

    fn spawn(
        &mut self,
        name: &'static str,
        core: &Arc<Core>,
        body: fn(&Core, &Stop),
    ) -> io::Result<thread::Thread> {
        let (core, stop) = (Arc::clone(core), Arc::clone(&self.stop));
        let handle = thread::Builder::new().name(name.into()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| body(&core, &stop))).is_err() {
                core.poison(&format!("thread {name} panicked"));
            }
        })?;
        let thread = handle.thread().clone();
        self.handles.push(handle);
        Ok(thread)
    }

    /// Ends them and waits.
    pub(crate) fn stop(&mut self) {
        self.stop.set();
        for handle in self.handles.drain(..) {
            handle.thread().unpark();
            let _ = handle.join();
        }
    }
}

fn flush_loop(core: &Core, stop: &Stop) {
    match core.options.flush {
        FlushMode::Async { .. } => {
            while !stop.wait(core.tuned.get().flush_interval) {
                let _ = core.flush_log();
            }
        }
        FlushMode::Sync => {
            while !stop.is_set() {
                core.flusher_waits.store(true, Ordering::SeqCst);
                std::sync::atomic::fence(Ordering::SeqCst);
                if core.end() <= core.durable.load(Ordering::Acquire) {
                    thread::park_timeout(Duration::from_secs(1));
                }
                core.flusher_waits.store(false, Ordering::Relaxed);
                if core.flush_log().is_err() && stop.wait(Duration::from_secs(1)) {
                    break;
                }
            }
        }
    }
    // Poisoned or not, the error was reported where it happened.
    let _ = core.flush_log();
}

fn upkeep_loop(core: &Core, stop: &Stop) {
    let tick = Duration::from_secs(1).min(core.options.queue_flush_interval);
    let mut last_round = Instant::now();
    let mut pause = core.options.queue_flush_interval;
    let mut ticks = 0u64;
    while !stop.wait(tick) {
        ticks += 1;
        let waiting = lock(&core.appender).dirty_units;
        if waiting > WAITING_UNITS_MAX || last_round.elapsed() >= pause {
            let started = Instant::now();
            if let Err(error) = write_paced(core, false, stop) {
                tracing::warn!(%error, "queue entries stay in memory");
            }
            last_round = Instant::now();
            pause = (started.elapsed() * ROUND_SHARE).clamp(
                core.options.queue_flush_interval,
                ROUND_PAUSE_MAX.max(core.options.queue_flush_interval),
            );
        }
        if ticks.is_multiple_of(10) {
            core.index.release();
            crate::expire::run(core, false);
        }
    }
}

/// Reads how full the disk is and refuses or takes appends by it.
pub(crate) fn check_disk(core: &Core) {
    let Ok(stat) = rustix::fs::statvfs(&core.options.root) else {
        return;
    };
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    let reachable = used.saturating_add(stat.f_bavail).max(1);
    let percent = (used.saturating_mul(100) / reachable).min(100) as u8;
    core.disk_used.store(percent, Ordering::Relaxed);
    let full = percent > core.tuned.get().disk_full_percent;
    if core.set_refusal(OVER_LIMIT, full) {
        tracing::warn!(percent, full, "disk use crossed its limit");
    }
}

/// Writes the entries that wait, forces them to the disk and moves the checkpoint. The log goes first:
/// no entry may reach the disk before its record. Nothing is done if nothing changed, unless `always`.
pub(crate) fn write_queues(core: &Core, always: bool) -> io::Result<()> {
    write_paced(core, always, &Stop::stopped())
}

fn write_paced(core: &Core, always: bool, pace: &Stop) -> io::Result<()> {
    let mut rounds = lock(&core.rounds);
    let (dirty, end, time) = {
        let mut appender = lock(&core.appender);
        appender.dirty_units = 0;
        let dirty = std::mem::take(&mut appender.dirty);
        for queue in &dirty {
            queue.clear_dirty();
        }
        (dirty, appender.at(), appender.last_stored_at)
    };
    if !always && dirty.is_empty() && core.queues_durable.load(Ordering::Acquire) == end {
        return Ok(());
    }
    let written = core
        .flush_log()
        .and_then(|()| write_dirty(core, &mut rounds.unsynced, &dirty, end, pace));
    if let Err(error) = written {
        let mut appender = lock(&core.appender);
        for queue in dirty {
            if queue.has_tail() {
                appender.dirty.push(queue);
            }
        }
        return Err(error);
    }
    core.queues_durable.store(end, Ordering::Release);
    rounds.checkpoint.log_time = time;
    rounds.checkpoint.queue_time = time;
    rounds.checkpoint.queues_below = Some(end);
    core.index.checkpoint(&mut rounds.checkpoint);
    core.disk.before(DiskAction::WriteCheckpoint)?;
    rounds.checkpoint.save(&core.options.root)
}

/// Making files for very many queues costs seconds of a core: every so many queues, twice the time that
/// they took is left to others, unless `pace` is stopped.
fn write_dirty(
    core: &Core,
    unsynced: &mut Unsynced,
    dirty: &[Arc<crate::queue::Queue>],
    end: u64,
    pace: &Stop,
) -> io::Result<()> {
    let owed = *unsynced;
    let mut files = Vec::new();
    let mut count = 0usize;
    let mut started = Instant::now();
    for (index, queue) in dirty.iter().enumerate() {
        if index % PACE_QUEUES == PACE_QUEUES - 1 {
            pace.wait(started.elapsed() * 2);
            started = Instant::now();
        }
        core.disk.before(DiskAction::WriteQueue)?;
        let written = core.table.with_io(|| queue.flush(&core.table.files, end))?;
        if *unsynced == Unsynced::Nothing && !written.is_empty() {
            *unsynced = Unsynced::Written;
        }
        count += written.len();
        if files.len() < SYNC_FILES_MAX {
            files.extend(written);
        }
    }
    if *unsynced == Unsynced::Nothing {
        return Ok(());
    }
    let all = owed != Unsynced::Nothing || count > SYNC_FILES_MAX;
    if let Err(error) = sync_queues(core, &files, all) {
        *unsynced = Unsynced::Lost;
        return Err(error);
    }
    if *unsynced == Unsynced::Lost {
        return Err(io::Error::other(
            "a sync of queue files failed earlier: the checkpoint stays until the next start",
        ));
    }
    *unsynced = Unsynced::Nothing;
    Ok(())
}

fn sync_queues(core: &Core, files: &[std::fs::File], all: bool) -> io::Result<()> {
    core.disk.before(DiskAction::SyncQueue)?;
    if all {
        rustix::fs::syncfs(std::fs::File::open(core.table.files.dir())?)?;
        core.disk.all_synced();
        return Ok(());
    }
    files.iter().try_for_each(std::fs::File::sync_data)
}

fn index_loop(core: &Core, stop: &Stop) {
    while !stop.is_set() {
        match core.index.follow(core, stop_check(stop)) {
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(%error, "index waits");
                if stop.wait(Duration::from_secs(1)) {
                    break;
                }
            }
        }
        if stop.wait(Duration::from_millis(100)) {
            break;
        }
    }
}

fn stop_check(stop: &Stop) -> impl Fn() -> bool + '_ {
    || stop.is_set()
}
