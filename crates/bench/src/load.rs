//! The workloads: what each sends, what its answers mean, what it prepares.
//!
//! Invariant: preparation is never inside the measured window.

pub(crate) mod latency;
pub(crate) mod pop;
pub(crate) mod pull;
pub(crate) mod route;
pub(crate) mod send;
pub(crate) mod topics;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::LoadArgs;
use crate::engine::{Measured, Plan};
use crate::process::listener_of;
use crate::report::Report;

/// Milliseconds since the epoch.
fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64
}

/// The plan of a load.
fn plan(title: String, addr: SocketAddr, load: &LoadArgs) -> Plan {
    Plan {
        title,
        addr,
        connections: load.connections,
        inflight: load.inflight,
        rate: load.rate,
        warmup: load.warmup,
        duration: load.duration,
        requests_max: None,
        pid: load.pid.or_else(|| listener_of(addr)),
    }
}

/// A plan that sends a number of requests as fast as it goes.
pub(crate) fn fill_plan(addr: SocketAddr, requests: u64) -> Plan {
    Plan {
        title: "filling".to_owned(),
        addr,
        connections: 8,
        inflight: 16,
        rate: None,
        warmup: Duration::ZERO,
        duration: Duration::MAX,
        requests_max: Some(requests),
        pid: None,
    }
}

/// The report of a load that reads messages, which must have brought some.
fn reading(plan: Plan, measured: &Measured) -> Result<Report> {
    ensure!(
        measured.messages > 0 || !measured.errors.is_empty(),
        "no message came in the measured time: use --fill, or a longer --duration"
    );
    let address = plan.addr.to_string();
    Ok(Report::of(plan.title, address, plan.pid, measured))
}

/// `64 × 1 in flight` or with the rate.
fn describe(load: &LoadArgs) -> String {
    let rate = load
        .rate
        .map(|rate| format!(", {rate:.0} requests/s"))
        .unwrap_or_default();
    format!(
        "{} connections × {} in flight{rate}",
        load.connections, load.inflight
    )
}
