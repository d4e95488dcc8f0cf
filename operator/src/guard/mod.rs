//! The invariants of the operator as predicates over what is there and what shall be done.
//!
//! **Invariant:** no step is taken that [`check`] refuses. The plan asks it, and the shell asks it
//! again with a fresh look right before anything that cannot be undone.

mod groups;
mod metadata;
mod pods;

pub(crate) use metadata::{Metadata, metadata};

use crate::observe::Observed;
use crate::plan::{Component, Desired, Step};
use std::fmt;

/// The invariants that a step could break. The others hold by construction: failover needs no
/// operator (I16), every step is made from cluster state alone (I8), fences end by themselves (I14),
/// waits have ends (I13, [`crate::plan::WaitKind::late_after_millis`]), a plan at rest is empty (I15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// At most one writable master in a group.
    I1,
    /// The last member in sync is never taken away.
    I2,
    /// Enough members in sync are left.
    I3,
    /// At most one pod of a group and so many groups are disturbed by us.
    I4,
    /// A controller restarts only if the others are a majority.
    I5,
    /// Nothing is disturbed on a stale view, without quorum, or between epochs.
    I6,
    /// What is deleted is what was seen.
    I7,
    /// Disks of members in sync stay; others go by policy only.
    I9,
    /// Labels never go back to an older epoch.
    I10,
    /// The old master is unlabelled before the new one is labelled.
    I11,
    /// Lists of addresses never become empty or lose entries by a failed look-up.
    I12,
    /// Acknowledged messages survive every planned step.
    I18,
}

/// Why a step is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step} is not done ({invariant:?}): {why}")]
pub struct Refusal {
    /// What was to be done.
    pub step: String,
    /// What it would break.
    pub invariant: Invariant,
    /// How.
    pub why: String,
}

/// Whether `step` may be taken after `before` of the same pass.
pub fn check(
    observed: &Observed,
    desired: &Desired,
    step: &Step,
    before: &[Step],
) -> Result<(), Refusal> {
    let case = Case {
        observed,
        desired,
        step,
        before,
    };
    case.disruption()?;
    match step {
        Step::AddFinalizer
        | Step::PushNameServerConfig { .. }
        | Step::CopyMetadata { .. }
        | Step::MarkDrained { .. } => Ok(()),
        Step::RemoveFinalizer => case.finalizer(),
        Step::Apply { component } => case.apply(*component),
        Step::PushBrokerConfig { keys, .. } => case.push(keys),
        Step::OpenGroup { group, ordinal } => case.open(*group, *ordinal),
        Step::CloseGroup { group, .. } => case.close(*group),
        Step::LabelPod {
            group,
            pod,
            uid,
            role,
            epoch,
            ..
        } => case.label(*group, pod, uid, (role, *epoch)),
        Step::RestartPod {
            component,
            pod,
            uid,
            ordinal,
            ..
        } => case.restart(*component, pod, uid, *ordinal),
        Step::GrowVolume {
            group,
            ordinal,
            bytes,
            ..
        } => case.grow(*group, *ordinal, *bytes),
        Step::RecreateSet { group, uid } => case.recreate(*group, uid),
        Step::ReplaceVolume {
            group,
            ordinal,
            claim,
            pod,
        } => case.replace(*group, *ordinal, claim.as_ref(), pod.as_ref()),
        Step::StopGroup { group, uid } => case.stop(*group, uid),
        Step::Unregister { group, from, .. } => case.unregister(*group, from),
        Step::DeleteVolume { group, claim, uid } => case.delete_volume(*group, claim, uid),
        Step::RemoveGroup { group } => case.remove(*group),
    }
}

/// A step and everything it is judged by.
struct Case<'a> {
    observed: &'a Observed,
    desired: &'a Desired,
    step: &'a Step,
    before: &'a [Step],
}

impl Case<'_> {
    fn refuse<T>(&self, invariant: Invariant, why: impl fmt::Display) -> Result<T, Refusal> {
        Err(Refusal {
            step: self.step.to_string(),
            invariant,
            why: why.to_string(),
        })
    }

    fn ensure(
        &self,
        holds: bool,
        invariant: Invariant,
        why: impl fmt::Display,
    ) -> Result<(), Refusal> {
        if holds {
            Ok(())
        } else {
            self.refuse(invariant, why)
        }
    }

    /// What holds for everything that takes something from service or cannot be undone.
    fn disruption(&self) -> Result<(), Refusal> {
        if !self.step.is_disruptive() {
            return Ok(());
        }
        self.ensure(
            self.observed.fresh,
            Invariant::I6,
            "what is there is not known yet",
        )?;
        let component = self.step.component();
        let twice = self
            .before
            .iter()
            .any(|earlier| earlier.is_disruptive() && earlier.component() == component);
        self.ensure(
            !twice,
            Invariant::I4,
            format!("something else is done to {component} in this pass"),
        )?;
        let quorum = match component {
            Component::Group(index) => self
                .observed
                .groups
                .get(&index)
                .and_then(|group| group.sync.as_ref())
                .is_none_or(|sync| sync.quorum),
            Component::Shared | Component::NameServers => true,
        };
        self.ensure(quorum, Invariant::I6, "the controllers have no majority")
    }

    fn finalizer(&self) -> Result<(), Refusal> {
        self.ensure(
            self.desired.deleting && !self.desired.deletion_blocked,
            Invariant::I9,
            "the deletion is protected",
        )
    }

    fn apply(&self, component: Component) -> Result<(), Refusal> {
        if component != Component::NameServers {
            return Ok(());
        }
        self.ensure(
            !self.desired.name_servers.addresses.is_empty(),
            Invariant::I12,
            "the list of NameServers would be empty",
        )?;
        let shrinks = self
            .observed
            .name_servers
            .set
            .as_ref()
            .is_some_and(|set| set.replicas > self.desired.name_servers.replicas);
        if !shrinks || self.desired.hibernated {
            return Ok(());
        }
        let wanted = &self.desired.name_servers.addresses;
        for group in self.observed.groups.values() {
            for (ordinal, broker) in group.known_brokers() {
                let left = broker
                    .name_servers()
                    .into_iter()
                    .find(|address| !wanted.iter().any(|known| known == address));
                if let Some(address) = left {
                    let name = &group.broker_name;
                    return self.refuse(
                        Invariant::I12,
                        format!("member {ordinal} of {name} still registers at {address}"),
                    );
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
