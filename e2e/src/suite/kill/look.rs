//! What is looked at after the broker came back.
//!
//! **Invariant:** a look ends within its limit, and what it finds wrong is an error that names topic,
//! queue and offset or the thing that is missing.

use super::ledger::FAULTS_MAX;
use super::load::Progress;
use super::message::Queue;
use super::rounds::Run;
use super::wire;
use crate::process::End;
use anyhow::Context as _;
use rmq_protocol::body::ConsumerOffsets;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longest that a look at all queues may take.
const LOOK: Duration = Duration::from_mins(5);
/// Between two questions for something that comes later.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest that the index may lag behind.
const INDEX: Duration = Duration::from_secs(20);
/// Longest that delayed messages may take to come after the last start.
const DELAYED: Duration = Duration::from_mins(1);

impl Run {
    /// Everything new in every queue, the topics that were created, and the index.
    pub(super) fn look(&self, round: u32) -> anyhow::Result<()> {
        let look = async {
            for queue in Queue::all() {
                let from = self.shared.ledger().next(queue);
                let (start, end) = self.wire.bounds(queue).await?;
                anyhow::ensure!(start == 0, "{queue} begins at {start}");
                let found = self.wire.read(queue, from).await?;
                self.shared.ledger().extend(round, queue, end, &found);
            }
            self.no_fault()?;
            self.look_at_topics().await?;
            self.look_at_index().await
        };
        let looked = async { timeout(LOOK, look).await };
        self.runtime
            .block_on(looked)
            .context("a look at all queues took too long")?
    }

    fn no_fault(&self) -> anyhow::Result<()> {
        let ledger = self.shared.ledger();
        let (faults, in_all) = ledger.faults();
        if in_all == 0 {
            return Ok(());
        }
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let more = if in_all > FAULTS_MAX { "\n…" } else { "" };
        anyhow::bail!("{in_all} faults:\n{}{more}", lines.join("\n"))
    }

    async fn look_at_topics(&self) -> anyhow::Result<()> {
        let there: HashSet<String> = self.wire.topics().await?.into_iter().collect();
        let missing: Vec<String> = self
            .shared
            .topics()
            .iter()
            .filter(|topic| !there.contains(*topic))
            .cloned()
            .collect();
        anyhow::ensure!(missing.is_empty(), "created topics are gone: {missing:?}");
        Ok(())
    }

    /// The key of the last acknowledged message of each topic finds it, once.
    async fn look_at_index(&self) -> anyhow::Result<()> {
        for (topic, number) in self.shared.last_of_topics() {
            let name = Queue { topic, queue: 0 }.topic_name();
            let indexed = async {
                loop {
                    match self.wire.count_by_key(&name, number).await? {
                        0 => sleep(PAUSE).await,
                        count => return Ok::<usize, anyhow::Error>(count),
                    }
                }
            };
            let count = timeout(INDEX, indexed).await.with_context(|| {
                format!("topic {name}: acknowledged message {number} is not found by its key")
            })??;
            anyhow::ensure!(
                count == 1,
                "topic {name}: the key of message {number} finds it {count} times"
            );
        }
        Ok(())
    }

    /// What the file of the broker holds of the committing group. It is whole at every moment.
    pub(super) fn progress_on_disk(&self) -> anyhow::Result<BTreeMap<Queue, i64>> {
        let folder = self.cluster.broker_data_dir().join("config");
        let path = folder.join("consumerOffset.json");
        let Ok(text) = std::fs::read(&path) else {
            return Ok(BTreeMap::new());
        };
        let table = ConsumerOffsets::from_json(&text)
            .with_context(|| format!("{} is not whole", path.display()))?
            .offset_table;
        let of = |queue: Queue| {
            let offsets = table.get(&wire::progress_key(queue))?;
            Some((queue, *offsets.get(&queue.queue.into())?))
        };
        Ok(Queue::all().filter_map(of).collect())
    }

    /// What was answered to the committing group.
    pub(super) fn progress_committed(&self) -> BTreeMap<Queue, i64> {
        let progress = self.shared.progress();
        let committed = progress.iter().map(|(queue, p)| (*queue, p.committed));
        committed.collect()
    }

    /// Progress is not behind what was on disk before the kill, nor ahead of what was committed.
    pub(super) fn look_at_progress(&self, on_disk: &BTreeMap<Queue, i64>) -> anyhow::Result<()> {
        self.runtime.block_on(async {
            for queue in Queue::all() {
                let now = self.wire.committed(queue).await?;
                let floor = on_disk.get(&queue).copied().unwrap_or(0);
                let mut progress = self.shared.progress();
                let progress = progress.entry(queue).or_default();
                anyhow::ensure!(
                    now >= floor,
                    "{queue}: progress {now} is behind {floor}, which was safe before the end"
                );
                anyhow::ensure!(
                    now <= progress.tried,
                    "{queue}: progress {now} is ahead of {}, the last commit",
                    progress.tried
                );
                *progress = Progress {
                    tried: now,
                    committed: now,
                };
            }
            Ok(())
        })
    }

    /// Waits until every acknowledged delayed message has come; gives how often each did.
    async fn await_delayed(&self) -> anyhow::Result<HashMap<u64, u32>> {
        let wanted = self.shared.delayed().clone();
        let mut missing = Vec::new();
        let all = async {
            loop {
                let came = self.delayed_that_came().await?;
                let still = wanted.iter().filter(|number| !came.contains_key(number));
                missing = still.copied().collect();
                if missing.is_empty() {
                    return Ok::<_, anyhow::Error>(came);
                }
                sleep(PAUSE).await;
            }
        };
        let came = timeout(DELAYED, all).await;
        came.with_context(|| format!("acknowledged delayed messages did not come: {missing:?}"))?
    }

    async fn delayed_that_came(&self) -> anyhow::Result<HashMap<u64, u32>> {
        let mut came = HashMap::new();
        for queue in Queue::delayed() {
            for found in self.wire.read(queue, 0).await? {
                let offset = found.offset;
                let Some((number, of)) = found.message else {
                    anyhow::bail!("{queue} offset {offset}: a body that nobody sent");
                };
                anyhow::ensure!(of == queue, "{queue} offset {offset}: a message of {of}");
                *came.entry(number).or_default() += 1;
            }
        }
        Ok(came)
    }

    /// Stops in order, starts again, and reads everything once more from the beginning.
    pub(super) fn last_look(&mut self, round: u32) -> anyhow::Result<()> {
        let progress = self.progress_committed();
        let came = self.runtime.block_on(self.await_delayed())?;
        self.cluster.restart_broker(End::Orderly)?;
        let look = async {
            for queue in Queue::all() {
                let (start, _) = self.wire.bounds(queue).await?;
                let found = self.wire.read(queue, start).await?;
                self.shared.ledger().compare(round, queue, start, &found);
            }
            self.no_fault()?;
            for (queue, committed) in progress {
                let now = self.wire.committed(queue).await?;
                anyhow::ensure!(
                    now == committed,
                    "{queue}: progress was {committed} before an orderly stop and is {now} after"
                );
            }
            self.look_at_topics().await?;
            let more = self.delayed_that_came().await?;
            anyhow::ensure!(
                more == came,
                "delayed messages came again after an orderly stop: {} before, {} after",
                came.values().sum::<u32>(),
                more.values().sum::<u32>()
            );
            Ok(())
        };
        let looked = async { timeout(LOOK, look).await };
        self.runtime
            .block_on(looked)
            .context("the last look at all queues took too long")?
    }
}
