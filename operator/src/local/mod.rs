//! A cluster on this computer: one process per role, kept alive as a kubelet keeps pods.
//!
//! **Invariant:** what runs is decided by [`plan()`], which is pure; the rest of this folder only
//! carries it out. A data folder belongs to one run at a time, and no process outlives the run.

mod backoff;
mod child;
mod cluster;
mod columns;
mod external;
mod folder;
mod holder;
pub mod plan;
mod ports;
mod probe;
mod ready_line;
mod report;
mod reserve;
mod routes;
mod state;
mod status;
mod supervise;

pub use cluster::{LocalCluster, RunOptions, StartError, Views};
pub use columns::{Columns, Extra, columns};
pub use folder::{ClaimError, ProcessLock};
pub use holder::Holder;
pub use plan::{LocalPlan, Note, Placement, PortChoice, ProcessPlan, Role, plan};
pub use ports::{Obstacle, PortProblem, PortUse, TakenPort};
pub use ready_line::ReadyLine;
pub use report::{BrokerReport, NameServerReport, ProxyReport, Report, Row};
pub use state::{Phase, ProcessState};
pub use status::{Facts, cluster_columns, cluster_status, group_columns, group_status};
