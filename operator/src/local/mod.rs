//! A cluster on this computer: one process per role, kept alive as a kubelet keeps pods.
//!
//! **Invariant:** what runs is decided by [`plan()`], which is pure; the rest of this folder only
//! carries it out. A data folder belongs to one run at a time, and no process outlives the run.

mod backoff;
mod child;
mod cluster;
mod folder;
pub mod plan;
mod probe;
mod ready_line;
mod report;
mod reserve;
mod routes;
mod state;
mod supervise;

pub use cluster::{LocalCluster, RunOptions, StartError};
pub use folder::{ClaimError, ProcessLock};
pub use plan::{LocalPlan, Note, Placement, PortChoice, ProcessPlan, Role, plan};
pub use ready_line::ReadyLine;
pub use report::{BrokerReport, NameServerReport, Report, Row};
pub use state::{Phase, ProcessState};
