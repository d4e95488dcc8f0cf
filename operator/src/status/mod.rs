//! What is written into the status: a function of what is there and what shall be.
//!
//! **Invariant:** a cluster at rest gives the same status again and again: figures are rounded, lists
//! are sorted, and times are those of transitions, taken from the status before.

mod cluster;
mod conditions;
mod events;
mod group;
mod health;
mod texts;

use crate::observe::Observed;
use crate::plan::{Desired, Plan};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;
use rmq_operator_api::{Problem, RocketMQClusterStatus};
use rmq_types::Timestamp;

pub use cluster::cluster;
pub use conditions::{Conditions, Truth, phase};
pub use events::{About, Note, of_change, of_group_change, of_step};
pub use group::group;
pub use texts::{rounded, rounded_bytes};

/// Everything a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What is there.
    pub observed: &'a Observed,
    /// What shall be.
    pub desired: &'a Desired,
    /// What is done and waited for.
    pub plan: &'a Plan,
    /// What is wrong in the manifest; with these nothing is planned.
    pub problems: &'a [Problem],
    /// The status before.
    pub previous: Option<&'a RocketMQClusterStatus>,
    /// Version of this operator.
    pub operator_version: &'a str,
    /// Label selector of the brokers' pods.
    pub selector: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// A time as Kubernetes writes it, in whole seconds.
#[must_use]
pub fn time(at: Timestamp) -> Time {
    let seconds = at.millis().div_euclid(1000);
    Time(jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// The time that Kubernetes wrote.
#[must_use]
pub fn timestamp(time: &Time) -> Timestamp {
    Timestamp::from_millis(time.0.as_millisecond())
}

#[cfg(test)]
mod tests;
