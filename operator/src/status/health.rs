//! What is healthy, what changes and what is broken, as conditions.
//!
//! **Invariant:** each function sets one condition, whatever is there.

use super::conditions::{Conditions, Truth, find};
use super::{Facts, texts::sized};
use crate::observe::{Answer, GroupSeen, PodSeen, VolumePhase};
use crate::plan::{WaitKind, roll};
use rmq_operator_api::{ConditionReason as R, ConditionType as T};
use std::collections::BTreeMap;

/// Part of a disk in use, thousandths, from which it is called full.
const DISK_FULL_PERMILLE: u32 = 900;

/// Every pod of the cluster.
pub(super) fn pods<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a PodSeen> {
    let groups = facts.observed.groups.values().flat_map(|group| &group.pods);
    facts.observed.name_servers.pods.iter().chain(groups)
}

/// The groups that shall be, with what is there of them.
pub(super) fn wanted<'a>(facts: &Facts<'a>) -> impl Iterator<Item = (i32, Option<&'a GroupSeen>)> {
    let groups = &facts.observed.groups;
    facts
        .desired
        .groups
        .keys()
        .map(|index| (*index, groups.get(index)))
}

pub(super) fn ready(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let mut set = |truth, reason, message: &str| conditions.set(T::Ready, truth, reason, message);
    if !facts.problems.is_empty() {
        let all: Vec<String> = facts.problems.iter().map(ToString::to_string).collect();
        return set(Truth::False, R::InvalidSpec, &all.join("; "));
    }
    if facts.desired.hibernated {
        return set(Truth::False, R::Stopped, "operation.hibernated is true");
    }
    let servers = facts.desired.name_servers.replicas.max(0) as usize;
    let seen = &facts.observed.name_servers.pods;
    let up = seen.iter().filter(|pod| pod.is_healthy()).count();
    if servers > 0 && up == 0 {
        let reason = if facts.observed.opened_once() {
            R::NameServersUnavailable
        } else {
            R::Provisioning
        };
        return set(Truth::False, reason, "no NameServer is ready");
    }
    for (index, group) in wanted(facts) {
        let name = &facts.desired.groups[&index].broker_name;
        match group {
            Some(group) if group.is_writable() => {}
            Some(group) if group.opened => {
                let message = format!("{name} takes no sends: {}", super::group::unwritable(group));
                return set(Truth::False, R::GroupNotWritable, &message);
            }
            _ => {
                let message = format!("{name} is being made");
                return set(Truth::False, R::Provisioning, &message);
            }
        }
    }
    if up < servers {
        let message = format!("{up} of {servers} NameServers are ready");
        return set(Truth::False, R::NameServersUnavailable, &message);
    }
    if let Some(pod) = pods(facts).find(|pod| !pod.is_healthy()) {
        return set(
            Truth::False,
            R::NotReady,
            &format!("pod {} is not ready", pod.name),
        );
    }
    set(Truth::True, R::AllComponentsReady, "everything runs");
}

pub(super) fn available(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let writable = facts
        .observed
        .groups
        .values()
        .filter(|g| g.is_writable())
        .count();
    let (truth, reason, message) = if facts.desired.hibernated {
        (
            Truth::False,
            R::Stopped,
            "operation.hibernated is true".to_owned(),
        )
    } else if writable > 0 {
        (
            Truth::True,
            R::WritesServed,
            format!("{writable} groups take sends"),
        )
    } else if !facts
        .observed
        .name_servers
        .views
        .values()
        .any(|view| view.known().is_some())
    {
        (
            Truth::False,
            R::NoNameServer,
            "no NameServer answers".to_owned(),
        )
    } else {
        (
            Truth::False,
            R::AllGroupsDown,
            "no group takes sends".to_owned(),
        )
    };
    conditions.set(T::Available, truth, reason, &message);
}

pub(super) fn replication(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let controlled = wanted(facts).any(|(_, group)| group.is_some_and(|g| g.sync.is_some()));
    if controlled {
        quorum(facts, conditions);
        members(facts, conditions);
        reads(facts, conditions);
        return;
    }
    let none = "there is no controller yet";
    conditions.set(T::QuorumHealthy, Truth::Unknown, R::NoController, none);
    let message = "there are no replicas to read from";
    conditions.set(T::ReadReplicasServing, Truth::False, R::Disabled, message);
    let asked = facts.desired.replicas_asked;
    if asked > 0 {
        let message = format!(
            "replicasPerGroup asks for {asked}; replicas need the controller, which is not there \
             yet: each group runs its master alone"
        );
        conditions.set(T::ReplicationHealthy, Truth::False, R::NoReplicas, &message);
    } else {
        let message = "each group runs its master alone, as asked";
        conditions.set(T::ReplicationHealthy, Truth::True, R::SingleMember, message);
    }
}

fn quorum(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let quorum = wanted(facts)
        .filter_map(|(_, group)| group?.sync.as_ref())
        .all(|sync| sync.quorum);
    let (truth, reason, message) = if quorum {
        (Truth::True, R::MajorityCaughtUp, "a majority agrees")
    } else {
        (
            Truth::False,
            R::NoLeader,
            "the controllers have no majority",
        )
    };
    conditions.set(T::QuorumHealthy, truth, reason, message);
}

fn members(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let below = wanted(facts).find_map(|(index, group)| {
        let min = facts.desired.groups[&index].min_in_sync.max(1) as usize;
        let in_sync = group?.sync.as_ref()?.in_sync.len();
        (in_sync < min).then(|| format!("group {index} has {in_sync} of {min} members in sync"))
    });
    let behind = wanted(facts)
        .filter_map(|(_, group)| group)
        .find(|group| group.pods.iter().any(|pod| !group.in_sync(pod.ordinal)));
    let (truth, reason, message) = match (below, behind) {
        (Some(message), _) => (Truth::False, R::BelowMinInSync, message),
        (None, Some(group)) => {
            let message = format!("a replica of {} is behind", group.broker_name);
            (Truth::False, R::ReplicaLagging, message)
        }
        (None, None) => {
            let message = "every member has what its master has".to_owned();
            (Truth::True, R::AllInSync, message)
        }
    };
    conditions.set(T::ReplicationHealthy, truth, reason, &message);
}

fn reads(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let readable = wanted(facts).any(|(_, group)| {
        group.is_some_and(|g| {
            g.known_brokers()
                .any(|(ordinal, broker)| broker.recovered && g.master() != Some(ordinal))
        })
    });
    let (truth, reason, message) = if readable {
        (Truth::True, R::Routed, "replicas answer pulls")
    } else {
        (
            Truth::False,
            R::NoReadableReplica,
            "no replica answers pulls",
        )
    };
    conditions.set(T::ReadReplicasServing, truth, reason, message);
}

/// NameServers that lack a broker that runs, and brokers registered under another address than they
/// should be, by broker name.
pub(super) fn route_gaps(facts: &Facts<'_>) -> BTreeMap<String, Vec<String>> {
    let mut gaps: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, group) in wanted(facts) {
        let Some(group) = group.filter(|group| group.is_readable()) else {
            continue;
        };
        for (address, view) in &facts.observed.name_servers.views {
            if view
                .known()
                .is_some_and(|view| !view.brokers.contains_key(&group.broker_name))
            {
                let missing = gaps.entry(group.broker_name.clone()).or_default();
                missing.push(address.clone());
            }
        }
    }
    gaps
}

fn wrong_address(facts: &Facts<'_>) -> Option<String> {
    wanted(facts)
        .filter_map(|(_, group)| group)
        .find_map(|group| {
            group.known_brokers().find_map(|(_, broker)| {
                let intended = broker.intended_address.as_ref()?;
                (broker.address != *intended).then(|| {
                    format!(
                        "{} registers {}, and should register {intended}",
                        group.broker_name, broker.address
                    )
                })
            })
        })
}

pub(super) fn routes(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let views = &facts.observed.name_servers.views;
    let silent = views.iter().find_map(|(address, view)| match view {
        Answer::Unknown(why) => Some(format!("{address} does not answer: {why}")),
        Answer::Known(_) => None,
    });
    let gaps = route_gaps(facts);
    let (truth, reason, message) = if facts.desired.hibernated {
        (
            Truth::Unknown,
            R::Stopped,
            "operation.hibernated is true".to_owned(),
        )
    } else if let Some((name, missing)) = gaps.iter().next() {
        let message = format!("{name} is not registered at {}", missing.join(", "));
        (Truth::False, R::BrokerMissingOnNameServer, message)
    } else if let Some(message) = wrong_address(facts) {
        (Truth::False, R::WrongAddressRegistered, message)
    } else if let Some(message) = silent {
        (Truth::Unknown, R::Unreachable, message)
    } else if views.is_empty() {
        (
            Truth::Unknown,
            R::Unreachable,
            "no NameServer was asked yet".to_owned(),
        )
    } else {
        (
            Truth::True,
            R::Agreed,
            "every NameServer has every broker".to_owned(),
        )
    };
    conditions.set(T::RoutesConsistent, truth, reason, &message);
}

pub(super) fn progressing(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let waits = |kind: WaitKind| facts.plan.waits.iter().find(|wait| wait.kind == kind);
    let text = |kind: WaitKind| {
        waits(kind)
            .map(|wait| wait.reason.clone())
            .unwrap_or_default()
    };
    let outdated = pods_outdated(facts) > 0;
    let rolling = outdated || last_pods_come_back(facts);
    let (truth, reason, message) = if waits(WaitKind::RolloutHalted).is_some() {
        (Truth::True, R::RolloutPaused, text(WaitKind::RolloutHalted))
    } else if !facts.observed.opened_once() && !facts.desired.hibernated {
        (Truth::True, R::Provisioning, text(WaitKind::Provisioning))
    } else if rolling && waits(WaitKind::Approval).is_some() {
        (Truth::False, R::Idle, text(WaitKind::Approval))
    } else if rolling && !outdated {
        let message = "the pods that were replaced last are not ready yet".to_owned();
        (Truth::True, R::RollingUpdate, message)
    } else if rolling {
        (Truth::True, R::RollingUpdate, text(WaitKind::Rollout))
    } else if let Some(message) = scaling(facts) {
        (Truth::True, R::Scaling, message)
    } else if facts.observed.groups.values().any(|group| {
        let mut volumes = group.volumes.values();
        volumes.any(crate::observe::VolumeSeen::is_growing)
    }) {
        (Truth::True, R::ExpandingStorage, text(WaitKind::Volume))
    } else {
        (Truth::False, R::Idle, "nothing is being changed".to_owned())
    };
    conditions.set(T::Progressing, truth, reason, &message);
}

/// Whether a roll replaced its last pods and they are not ready yet: it is over when they are.
fn last_pods_come_back(facts: &Facts<'_>) -> bool {
    let before = facts.previous.map(|status| status.conditions.as_slice());
    let rolled = before
        .and_then(|conditions| find(conditions, T::Progressing))
        .is_some_and(|c| c.status == "True" && c.reason == R::RollingUpdate.as_str());
    let servers = &facts.observed.name_servers;
    let wanted = servers.set.as_ref().map_or(0, |set| set.replicas.max(0)) as usize;
    let up = servers.pods.iter().filter(|pod| pod.is_healthy()).count();
    rolled
        && (up < wanted
            || facts
                .observed
                .groups
                .values()
                .any(|group| group.unready() > 0))
}

fn scaling(facts: &Facts<'_>) -> Option<String> {
    let (desired, observed) = (facts.desired, facts.observed);
    let leaving = observed
        .groups
        .iter()
        .find(|(index, group)| !desired.groups.contains_key(index) && group.has_objects);
    if let Some((_, group)) = leaving {
        return Some(format!("{} is being removed", group.broker_name));
    }
    let coming = wanted(facts).find(|(_, group)| group.is_none_or(|group| !group.opened));
    if let Some((index, _)) = coming {
        return Some(format!(
            "{} is being made",
            desired.groups[&index].broker_name
        ));
    }
    let servers = observed.name_servers.pods.len();
    let wanted = desired.name_servers.replicas.max(0) as usize;
    (servers != wanted && !desired.hibernated)
        .then(|| format!("{servers} NameServers run, {wanted} are asked for"))
}

/// Pods whose template is not the newest.
pub(super) fn pods_outdated(facts: &Facts<'_>) -> usize {
    let servers = &facts.observed.name_servers;
    let count = |pods: &[PodSeen], set: Option<&crate::observe::SetSeen>| {
        let newest = set.and_then(|set| set.update_revision.as_deref());
        pods.iter().filter(|pod| pod.is_outdated(newest)).count()
    };
    let groups = facts.observed.groups.values();
    count(&servers.pods, servers.set.as_ref())
        + groups
            .map(|g| count(&g.pods, g.set.as_ref()))
            .sum::<usize>()
}

pub(super) fn degraded(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let mut set =
        |truth, reason, message: &str| conditions.set(T::Degraded, truth, reason, message);
    if let Some((pod, stuck)) = pods(facts).find_map(|pod| Some((pod, pod.stuck.as_ref()?))) {
        let message = format!("pod {}: {}", pod.name, stuck.message);
        return set(Truth::True, stuck.reason.condition(), &message);
    }
    for group in facts.observed.groups.values() {
        let lost = group
            .volumes
            .values()
            .find(|v| v.phase == VolumePhase::Lost);
        if let Some(volume) = lost {
            return set(
                Truth::True,
                R::VolumeLost,
                &format!("volume {} is lost", volume.name),
            );
        }
    }
    if let Some(halted) = roll::halted_by(facts.observed) {
        return set(
            Truth::True,
            R::NotReady,
            &format!("pod {} does not run", halted.name),
        );
    }
    for group in facts.observed.groups.values() {
        let full = group
            .known_brokers()
            .find(|(_, broker)| broker.disk_used_permille >= DISK_FULL_PERMILLE);
        if let Some((ordinal, broker)) = full {
            let message = format!(
                "the disk of member {ordinal} of {} is {} % full",
                group.broker_name,
                broker.disk_used_permille / 10
            );
            return set(Truth::True, R::DiskPressure, &message);
        }
    }
    let late = facts.plan.waits.iter().find(|wait| {
        wait.kind == WaitKind::Drain && wait.deadline.is_some_and(|at| at <= facts.now)
    });
    if let Some(wait) = late {
        return set(Truth::True, R::DrainLate, &wait.reason);
    }
    set(Truth::False, R::AllHealthy, "nothing is broken");
}

pub(super) fn config(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    use crate::plan::Step;
    let mut set =
        |truth, reason, message: &str| conditions.set(T::ConfigApplied, truth, reason, message);
    if let Some(wait) = facts.plan.waits.iter().find(|w| w.kind == WaitKind::Config) {
        return set(Truth::False, R::Rejected, &wait.reason);
    }
    let pushing = facts.plan.steps.iter().find(|step| {
        matches!(
            step,
            Step::PushBrokerConfig { .. } | Step::PushNameServerConfig { .. }
        )
    });
    if let Some(step) = pushing {
        return set(Truth::False, R::Pushing, &step.to_string());
    }
    let outdated = pods_outdated(facts);
    if outdated > 0 {
        let message = format!("{outdated} pods start again to take what changed");
        return set(Truth::False, R::PendingRestart, &message);
    }
    let silent = facts.observed.groups.values().find(|group| {
        group
            .brokers
            .values()
            .any(|answer| answer.known().is_none())
    });
    if let Some(group) = silent {
        let message = format!("a broker of {} does not answer", group.broker_name);
        return set(Truth::Unknown, R::Unreachable, &message);
    }
    set(
        Truth::True,
        R::InSync,
        "what runs has the manifest's configuration",
    );
}

pub(super) fn storage(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let mut set =
        |truth, reason, message: &str| conditions.set(T::StorageReady, truth, reason, message);
    for (index, group) in wanted(facts) {
        let want = &facts.desired.groups[&index];
        let Some(group) = group.filter(|group| !group.volumes.is_empty()) else {
            return set(Truth::False, R::Provisioning, "volumes are being made");
        };
        for volume in group.volumes.values() {
            let name = &volume.name;
            if volume.phase == VolumePhase::Lost {
                return set(
                    Truth::False,
                    R::VolumeLost,
                    &format!("volume {name} is lost"),
                );
            }
            if volume.phase == VolumePhase::Pending {
                let message = format!("volume {name} is not bound yet");
                return set(Truth::False, R::Provisioning, &message);
            }
            if volume.is_growing() || volume.requested < want.volume_bytes {
                let has = sized(volume.capacity.try_into().unwrap_or(i64::MAX));
                if volume.expandable == Some(false) && !volume.is_growing() {
                    let message = format!("the class of volume {name} ({has}) cannot grow it");
                    return set(Truth::False, R::ResizeUnsupported, &message);
                }
                let message = format!("volume {name} has {has} and grows");
                return set(Truth::False, R::ResizePending, &message);
            }
        }
    }
    set(
        Truth::True,
        R::AsRequested,
        "volumes have the size that was asked for",
    );
}
