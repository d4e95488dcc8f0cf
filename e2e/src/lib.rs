//! End-to-end tests: a cluster started as a user starts it, and the official clients against it.
//!
//! **Invariant:** a fixture ends every process that it started, by its pid, when it is dropped. The
//! same suites run against our cluster and against the Java server, which is the judge. What the
//! suites check stands in `java/` and `go/`; here they are only started, counted and given a cluster.
#![forbid(unsafe_code)]

mod cluster;
mod control;
mod java;
mod kubernetes;
mod poll;
mod ports;
mod process;
mod report;
pub mod suite;
mod target;

pub use cluster::Cluster;
pub use control::{Control, send_command};
pub use java::{JavaServer, JavaTools};
pub use poll::until;
pub use process::{End, Process};
pub use report::{BrokerReport, ClusterReport, NameServerReport};
pub use target::{Against, Target};
