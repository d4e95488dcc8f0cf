//! One run of the kill suite: load, kill, start, look, and again.
//!
//! **Invariant:** every wait has a limit; the first round with a fault is the last one, and the data
//! of a failed run is kept. What went wrong is told with round, seed, topic, queue and offset.

use super::load::{Load, Shared};
use super::message::{QUEUES, Queue, Random};
use super::wire::Wire;
use crate::cluster::Cluster;
use crate::process::End;
use anyhow::Context as _;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Longest that the load may take to bring the acknowledgements of a round, and then to end.
const LOAD: Duration = Duration::from_mins(2);
/// Most acknowledged messages before a kill; half of the rounds end within a tenth of it.
const TARGET_MAX: u64 = 10_000;
/// Bytes of a log file.
const LOG_FILE_BYTES: u64 = 1 << 20;
/// One kill in this many is followed by more while the broker starts.
const KILL_AGAIN_ONE_IN: u64 = 4;
const KILLS_AGAIN_MAX: u64 = 3;
/// These come within about the time that a start takes.
const START_MICROS: u64 = 60_000;

/// How acknowledged messages reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// SYNC_FLUSH.
    Sync,
    /// ASYNC_FLUSH.
    Async,
}

impl Flush {
    /// As in the manifest.
    fn word(self) -> &'static str {
        match self {
            Self::Sync => "Sync",
            Self::Async => "Async",
        }
    }
}

/// A running cluster with the account of what it acknowledged.
pub(super) struct Run {
    flush: Flush,
    seed: u64,
    pub(super) cluster: Cluster,
    pub(super) runtime: Runtime,
    pub(super) shared: Arc<Shared>,
    pub(super) wire: Wire,
    random: Random,
    ends: u32,
    longest_start: Duration,
}

impl Run {
    pub(super) fn start(flush: Flush, seed: u64) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let manifest = folder.path().join("kill.yaml");
        std::fs::write(&manifest, manifest_text(flush))?;
        // Without it, the wait between kills would double each time.
        let cluster = Cluster::up_with(&manifest, &["--restart-wait-max", "0"])?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start threads")?;
        let wire = Wire::new(cluster.broker(), seed);
        let run = Self {
            flush,
            seed,
            runtime,
            shared: Arc::new(Shared::new(seed)),
            wire,
            random: Random::of(seed, u64::MAX),
            ends: 0,
            longest_start: Duration::ZERO,
            cluster,
        };
        let topics = async {
            for queue in Queue::all().chain(Queue::delayed()) {
                run.wire
                    .create_topic(&queue.topic_name(), QUEUES as i32)
                    .await?;
            }
            Ok::<(), anyhow::Error>(())
        };
        run.runtime.block_on(topics)?;
        Ok(run)
    }

    /// All rounds, and a last look after an orderly restart; gives the figures.
    pub(super) fn play(&mut self, rounds: u32, how: End) -> anyhow::Result<String> {
        for round in 1..=rounds {
            let played = self.round(round, how);
            played.with_context(|| self.place(round))?;
            if !self.shared.ledger().has_room() {
                break;
            }
        }
        self.last_look(rounds)
            .with_context(|| format!("{}, after an orderly restart", self.place(rounds)))?;
        Ok(self.figures())
    }

    fn place(&self, round: u32) -> String {
        format!(
            "{:?} flush, seed {}, round {round}; data kept in {}",
            self.flush,
            self.seed,
            self.cluster.data_dir().display()
        )
    }

    /// A round in which the log loses its last acknowledged message while nothing runs: gives what
    /// is told of it, and fails if nothing is.
    pub(super) fn play_damaged(&mut self) -> anyhow::Result<String> {
        let target = self.target();
        let load = self.load(1, target)?;
        let shared = Arc::clone(&self.shared);
        self.cluster.kill_broker_and(|folder| {
            let last = shared.ledger().last_in_log();
            let last = last.context("nothing was acknowledged")?;
            cut_log(&folder.join("commitlog"), last.physical)
        })?;
        self.finish(load)?;
        match self.look(1) {
            Err(fault) if format!("{fault:#}").contains("is lost") => Ok(format!("{fault:#}")),
            Err(fault) => Err(fault.context("another fault than a lost message")),
            Ok(()) => anyhow::bail!("{}: a message was cut off and not missed", self.place(1)),
        }
    }

    fn round(&mut self, round: u32, how: End) -> anyhow::Result<()> {
        let target = self.target();
        let load = self.load(round, target)?;
        let on_disk = self.progress_on_disk()?;
        let started = Instant::now();
        let mut again = String::new();
        if how == End::Kill {
            let kills_again = self.kills_again();
            if !kills_again.is_empty() {
                again = format!(", and {} times while it started", kills_again.len());
            }
            self.cluster.kill_broker(&kills_again)?;
            self.ends += kills_again.len() as u32;
        } else {
            self.cluster.restart_broker(how)?;
        }
        self.ends += 1;
        let start = started.elapsed();
        self.longest_start = self.longest_start.max(start);
        self.finish(load)?;
        self.look(round)?;
        // An orderly stop writes what was committed; a kill leaves what was written before it.
        let floor = match how {
            End::Kill => on_disk,
            End::Orderly => self.progress_committed(),
        };
        self.look_at_progress(&floor)?;
        let ledger = self.shared.ledger();
        eprintln!(
            "{:?} flush, {how:?} end, round {round}: after {target} acknowledged messages{again}, \
             back in {} ms; {} acknowledged in all, {} found",
            self.flush,
            start.as_millis(),
            ledger.acknowledged_count(),
            ledger.found_count(),
        );
        Ok(())
    }

    /// Puts load on the broker; returns at the moment of the kill.
    fn load(&self, round: u32, target: u64) -> anyhow::Result<Load> {
        let mut acknowledged = self.shared.watch();
        let on = self.runtime.handle();
        let load = Load::start(on, &self.shared, self.cluster.broker(), (round, target));
        let reached = async {
            timeout(LOAD, acknowledged.wait_for(|all| *all >= target))
                .await
                .with_context(|| {
                    format!(
                        "no {target} acknowledged messages in time; the log of `rocketmq up` ends \
                         with: {}",
                        self.cluster.log_tail()
                    )
                })?
                .context("the load ended")
                .map(|_| ())
        };
        self.runtime.block_on(reached)?;
        Ok(load)
    }

    fn finish(&self, load: Load) -> anyhow::Result<()> {
        let finished = async { timeout(LOAD, load.finish()).await };
        self.runtime
            .block_on(finished)
            .context("the load did not end")?;
        match self.shared.problem() {
            Some(problem) => anyhow::bail!("{problem}"),
            None => Ok(()),
        }
    }

    fn target(&mut self) -> u64 {
        let bound = match self.random.below(2) {
            0 => TARGET_MAX / 10,
            _ => TARGET_MAX,
        };
        1 + self.random.below(bound)
    }

    /// How long after its start each of the next processes is killed too.
    fn kills_again(&mut self) -> Vec<Duration> {
        let count = match self.random.below(KILL_AGAIN_ONE_IN) {
            0 => 1 + self.random.below(KILLS_AGAIN_MAX),
            _ => 0,
        };
        (0..count)
            .map(|_| Duration::from_micros(self.random.below(START_MICROS)))
            .collect()
    }

    fn figures(&self) -> String {
        let ledger = self.shared.ledger();
        format!(
            "seed {}: {} ends, {} messages acknowledged, {} found, {} refused, {} delayed, {} topics \
             created; longest way back {} ms",
            self.seed,
            self.ends,
            ledger.acknowledged_count(),
            ledger.found_count(),
            self.shared.refused(),
            self.shared.delayed().len(),
            self.shared.topics().len(),
            self.longest_start.as_millis()
        )
    }

    /// Leaves the data of a failed run for a look.
    pub(super) fn keep(&mut self) {
        self.cluster.keep_data();
    }
}

/// Zeroes a log from `physical` to the end of its file, as if the disk had never got it.
fn cut_log(folder: &Path, physical: i64) -> anyhow::Result<()> {
    let physical = u64::try_from(physical).context("a negative log offset")?;
    let (at, start) = (
        physical % LOG_FILE_BYTES,
        physical - physical % LOG_FILE_BYTES,
    );
    let path = folder.join(format!("{start:020}"));
    let shown = path.display().to_string();
    let mut file = File::options()
        .write(true)
        .open(&path)
        .with_context(|| shown.clone())?;
    let zeroes = vec![0; (LOG_FILE_BYTES - at) as usize];
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.write_all(&zeroes))
        .context(shown)
}

/// Files are small, so that kills also meet their ends; progress is written often.
fn manifest_text(flush: Flush) -> String {
    format!(
        "apiVersion: rocketmq.rs/v1alpha1\n\
         kind: RocketMQCluster\n\
         metadata: {{name: kill}}\n\
         spec:\n\
         \x20 version: {}\n\
         \x20 nameServer: {{replicas: 1}}\n\
         \x20 brokers:\n\
         \x20   groups: 1\n\
         \x20   replicasPerGroup: 0\n\
         \x20   flush: {}\n\
         \x20   config:\n\
         \x20     mappedFileSizeCommitLog: \"{LOG_FILE_BYTES}\"\n\
         \x20     mappedFileSizeConsumeQueue: \"2000\"\n\
         \x20     maxHashSlotNum: \"1000\"\n\
         \x20     maxIndexNum: \"4000\"\n\
         \x20     flushConsumerOffsetInterval: \"200\"\n",
        env!("CARGO_PKG_VERSION"),
        flush.word()
    )
}
