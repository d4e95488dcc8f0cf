//! What to do next: a function of what is there and what shall be.
//!
//! **Invariant:** no IO, no clock, no memory: the same look at the same manifest at the same time
//! gives the same plan, after a restart of the operator too. A cluster as it shall be gives an empty
//! one. Every step has passed [`crate::guard::check`] with the steps before it.

mod delete;
pub mod desired;
mod drain;
mod group;
mod labels;
mod name_servers;
pub mod roll;
pub mod step;
mod volumes;

use crate::guard;
use crate::observe::Observed;
use rmq_operator_api::is_downgrade;
use rmq_types::Timestamp;

pub use desired::{
    Desired, ExpandWanted, GroupWanted, NameServersWanted, ScaleInWanted, UpdateWanted,
};
pub(crate) use labels::role as member_role;
pub(crate) use roll::unsafe_to_restart;
pub use step::{Component, RestartReason, Step, Wait, WaitKind};

/// What to do next, and what is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// To be taken in this order; when one fails those of its component that follow are left.
    pub steps: Vec<Step>,
    /// What keeps more from being done.
    pub waits: Vec<Wait>,
    /// When to look again although nothing changed.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    /// Nothing to do and nothing waited for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.steps.is_empty() && self.waits.is_empty()
    }
}

/// What to do next. `desired` must come from a manifest that `validate` found sound.
#[must_use]
pub fn plan(observed: &Observed, desired: &Desired, now: Timestamp) -> Plan {
    let mut draft = Draft {
        observed,
        desired,
        now,
        plan: Plan::default(),
    };
    if !observed.fresh || desired.paused {
        return draft.plan;
    }
    if desired.deleting && !desired.deletion_blocked {
        delete::plan(&mut draft);
        return draft.plan;
    }
    if let Some(running) = newer_version(observed, desired) {
        let reason = format!(
            "version {} is older than {running}, which runs everywhere and whose files it may not \
             read: set spec.version to {running} or newer",
            desired.version
        );
        draft.wait(Component::Shared, None, WaitKind::Approval, &reason);
        return draft.plan;
    }
    if desired.deletion_blocked {
        let reason = "deletionPolicy.protect is true: set it to false, or annotate the cluster \
                      with rocketmq.rs/allow-deletion and its name";
        draft.wait(Component::Shared, None, WaitKind::Deletion, reason);
    } else if !observed.cluster.has_finalizer {
        draft.step(Step::AddFinalizer);
    }
    if observed.cluster.objects != crate::observe::ObjectsState::Same {
        draft.step(Step::Apply {
            component: Component::Shared,
        });
    }
    name_servers::plan(&mut draft);
    for index in desired.groups.keys() {
        group::plan(&mut draft, *index);
    }
    let surplus = observed
        .groups
        .keys()
        .filter(|index| !desired.groups.contains_key(index));
    for index in surplus {
        drain::plan(&mut draft, *index);
    }
    if !desired.hibernated {
        roll::plan(&mut draft);
    }
    draft.plan
}

/// The version that all pods run, if the one asked for cannot follow it. While only some pods have
/// been updated the way back is open.
fn newer_version<'a>(observed: &'a Observed, desired: &Desired) -> Option<&'a str> {
    let groups = observed.groups.values().flat_map(|group| &group.pods);
    let mut versions = groups.map(|pod| pod.version.as_deref());
    let first = versions.next()??;
    (versions.all(|version| version == Some(first)) && is_downgrade(first, &desired.version))
        .then_some(first)
}

/// A plan in the making.
struct Draft<'a> {
    observed: &'a Observed,
    desired: &'a Desired,
    now: Timestamp,
    plan: Plan,
}

impl Draft<'_> {
    /// Adds a step, unless the guard refuses it: then that is what is waited for.
    fn step(&mut self, step: Step) -> bool {
        match guard::check(self.observed, self.desired, &step, &self.plan.steps) {
            Ok(()) => {
                self.plan.steps.push(step);
                true
            }
            Err(refusal) => {
                let pod = match &step {
                    Step::RestartPod { pod, .. } | Step::LabelPod { pod, .. } => Some(pod.clone()),
                    _ => None,
                };
                let reason = refusal.to_string();
                self.wait(step.component(), pod, WaitKind::Refused, &reason);
                false
            }
        }
    }

    fn wait(&mut self, component: Component, pod: Option<String>, kind: WaitKind, reason: &str) {
        self.plan.waits.push(Wait {
            component,
            pod,
            kind,
            reason: reason.to_owned(),
            deadline: None,
        });
    }

    /// As [`Self::wait`], until a time at which to look again.
    fn wait_until(&mut self, wait: Wait, at: Timestamp) {
        self.plan.wake_at = Some(self.plan.wake_at.map_or(at, |earlier| earlier.min(at)));
        self.plan.waits.push(wait);
    }

    /// Whether this pass disturbs the group already.
    fn disturbs(&self, index: i32) -> bool {
        self.plan
            .steps
            .iter()
            .any(|step| step.is_disruptive() && step.component() == Component::Group(index))
    }
}

#[cfg(test)]
pub(crate) mod tests;
