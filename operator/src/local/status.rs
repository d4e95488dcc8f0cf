//! The status of a cluster on this computer: the same types that the operator writes.
//!
//! **Invariant:** a function of its arguments. What groups and NameServers are comes from a
//! [`Survey`], that is from what they said; of the processes only their readiness is used.

use crate::local::columns::{Columns, Extra, columns};
use crate::local::plan::LocalPlan;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use rmq_admin::{GroupSight, MemberSight, Survey};
use rmq_operator_api::{
    BrokerGroup, BrokerGroupStatus, ConditionReason as Reason, ConditionType, Endpoints,
    GroupCounts, GroupSummary, MasterStatus, MemberRole, MemberStatus, NameServerStatus,
    NameServersStatus, Phase, RocketMQCluster, RocketMQClusterStatus, RoutesStatus, SafetyStatus,
    VersionStatus,
};
use serde_json::json;
use std::time::Duration;

/// Names in `groups.degraded`.
const DEGRADED_MAX: usize = 20;

/// What is known besides the survey.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What shall run.
    pub plan: &'a LocalPlan,
    /// Names of the processes that are not ready.
    pub not_ready: &'a [String],
    /// When it was asked.
    pub now: Timestamp,
}

/// The cluster's status.
#[must_use]
pub fn cluster_status(survey: &Survey, facts: &Facts<'_>) -> RocketMQClusterStatus {
    let groups = group_counts(survey, facts);
    let name_servers = name_servers(survey);
    let conditions = conditions(survey, facts, &groups, &name_servers);
    let addresses = survey.name_servers.iter().map(|server| server.addr.clone());
    let masters = survey.groups.iter().filter_map(|group| {
        let master = group.master()?;
        Some(format!("{} {}", group.broker, master.addr))
    });
    RocketMQClusterStatus {
        version: Some(VersionStatus {
            current: Some(facts.plan.program_version.clone()),
            target: Some(facts.plan.version_asked.clone()),
        }),
        phase: Some(phase(&conditions)),
        endpoints: Some(Endpoints {
            name_server: addresses.collect::<Vec<_>>().join(";"),
            brokers: masters.collect(),
        }),
        name_servers: Some(name_servers),
        groups: Some(groups),
        conditions,
        ..RocketMQClusterStatus::default()
    }
}

fn group_counts(survey: &Survey, facts: &Facts<'_>) -> GroupCounts {
    let own: Vec<&GroupSight> = own_groups(survey, facts.plan).collect();
    let desired = facts.plan.groups().len();
    let is_ready = |group: &&&GroupSight| {
        group.is_writable() == Some(true)
            && group.missing_on.is_empty()
            && group.members.iter().all(MemberSight::is_active)
    };
    let ready: Vec<&str> = own
        .iter()
        .filter(is_ready)
        .map(|g| g.broker.as_str())
        .collect();
    let degraded = facts.plan.groups().into_iter();
    let degraded = degraded.filter(|group| !ready.contains(&group.as_str()));
    GroupCounts {
        desired: count(desired),
        ready: count(ready.len()),
        summary: format!("{}/{desired}", ready.len()),
        readable: count(own.iter().filter(|g| g.is_readable() == Some(true)).count()),
        writable: count(own.iter().filter(|g| g.is_writable() == Some(true)).count()),
        degraded: degraded.take(DEGRADED_MAX).collect(),
    }
}

fn own_groups<'a>(survey: &'a Survey, plan: &LocalPlan) -> impl Iterator<Item = &'a GroupSight> {
    let own = plan.groups();
    survey
        .groups
        .iter()
        .filter(move |group| own.contains(&group.broker))
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn name_servers(survey: &Survey) -> NameServersStatus {
    let servers = &survey.name_servers;
    let skew: usize = survey.groups.iter().map(|g| g.missing_on.len()).sum();
    NameServersStatus {
        desired: count(servers.len()),
        ready: count(servers.iter().filter(|s| s.brokers.is_ok()).count()),
        route_skew: count(skew),
        pods: servers
            .iter()
            .map(|server| NameServerStatus {
                name: server.addr.clone(),
                registered_brokers: server.brokers.as_ref().ok().map(|brokers| count(*brokers)),
            })
            .collect(),
    }
}

fn conditions(
    survey: &Survey,
    facts: &Facts<'_>,
    groups: &GroupCounts,
    name_servers: &NameServersStatus,
) -> Vec<Condition> {
    let condition = |kind: ConditionType, holds: bool, reason: Reason, message: String| Condition {
        type_: kind.to_string(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: reason.to_string(),
        message,
        last_transition_time: Time(facts.now),
        observed_generation: None,
    };
    let (ready, why) = if name_servers.ready < name_servers.desired {
        (
            Reason::NameServersUnavailable,
            "a NameServer does not answer".to_owned(),
        )
    } else if groups.writable < groups.desired {
        let names = groups.degraded.join(", ");
        (
            Reason::GroupNotWritable,
            format!("groups that take no sends: {names}"),
        )
    } else if !facts.not_ready.is_empty() || groups.ready < groups.desired {
        (
            Reason::NotReady,
            format!("not ready: {}", facts.not_ready.join(", ")),
        )
    } else {
        (Reason::AllComponentsReady, String::new())
    };
    let available = if name_servers.ready == 0 {
        Reason::NoNameServer
    } else if groups.writable == 0 {
        Reason::AllGroupsDown
    } else {
        Reason::WritesServed
    };
    let lacking = survey
        .groups
        .iter()
        .any(|group| !group.missing_on.is_empty());
    let routes = if lacking {
        Reason::BrokerMissingOnNameServer
    } else {
        Reason::Agreed
    };
    let holds = |reason: Reason, good: Reason| reason == good;
    vec![
        condition(
            ConditionType::Ready,
            holds(ready, Reason::AllComponentsReady),
            ready,
            why,
        ),
        condition(
            ConditionType::Available,
            holds(available, Reason::WritesServed),
            available,
            String::new(),
        ),
        condition(
            ConditionType::RoutesConsistent,
            holds(routes, Reason::Agreed),
            routes,
            String::new(),
        ),
    ]
}

fn phase(conditions: &[Condition]) -> Phase {
    let holds = |kind: ConditionType| {
        let named = |condition: &&Condition| condition.type_ == kind.as_str();
        conditions
            .iter()
            .find(named)
            .is_some_and(|condition| condition.status == "True")
    };
    if !holds(ConditionType::Available) {
        Phase::Unavailable
    } else if holds(ConditionType::Ready) {
        Phase::Ready
    } else {
        Phase::Degraded
    }
}

/// A group's status; `called` gives a broker's address its name, if it has one.
#[must_use]
pub fn group_status(
    group: &GroupSight,
    now: Timestamp,
    called: &dyn Fn(&str) -> Option<String>,
) -> BrokerGroupStatus {
    let name = |member: &MemberSight| called(&member.addr).unwrap_or_else(|| member.addr.clone());
    let all = group.members.len();
    let readable = group.members.iter().filter(|m| m.is_active()).count();
    let is_readable = group.is_readable() == Some(true);
    let writable = group.is_writable() == Some(true);
    BrokerGroupStatus {
        epoch: group.epoch.unwrap_or_default().into(),
        current_master: group.master().map(|master| MasterStatus {
            pod: name(master),
            broker_id: master.id,
            address: master.addr.clone(),
            since: Time(started(master).unwrap_or(now)),
        }),
        writable,
        unwritable_reason: (!writable).then(|| unwritable(group).to_owned()),
        opened: writable,
        members: group
            .members
            .iter()
            .zip(0..)
            .map(|(member, ordinal)| member_status(member, ordinal, name(member)))
            .collect(),
        routes: Some(RoutesStatus {
            name_servers_agree: group.missing_on.is_empty(),
            missing_on: group.missing_on.clone(),
        }),
        summary: GroupSummary {
            in_sync: group
                .in_sync()
                .map(|(now, all)| format!("{now}/{all}"))
                .unwrap_or_default(),
            readable: format!("{}/{all}", if is_readable { readable } else { 0 }),
            lag: match group.lag_bytes() {
                Some(lag) => bytes(lag),
                None if all <= 1 => "0".to_owned(),
                None => String::new(),
            },
            step: "Idle".to_owned(),
        },
        ..BrokerGroupStatus::default()
    }
}

fn member_status(member: &MemberSight, ordinal: i32, pod: String) -> MemberStatus {
    MemberStatus {
        pod,
        ordinal,
        broker_id: Some(member.id),
        role: match (member.runtime.is_ok(), member.id) {
            (false, _) => MemberRole::Unknown,
            (true, 0) => MemberRole::Master,
            (true, _) => MemberRole::Replica,
        },
        in_sync: member.id == 0 && member.runtime.is_ok(),
        readable: member.is_active(),
        lag_bytes: 0,
        version: None,
        revision: None,
        node: None,
        pvc: None,
        restarts: 0,
        safety: SafetyStatus::default(),
    }
}

fn unwritable(group: &GroupSight) -> &'static str {
    match (group.master(), group.perm) {
        (None, _) => "it has no master",
        (Some(master), _) if master.runtime.is_err() => "its master does not answer",
        (Some(master), _) if !master.is_active() => "its master is stopping",
        (_, None) => "no NameServer says what clients may do there",
        (_, Some(_)) => "it has no permission to write",
    }
}

/// When a broker was started, as it says.
fn started(member: &MemberSight) -> Option<Timestamp> {
    let runtime = member.runtime.as_ref().ok()?;
    let millis = runtime.get("bootTimestamp")?.parse().ok()?;
    Timestamp::from_millisecond(millis).ok()
}

/// `0`, `512`, `12Ki`, as quantities are written.
fn bytes(count: i64) -> String {
    let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let mut value = count;
    let mut unit = 0;
    while value >= 1024 && unit + 1 < units.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", units.get(unit).copied().unwrap_or_default())
}

/// What `kubectl get rmq` would show.
#[must_use]
pub fn cluster_columns(name: &str, age: Duration, status: &RocketMQClusterStatus) -> Columns {
    let extra = Extra {
        name: Some(name.to_owned()),
        age: Some(age),
    };
    columns::<RocketMQCluster>(&[(extra, json!({ "status": status }))])
}

/// What `kubectl get rmqbg` would show, without name and age.
#[must_use]
pub fn group_columns(
    groups: &[GroupSight],
    now: Timestamp,
    called: &dyn Fn(&str) -> Option<String>,
) -> Columns {
    let object = |group: &GroupSight| {
        let spec = json!({ "cluster": group.cluster, "brokerName": group.broker });
        let status = group_status(group, now, called);
        (Extra::default(), json!({ "spec": spec, "status": status }))
    };
    columns::<BrokerGroup>(&groups.iter().map(object).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
