//! Keeps one process running: starts it, probes it, starts it again after a crash, stops it.
//!
//! **Invariant:** one supervisor per process, and it alone writes the process's state. A process
//! that never came to listen is not started again: what is wrong then (a port in use, a bad
//! configuration) is for a person to mend, and the run ends with its words.

use crate::local::backoff::Backoff;
use crate::local::child::{Addresses, Child};
use crate::local::plan::ProcessPlan;
use crate::local::probe;
use crate::local::ready_line::ReadyLine;
use crate::local::reserve::Reserved;
use crate::local::state::{Phase, ProcessState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// Between readiness probes of a process that is not ready: a start should not wait for us.
const PROBE_SOON: Duration = Duration::from_millis(25);
/// Between readiness probes of a ready process.
const PROBE_PERIOD: Duration = Duration::from_secs(1);
/// Between liveness probes, and how many must fail in a row: a kubelet's defaults.
const LIVENESS_PERIOD: Duration = Duration::from_secs(10);
const LIVENESS_FAILURES: u32 = 3;

/// Tries of a process that takes free ports and never came to listen: where none could be reserved,
/// two that start at once may have been given the same one.
const FREE_PORT_TRIES: u32 = 3;

/// What a supervisor shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Keep the process running.
    Run,
    /// Stop it in order; with force from then on.
    StopBy(Instant),
    /// End it now.
    Kill,
}

/// The state of a process, and everybody who wants to know of a change.
#[derive(Debug)]
pub(crate) struct StateCell {
    pub(crate) state: watch::Sender<ProcessState>,
    /// Counts the changes of all processes.
    pub(crate) changes: Arc<watch::Sender<u64>>,
}

impl StateCell {
    fn update(&self, change: impl FnOnce(&mut ProcessState)) {
        let changed = self.state.send_if_modified(|state| {
            let before = state.clone();
            change(state);
            before != *state
        });
        if changed {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

/// Returns when the process shall not run any more, or when nobody can say.
async fn asked_to_stop(orders: &mut watch::Receiver<Order>) {
    let _ = orders.wait_for(|order| *order != Order::Run).await;
}

#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) program: PathBuf,
    pub(crate) plan: ProcessPlan,
    /// Free ports that are kept for it, if it was planned without.
    pub(crate) reserved: Option<Reserved>,
    pub(crate) restart_wait_max: Duration,
    pub(crate) name_servers: String,
    pub(crate) orders: watch::Receiver<Order>,
    pub(crate) cell: StateCell,
}

enum End {
    Stopped,
    Crashed(String),
}

impl Supervisor {
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new(self.restart_wait_max);
        let mut orders = self.orders.clone();
        let mut tries = 0;
        loop {
            let started = Instant::now();
            let reason = match self.run_once().await {
                End::Stopped => return self.stopped(None),
                End::Crashed(reason) => reason,
            };
            if self.cell.state.borrow().address.is_none() {
                tries += 1;
                if self.plan.listen.port() == 0 && tries < FREE_PORT_TRIES {
                    continue;
                }
                return self.stopped(Some(reason));
            }
            let wait = backoff.crashed(started.elapsed());
            self.cell.update(|state| {
                state.phase = Phase::BackOff;
                state.pid = None;
                state.reason = Some(reason);
            });
            tokio::select! {
                biased;
                () = asked_to_stop(&mut orders) => return self.stopped(None),
                () = sleep(wait) => {}
            }
            self.cell
                .update(|state| state.restarts = state.restarts.saturating_add(1));
        }
    }

    async fn run_once(&self) -> End {
        let mut child = match Child::spawn(&self.program, &self.plan, &self.addresses()) {
            Ok(child) => child,
            Err(error) => return End::Crashed(error.to_string()),
        };
        let pid = child.pid;
        self.cell.update(|state| {
            state.phase = Phase::Starting;
            state.pid = Some(pid);
        });
        let mut orders = self.orders.clone();
        let watched = self.watch(child.listening());
        tokio::pin!(watched);
        tokio::select! {
            biased;
            () = asked_to_stop(&mut orders) => {}
            status = child.ended() => return End::Crashed(child.epitaph(status)),
            reason = &mut watched => {
                child.kill();
                let _ = child.ended().await;
                return End::Crashed(reason);
            }
        }
        self.stop(&mut child, orders).await;
        End::Stopped
    }

    /// Where to listen: as planned the first time, and from then on where clients know us.
    fn addresses(&self) -> Addresses {
        let state = self.cell.state.borrow();
        let (listen, health) = match &self.reserved {
            Some(reserved) => (reserved.listen, reserved.health),
            None => (self.plan.listen, self.plan.health),
        };
        Addresses {
            listen: state.address.unwrap_or(listen),
            health: state.health.unwrap_or(health),
            name_servers: self.name_servers.clone(),
        }
    }

    /// Follows the health of a process. Returns only when it must be ended, with the reason.
    async fn watch(&self, listening: impl Future<Output = Option<ReadyLine>>) -> String {
        let Some(line) = listening.await else {
            // It closed its output without the line: its end follows at once, and is seen.
            return std::future::pending().await;
        };
        self.cell.update(|state| {
            state.phase = Phase::NotReady;
            state.address = Some(line.address);
            state.health = Some(line.health);
        });
        tokio::select! {
            reason = self.watch_liveness(line.health) => reason,
            () = self.watch_readiness(line.health) => String::new(),
        }
    }

    async fn watch_readiness(&self, health: SocketAddr) {
        loop {
            let answer = probe::get(health, "/readyz").await;
            let ready = answer.is_ok();
            self.cell.update(|state| {
                state.phase = if ready { Phase::Ready } else { Phase::NotReady };
                state.reason = answer.err();
            });
            sleep(if ready { PROBE_PERIOD } else { PROBE_SOON }).await;
        }
    }

    async fn watch_liveness(&self, health: SocketAddr) -> String {
        let mut failures = 0;
        loop {
            sleep(LIVENESS_PERIOD).await;
            match probe::get(health, "/livez").await {
                Ok(()) => failures = 0,
                Err(reason) => {
                    failures += 1;
                    if failures >= LIVENESS_FAILURES {
                        return format!("was ended: liveness failed {failures} times: {reason}");
                    }
                }
            }
        }
    }

    async fn stop(&self, child: &mut Child, mut orders: watch::Receiver<Order>) {
        self.cell.update(|state| state.phase = Phase::Stopping);
        child.terminate();
        loop {
            let deadline = match *orders.borrow_and_update() {
                Order::StopBy(deadline) => deadline,
                Order::Run | Order::Kill => Instant::now(),
            };
            tokio::select! {
                biased;
                _ = child.ended() => return,
                Ok(()) = orders.changed() => {}
                () = sleep_until(deadline) => {
                    self.cell.update(|state| state.reason = Some("was killed".to_owned()));
                    child.kill();
                    let _ = child.ended().await;
                    return;
                }
            }
        }
    }

    fn stopped(&self, reason: Option<String>) {
        self.cell.update(|state| {
            state.phase = Phase::Stopped;
            state.pid = None;
            if reason.is_some() {
                state.reason = reason;
            }
        });
    }
}
