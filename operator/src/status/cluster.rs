//! The status of a `RocketMQCluster`.
//!
//! **Invariant:** every condition is set in every status, so that waiting for one always ends.

use super::conditions::{Conditions, Truth, phase};
use super::{Facts, health, time, timestamp};
use crate::observe::Answer;
use crate::plan::{Component, Wait, WaitKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rmq_operator_api::{
    ConditionReason as R, ConditionType as T, Endpoints, GroupCounts, NameServerStatus,
    NameServersStatus, RocketMQClusterStatus, RolloutStatus, VersionStatus, WaitingOn,
    is_downgrade,
};

/// Most names in `groups.degraded`.
const DEGRADED_MAX: usize = 20;

/// The status of the cluster.
#[must_use]
pub fn cluster(facts: &Facts<'_>) -> RocketMQClusterStatus {
    let empty = RocketMQClusterStatus::default();
    let previous = facts.previous.unwrap_or(&empty);
    let version = version(facts, previous);
    let conditions = conditions(facts, previous, &version);
    RocketMQClusterStatus {
        observed_generation: Some(facts.desired.generation),
        operator_version: Some(facts.operator_version.to_owned()),
        version: Some(version),
        phase: Some(phase(&conditions)),
        endpoints: Some(endpoints(facts)),
        name_servers: Some(name_servers(facts)),
        controllers: None,
        groups: Some(groups(facts)),
        rollout: rollout(facts, previous),
        waiting_on: facts
            .plan
            .waits
            .first()
            .map(|wait| waiting_on(facts, wait, previous.waiting_on.as_ref())),
        last_failover: previous.last_failover.clone(),
        failover_count: previous.failover_count,
        selector: Some(facts.selector.to_owned()),
        conditions,
    }
}

fn conditions(
    facts: &Facts<'_>,
    previous: &RocketMQClusterStatus,
    version: &VersionStatus,
) -> Vec<Condition> {
    let generation = facts.desired.generation;
    let mut all = Conditions::new(&previous.conditions, generation, time(facts.now));
    health::ready(facts, &mut all);
    health::available(facts, &mut all);
    health::replication(facts, &mut all);
    health::routes(facts, &mut all);
    health::progressing(facts, &mut all);
    health::degraded(facts, &mut all);
    health::config(facts, &mut all);
    health::storage(facts, &mut all);
    if !facts.problems.is_empty() {
        let message = "the manifest cannot be carried out; see Ready";
        all.set(T::ConfigApplied, Truth::False, R::InvalidSpec, message);
    }
    match (&version.current, &version.target) {
        (Some(current), Some(target)) if is_downgrade(current, target) => {
            let message = format!(
                "{target} is older than {current}, which runs: it may not read newer files"
            );
            all.set(
                T::VersionSupported,
                Truth::False,
                R::DowngradeForbidden,
                &message,
            );
        }
        _ => all.set(
            T::VersionSupported,
            Truth::True,
            R::Supported,
            "the version is known",
        ),
    }
    asked(facts, &mut all);
    quiet(facts, &mut all);
    all.finish()
}

/// What the user asked for besides the cluster itself.
fn asked(facts: &Facts<'_>, all: &mut Conditions<'_>) {
    let desired = facts.desired;
    for (kind, asked, message) in [
        (
            T::Paused,
            desired.paused,
            "the operator writes nothing but this status",
        ),
        (T::Hibernated, desired.hibernated, "the pods are stopped"),
    ] {
        let (reason, message) = if asked {
            (R::UserRequested, message)
        } else {
            (R::NotRequested, "not asked for")
        };
        all.set(kind, Truth::of(asked), reason, message);
    }
    if desired.deletion_blocked {
        let message = "deletionPolicy.protect is true: set it to false, or annotate the cluster \
                       with rocketmq.rs/allow-deletion and its name";
        all.set(T::DeletionBlocked, Truth::True, R::Protected, message);
    } else {
        all.set(
            T::DeletionBlocked,
            Truth::False,
            R::NotRequested,
            "not asked for",
        );
    }
}

fn quiet(facts: &Facts<'_>, all: &mut Conditions<'_>) {
    let next = if facts.desired.paused {
        Some("operation.paused is true".to_owned())
    } else if !facts.problems.is_empty() {
        Some("the manifest cannot be carried out".to_owned())
    } else if !facts.observed.fresh {
        Some("what is there is not known yet".to_owned())
    } else {
        let step = facts.plan.steps.first().map(ToString::to_string);
        step.or_else(|| facts.plan.waits.first().map(|wait| wait.reason.clone()))
    };
    if let Some(message) = next {
        all.set(T::Quiesced, Truth::False, R::StillReconciling, &message);
        all.set(T::Stable, Truth::False, R::StillReconciling, &message);
        return;
    }
    let message = "nothing is left to do";
    all.set(T::Quiesced, Truth::True, R::NothingToDo, message);
    let healthy = all.is_true(T::Ready)
        && all.is_true(T::RoutesConsistent)
        && all.is_true(T::ConfigApplied)
        && all.is_true(T::StorageReady)
        && !all.is_true(T::Degraded);
    if healthy {
        let message = "nothing is left to do and everything is healthy";
        all.set(T::Stable, Truth::True, R::QuiescedAndHealthy, message);
    } else {
        let message = "nothing is left to do, and not everything is healthy";
        all.set(T::Stable, Truth::False, R::Unstable, message);
    }
}

fn version(facts: &Facts<'_>, previous: &RocketMQClusterStatus) -> VersionStatus {
    let mut running: Vec<&str> = health::pods(facts)
        .filter_map(|pod| pod.version.as_deref())
        .collect();
    running.sort_unstable();
    running.dedup();
    let before = previous.version.as_ref().and_then(|v| v.current.clone());
    VersionStatus {
        current: match running.as_slice() {
            [one] => Some((*one).to_owned()),
            _ => before,
        },
        target: Some(facts.desired.version.clone()),
    }
}

fn endpoints(facts: &Facts<'_>) -> Endpoints {
    let mut brokers: Vec<String> = health::wanted(facts)
        .filter_map(|(_, group)| {
            let group = group?;
            let master = group.broker(group.master()?)?;
            Some(format!("{} {}", group.broker_name, master.address))
        })
        .collect();
    brokers.truncate(128);
    Endpoints {
        name_server: facts.desired.name_server_list(),
        brokers,
    }
}

fn name_servers(facts: &Facts<'_>) -> NameServersStatus {
    let seen = &facts.observed.name_servers;
    let gaps = health::route_gaps(facts);
    let pods = seen.views.iter().map(|(address, view)| NameServerStatus {
        name: address.split('.').next().unwrap_or(address).to_owned(),
        registered_brokers: match view {
            Answer::Known(view) => i32::try_from(view.brokers.len()).ok(),
            Answer::Unknown(_) => None,
        },
    });
    let external = facts.desired.name_servers.replicas == 0 && !facts.desired.hibernated;
    let ready = if external {
        seen.views
            .values()
            .filter(|view| view.known().is_some())
            .count()
    } else {
        seen.pods.iter().filter(|pod| pod.is_healthy()).count()
    };
    NameServersStatus {
        desired: if external {
            count(facts.desired.name_servers.addresses.len())
        } else {
            facts.desired.name_servers.replicas
        },
        ready: count(ready),
        route_skew: count(gaps.values().map(Vec::len).sum()),
        pods: pods.take(9).collect(),
    }
}

fn groups(facts: &Facts<'_>) -> GroupCounts {
    let desired = facts.desired.groups.len();
    let of = |holds: fn(&crate::observe::GroupSeen) -> bool| {
        health::wanted(facts)
            .filter(|(_, group)| group.is_some_and(holds))
            .count()
    };
    let ready = of(|group| group.is_writable() && group.set.is_some() && group.unready() == 0);
    let degraded = health::wanted(facts)
        .filter(|(_, group)| {
            group.is_some_and(|g| g.opened && !(g.is_writable() && g.unready() == 0))
        })
        .map(|(index, _)| facts.desired.groups[&index].broker_name.clone())
        .take(DEGRADED_MAX)
        .collect();
    GroupCounts {
        desired: count(desired),
        ready: count(ready),
        summary: format!("{ready}/{desired}"),
        readable: count(of(crate::observe::GroupSeen::is_readable)),
        writable: count(of(crate::observe::GroupSeen::is_writable)),
        degraded,
    }
}

fn rollout(facts: &Facts<'_>, previous: &RocketMQClusterStatus) -> Option<RolloutStatus> {
    let there = health::pods(facts).count();
    if there == 0 {
        return None;
    }
    // One that is being replaced may be away for a moment.
    let sets = facts.observed.groups.values().map(|group| &group.set);
    let sets = sets.chain([&facts.observed.name_servers.set]).flatten();
    let wanted: usize = sets.map(|set| set.replicas.max(0) as usize).sum();
    let total = wanted.max(there);
    let outdated = health::pods_outdated(facts) + total - there;
    let wait = facts.plan.waits.iter().find(|wait| {
        matches!(
            wait.kind,
            WaitKind::Rollout | WaitKind::RolloutHalted | WaitKind::Approval
        )
    });
    let before = previous
        .rollout
        .as_ref()
        .and_then(|r| r.waiting_on.as_ref());
    let updated = total - outdated;
    let component = first_outdated(facts);
    let halted = facts
        .plan
        .waits
        .iter()
        .any(|wait| wait.kind == WaitKind::RolloutHalted);
    let mut summary = format!("{updated}/{total}");
    if halted {
        summary.push_str(" halted");
    } else if let Some(pod) = wait.and_then(|wait| wait.pod.as_ref()) {
        summary = format!("{summary} waits on {pod}");
    }
    Some(RolloutStatus {
        id: component
            .as_ref()
            .map(|(_, id)| id.clone())
            .unwrap_or_default(),
        component: component.map(|(name, _)| name),
        updated: count(updated),
        total: count(total),
        summary,
        halted,
        waiting_on: wait.map(|wait| waiting_on(facts, wait, before)),
    })
}

/// The part that is rolled now, with the revision it gets.
fn first_outdated(facts: &Facts<'_>) -> Option<(String, String)> {
    let servers = &facts.observed.name_servers;
    let revision = |set: Option<&crate::observe::SetSeen>| set?.update_revision.clone();
    if let Some(id) = revision(servers.set.as_ref())
        && servers.pods.iter().any(|pod| pod.is_outdated(Some(&id)))
    {
        return Some(("namesrv".to_owned(), id));
    }
    facts.observed.groups.values().find_map(|group| {
        let id = revision(group.set.as_ref())?;
        let outdated = group.pods.iter().any(|pod| pod.is_outdated(Some(&id)));
        outdated.then(|| (group.broker_name.clone(), id))
    })
}

/// The wait with the time since when it is the same one.
fn waiting_on(facts: &Facts<'_>, wait: &Wait, before: Option<&WaitingOn>) -> WaitingOn {
    let pod = wait.pod.clone().unwrap_or_else(|| match wait.component {
        Component::Group(index) => facts
            .observed
            .groups
            .get(&index)
            .map_or_else(|| wait.component.to_string(), |g| g.broker_name.clone()),
        Component::Shared | Component::NameServers => wait.component.to_string(),
    });
    let reason = super::texts::shortened(&wait.reason, 512);
    let since = before
        .filter(|before| before.pod == pod)
        .map_or_else(|| time(facts.now), |before| before.since.clone());
    let waited = facts.now.since(timestamp(&since));
    let late = wait
        .deadline
        .map_or(waited >= wait.kind.late_after_millis(), |at| {
            at <= facts.now
        });
    WaitingOn {
        pod,
        reason,
        since,
        late,
    }
}

pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
