//! The thread beside the io threads: looks for silent brokers, writes files, reads large
//! registrations, tells brokers of new smallest ids.
//!
//! **Invariant:** the queue to it is bounded in jobs and in bytes, and a job that panics costs that
//! job only. Scans go before jobs, so a full queue does not keep dead brokers in routes.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use bytes::Bytes;
use rmq_net::{Client, ClientOptions, Connection};
use rmq_protocol::{
    header::NotifyMinBrokerIdChange,
    remoting::{Command, Header, request_code},
};
use tokio::{
    runtime::Builder,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{
    call::{Call, Handler, Refusal},
    core::Core,
};
use crate::route::MinIdChange;

const JOBS_MAX: usize = 1024;
/// Most bytes of bodies and headers that may wait.
const JOB_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Notices under way at once.
const NOTICES_MAX: usize = 256;
const NOTICE_TIMEOUT: Duration = Duration::from_millis(300);

/// Work for the thread.
pub(super) enum Job {
    /// A request whose handler may not run on an io thread.
    Call(Box<OwnedCall>),
    /// Tell members of a group.
    Notify(MinIdChange),
    /// The time between scans may have changed.
    Rescan,
}

/// A request that outlives its buffer.
pub(super) struct OwnedCall {
    pub(super) conn: Arc<Connection>,
    pub(super) header: Header<'static>,
    pub(super) body: Bytes,
    pub(super) wants_reply: bool,
    pub(super) handler: Handler,
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Call(call) => {
                let fields = call
                    .header
                    .ext
                    .iter()
                    .map(|(key, value)| key.len() + value.len());
                call.body.len() + fields.sum::<usize>()
            }
            Self::Notify(_) | Self::Rescan => 0,
        }
    }
}

/// The queue is full.
#[derive(Debug)]
pub(super) struct QueueFull;

/// The sending end of the queue.
#[derive(Clone)]
pub(super) struct Jobs {
    sender: mpsc::Sender<Job>,
    bytes: Arc<AtomicUsize>,
}

/// The receiving end.
pub(super) struct Queue {
    receiver: mpsc::Receiver<Job>,
    bytes: Arc<AtomicUsize>,
}

impl Jobs {
    pub(super) fn new() -> (Self, Queue) {
        let (sender, receiver) = mpsc::channel(JOBS_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        (
            Self {
                sender,
                bytes: Arc::clone(&bytes),
            },
            Queue { receiver, bytes },
        )
    }

    pub(super) fn push(&self, job: Job) -> Result<(), QueueFull> {
        let bytes = job.bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= JOB_BYTES_MAX
            && self.sender.try_send(job).is_ok()
        {
            return Ok(());
        }
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Err(QueueFull)
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Housekeeper {
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    pub(super) fn start(core: Arc<Core>, queue: Queue) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let work = Work {
            core,
            queue,
            client: Client::new(ClientOptions {
                connect_timeout: NOTICE_TIMEOUT,
                ..ClientOptions::default()
            }),
            notices: JoinSet::new(),
        };
        let thread = thread::Builder::new()
            .name("ns-housekeeper".to_owned())
            .spawn(move || {
                runtime.block_on(work.run(stopped));
                let _ = end.send(());
            })?;
        Ok(Self {
            stop: Some(stop),
            ended,
            thread: Some(thread),
        })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    pub(super) async fn stop(mut self) {
        self.stop.take();
        // An error means the thread ended without saying so.
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.stop.take();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the housekeeping thread ended with a panic");
        }
    }
}

struct Work {
    core: Arc<Core>,
    queue: Queue,
    client: Client,
    notices: JoinSet<()>,
}

impl Work {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut scanned = Instant::now();
        loop {
            let interval = self.core.read().options.live.scan_interval;
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = sleep_until(scanned + interval) => {
                    self.scan(interval);
                    scanned = Instant::now();
                }
                Some(_) = self.notices.join_next() => {}
                Some(job) = self.queue.receiver.recv() => self.take(job),
            }
        }
        while let Ok(job) = self.queue.receiver.try_recv() {
            self.take(job);
        }
        self.notices.shutdown().await;
    }

    fn take(&mut self, job: Job) {
        self.queue.bytes.fetch_sub(job.bytes(), Ordering::Relaxed);
        match job {
            Job::Call(call) => self.answer(&call),
            Job::Notify(change) => self.notify(&change),
            Job::Rescan => {}
        }
    }

    fn scan(&self, interval: Duration) {
        let now = self.core.now();
        let (actions, left) = {
            let mut state = self.core.write();
            let before = state.table.broker_count();
            let actions = state.table.expire(now, interval.as_millis() as i64);
            (actions, before - state.table.broker_count())
        };
        if left > 0 {
            tracing::warn!(
                brokers = left,
                "brokers were silent for too long and left the routes"
            );
        }
        self.core.perform(actions);
    }

    fn answer(&self, owned: &OwnedCall) {
        let call = Call {
            conn: &owned.conn,
            header: &owned.header,
            body: &owned.body,
        };
        let handled = catch_unwind(AssertUnwindSafe(|| (owned.handler)(&self.core, &call)));
        let handled = handled.unwrap_or_else(|_| {
            tracing::error!(code = owned.header.code, "a handler panicked");
            Err(Refusal::error("internal error"))
        });
        let answer = call.finish(handled);
        if owned.wants_reply
            && let Err(error) = owned.conn.send(&answer)
        {
            tracing::debug!(peer = %owned.conn.peer_addr(), %error, "answer not sent");
        }
    }

    fn notify(&mut self, change: &MinIdChange) {
        tracing::info!(broker = %change.broker, min_id = %change.min_id, "smallest broker id changed");
        for addr in &change.receivers {
            if self.notices.len() >= NOTICES_MAX {
                tracing::warn!(broker = %change.broker, "too many notices under way, rest dropped");
                return;
            }
            let (client, addr) = (self.client.clone(), addr.clone());
            let notice = notice(change);
            self.notices.spawn(async move {
                let sent = timeout(NOTICE_TIMEOUT, client.notify(&addr, notice)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    tracing::debug!(addr, "a broker was not told of a new smallest id");
                }
            });
        }
    }
}

fn notice(change: &MinIdChange) -> Command {
    let header = NotifyMinBrokerIdChange {
        min_broker_id: Some(change.min_id.get() as i64),
        broker_name: Some(change.broker.as_str().into()),
        min_broker_addr: Some(change.min_addr.as_str().into()),
        offline_broker_addr: change.offline_addr.as_deref().map(Into::into),
        ha_broker_addr: change.ha_addr.as_deref().map(Into::into),
    };
    Command::oneway(request_code::NOTIFY_MIN_BROKER_ID_CHANGE).with_header(&header)
}
