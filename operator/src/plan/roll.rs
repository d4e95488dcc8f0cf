//! Rolling updates: which pod is restarted next, and why the others wait.
//!
//! **Invariant:** NameServers before brokers, broken outdated pods before working ones, replicas
//! before masters; one pod of a group at a time; a roll goes on only over healthy updated pods, the
//! first of which was healthy for the time of the canary. All of it from the pods alone: a restart of
//! the operator or a newer template changes nothing but the answer.

use super::{Component, Draft, RestartReason, Step, Wait, WaitKind};
use crate::observe::{Answer, GroupSeen, Observed, PodSeen, Risk};
use rmq_operator_api::UpdateType;
use rmq_types::Timestamp;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    if !anything_outdated(observed) {
        return;
    }
    if let Some(reason) = not_ours(draft) {
        draft.wait(Component::Shared, None, WaitKind::Approval, reason);
        return;
    }
    if name_servers(draft) {
        return;
    }
    let mut indexes: Vec<i32> = outdated_groups(observed).collect();
    indexes.sort_by_key(|index| (!has_stuck_outdated(&observed.groups[index]), *index));
    let held = halted(draft)
        .map(|pod| held_by(pod, WaitKind::RolloutHalted))
        .or_else(|| {
            let servers = &observed.name_servers.pods;
            let pod = servers.iter().find(|pod| !pod.is_healthy())?;
            Some(held_by(pod, WaitKind::Rollout))
        });
    for index in indexes {
        group(draft, index, held.as_ref());
    }
}

/// What keeps working pods from being replaced.
fn held_by(pod: &PodSeen, kind: WaitKind) -> Wait {
    let reason = match (&pod.stuck, kind) {
        (Some(stuck), WaitKind::RolloutHalted) => format!(
            "the updated pod {} does not run ({:?}: {})",
            pod.name, stuck.reason, stuck.message
        ),
        _ => format!("pod {} is not ready", pod.name),
    };
    Wait {
        component: Component::Shared,
        pod: Some(pod.name.clone()),
        kind,
        reason,
        deadline: None,
    }
}

/// The template that the pods of a set shall have.
fn newest(set: Option<&crate::observe::SetSeen>) -> Option<&str> {
    set?.update_revision.as_deref()
}

fn outdated_groups(observed: &Observed) -> impl Iterator<Item = i32> + '_ {
    observed
        .groups
        .iter()
        .filter(|(_, group)| outdated(group).next().is_some())
        .map(|(index, _)| *index)
}

fn outdated(group: &GroupSeen) -> impl Iterator<Item = &PodSeen> {
    let revision = newest(group.set.as_ref());
    group
        .pods
        .iter()
        .filter(move |pod| pod.is_outdated(revision))
}

fn has_stuck_outdated(group: &GroupSeen) -> bool {
    outdated(group).any(|pod| pod.stuck.is_some())
}

fn outdated_name_servers(observed: &Observed) -> impl Iterator<Item = &PodSeen> {
    let revision = newest(observed.name_servers.set.as_ref());
    observed
        .name_servers
        .pods
        .iter()
        .filter(move |pod| pod.is_outdated(revision))
}

fn anything_outdated(observed: &Observed) -> bool {
    outdated_name_servers(observed).next().is_some() || outdated_groups(observed).next().is_some()
}

/// Why the operator does not replace pods, if it does not.
fn not_ours(draft: &Draft<'_>) -> Option<&'static str> {
    let update = &draft.desired.update;
    let (observed, token) = (draft.observed, update.restart_token.as_ref());
    match update.kind {
        UpdateType::RoleAware => None,
        UpdateType::OnDelete => {
            Some("updateStrategy.type is OnDelete: delete outdated pods to replace them")
        }
        UpdateType::Supervised => {
            let groups = observed.groups.values().flat_map(outdated);
            let asked = outdated_name_servers(observed)
                .chain(groups)
                .any(|pod| token.is_some() && pod.restart_token.as_ref() != token);
            (!asked).then_some(
                "updateStrategy.type is Supervised: change the annotation rocketmq.rs/restart",
            )
        }
    }
}

/// Whether NameServers are rolled or waited for, so that brokers are not.
fn name_servers(draft: &mut Draft<'_>) -> bool {
    let observed = draft.observed;
    let component = Component::NameServers;
    let mut pods: Vec<&PodSeen> = outdated_name_servers(observed)
        .filter(|pod| !pod.deleting)
        .collect();
    // The broken first, then the highest ordinal.
    pods.sort_by_key(|pod| (pod.stuck.is_none(), std::cmp::Reverse(pod.ordinal)));
    let Some(pod) = pods.first() else {
        return outdated_name_servers(observed).next().is_some();
    };
    let why = if pod.stuck.is_some() {
        RestartReason::StuckWithOldTemplate
    } else {
        RestartReason::TemplateChanged
    };
    let all = &observed.name_servers.pods;
    let updated: Vec<&PodSeen> = all
        .iter()
        .filter(|other| !pods.iter().any(|outdated| outdated.name == other.name))
        .collect();
    if why == RestartReason::TemplateChanged {
        if let Some(broken) = all
            .iter()
            .find(|other| other.name != pod.name && !other.is_healthy())
        {
            let reason = format!("NameServer {} is not ready", broken.name);
            draft.wait(
                component,
                Some(broken.name.clone()),
                WaitKind::Rollout,
                &reason,
            );
            return true;
        }
        if let Some(reason) = not_registered(observed, &pod.name) {
            draft.wait(
                component,
                Some(pod.name.clone()),
                WaitKind::Rollout,
                &reason,
            );
            return true;
        }
        if let Some(wait) = soaking(draft, component, &updated) {
            draft.wait_until(wait.0, wait.1);
            return true;
        }
    }
    draft.step(restart(component, pod, why));
    true
}

/// What a NameServer other than `leaving` lacks, of the brokers that run.
fn not_registered(observed: &Observed, leaving: &str) -> Option<String> {
    if observed.name_servers.pods.len() <= 1 {
        return None;
    }
    let running: Vec<&str> = observed
        .groups
        .values()
        .filter(|group| group.is_readable())
        .map(|group| group.broker_name.as_str())
        .collect();
    observed
        .name_servers
        .views
        .iter()
        .filter(|(address, _)| !address.starts_with(&format!("{leaving}.")))
        .find_map(|(address, view)| match view {
            Answer::Unknown(why) => Some(format!("NameServer {address} does not answer: {why}")),
            Answer::Known(view) => running
                .iter()
                .find(|name| !view.brokers.contains_key(**name))
                .map(|name| format!("{name} is not registered at {address} yet")),
        })
}

/// What stopped the roll: an updated pod that cannot run.
fn halted<'a>(draft: &Draft<'a>) -> Option<&'a PodSeen> {
    if !draft.desired.update.auto_pause || draft.desired.update.approved {
        return None;
    }
    halted_by(draft.observed)
}

/// An updated pod that cannot run, while others have an older template.
#[must_use]
pub fn halted_by(observed: &Observed) -> Option<&PodSeen> {
    if !anything_outdated(observed) {
        return None;
    }
    let servers = &observed.name_servers;
    let sets = observed
        .groups
        .values()
        .map(|group| (&group.pods, group.set.as_ref()));
    std::iter::once((&servers.pods, servers.set.as_ref()))
        .chain(sets)
        .find_map(|(pods, set)| {
            let revision = newest(set)?;
            pods.iter().find(|pod| {
                pod.stuck.is_some() && !pod.deleting && pod.revision.as_deref() == Some(revision)
            })
        })
}

fn group(draft: &mut Draft<'_>, index: i32, held: Option<&Wait>) {
    let component = Component::Group(index);
    let observed = draft.observed;
    let Some(seen) = observed.groups.get(&index) else {
        return;
    };
    if draft.disturbs(index) {
        return;
    }
    let stuck = outdated(seen).find(|pod| pod.stuck.is_some() && !pod.deleting);
    if let Some(pod) = stuck {
        draft.step(restart(component, pod, RestartReason::StuckWithOldTemplate));
        return;
    }
    if let Some(held) = held {
        draft.plan.waits.push(Wait {
            component,
            ..held.clone()
        });
        return;
    }
    if let Some(pod) = seen.pods.iter().find(|pod| !pod.is_healthy()) {
        let reason = format!("pod {} is not ready", pod.name);
        draft.wait(
            component,
            Some(pod.name.clone()),
            WaitKind::Rollout,
            &reason,
        );
        return;
    }
    let updated: Vec<&PodSeen> = observed.groups.values().flat_map(updated_pods).collect();
    if let Some((wait, at)) = soaking(draft, component, &updated) {
        draft.wait_until(wait, at);
        return;
    }
    let Some(pod) = next(seen) else {
        return;
    };
    if let Some(reason) = unsafe_to_restart(seen, pod) {
        draft.wait(
            component,
            Some(pod.name.clone()),
            WaitKind::Rollout,
            &reason,
        );
        return;
    }
    draft.step(restart(component, pod, RestartReason::TemplateChanged));
}

fn updated_pods(group: &GroupSeen) -> impl Iterator<Item = &PodSeen> {
    let revision = newest(group.set.as_ref());
    group
        .pods
        .iter()
        .filter(move |pod| revision.is_some() && pod.revision.as_deref() == revision)
}

/// The canary's time, if no updated pod was healthy for so long.
fn soaking(
    draft: &Draft<'_>,
    component: Component,
    updated: &[&PodSeen],
) -> Option<(Wait, Timestamp)> {
    let soak = draft.desired.update.soak_millis;
    let longest = updated
        .iter()
        .filter(|pod| pod.is_healthy())
        .filter_map(|pod| pod.ready_since)
        .min();
    let first = updated.first()?;
    let since = longest.unwrap_or(draft.now);
    let at = since.plus_millis(soak);
    if longest.is_some() && at <= draft.now {
        return None;
    }
    let wait = Wait {
        component,
        pod: Some(first.name.clone()),
        kind: WaitKind::Rollout,
        reason: format!("{} must be healthy for {} s first", first.name, soak / 1000),
        deadline: None,
    };
    Some((wait, at))
}

/// The outdated pod that goes first: out of sync, then the highest ordinal, the master last.
fn next(seen: &GroupSeen) -> Option<&PodSeen> {
    outdated(seen)
        .filter(|pod| !pod.deleting)
        .min_by_key(|pod| {
            (
                seen.master() == Some(pod.ordinal),
                seen.in_sync(pod.ordinal),
                std::cmp::Reverse(pod.ordinal),
            )
        })
}

/// Why a healthy member must not be restarted now.
pub(crate) fn unsafe_to_restart(seen: &GroupSeen, pod: &PodSeen) -> Option<String> {
    let Some(broker) = seen.broker(pod.ordinal) else {
        return Some("its broker does not say whether it is safe to restart".to_owned());
    };
    let risks: Vec<&str> = broker
        .risks
        .iter()
        .filter(|risk| risk.blocks())
        .map(|risk| Risk::as_str(*risk))
        .collect();
    (!risks.is_empty()).then(|| format!("its broker says {}", risks.join(", ")))
}

fn restart(component: Component, pod: &PodSeen, why: RestartReason) -> Step {
    Step::RestartPod {
        component,
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        ordinal: pod.ordinal,
        why,
    }
}
