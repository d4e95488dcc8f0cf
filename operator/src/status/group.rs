//! The status of a `BrokerGroup`.
//!
//! **Invariant:** who is master, who is in sync and where they are is what brokers and controllers
//! said; a group that nobody could ask keeps its last master and says that nobody could be asked.

use super::conditions::{Conditions, Truth};
use super::texts::{rounded, rounded_bytes, shortened, sized};
use super::{Facts, time};
use crate::observe::{Answer, GroupSeen, PodSeen};
use crate::plan::{Component, Step, WaitKind, member_role, unsafe_to_restart};
use rmq_operator_api::{
    BrokerGroupStatus, ConditionReason as R, ConditionType as T, DrainPhase, DrainStatus,
    FailoverRecord, GroupSummary, MasterStatus, MemberStatus, ReadRouting, RoutesStatus,
    SafetyStatus, Transition,
};

/// Most moves of mastership that are kept.
const HISTORY_MAX: usize = 10;

/// The status of group `index`; `generation` is that of its own object.
#[must_use]
pub fn group(
    facts: &Facts<'_>,
    index: i32,
    generation: Option<i64>,
    previous: Option<&BrokerGroupStatus>,
) -> BrokerGroupStatus {
    let (missing, empty) = (GroupSeen::default(), BrokerGroupStatus::default());
    let seen = facts.observed.groups.get(&index).unwrap_or(&missing);
    let previous = previous.unwrap_or(&empty);
    let wanted = facts.desired.groups.get(&index);
    let current_master = master(facts, seen, previous);
    let writable = seen.is_writable();
    let members: Vec<MemberStatus> = seen.pods.iter().map(|pod| member(seen, pod)).collect();
    let in_sync: Vec<i64> = match &seen.sync {
        Some(sync) => sync.in_sync.iter().copied().collect(),
        None => seen
            .known_brokers()
            .filter(|(ordinal, _)| seen.in_sync(*ordinal))
            .map(|(_, broker)| broker.broker_id)
            .collect(),
    };
    let transition = transition(facts, index, previous);
    let drain = drain(facts, index, seen, previous);
    BrokerGroupStatus {
        observed_generation: generation,
        epoch: seen.sync.as_ref().map_or(0, |sync| sync.epoch),
        sync_state_set_epoch: seen.sync.as_ref().map_or(0, |sync| sync.set_epoch),
        history: history(facts, seen, previous, current_master.as_ref()),
        current_master,
        target_master: None,
        summary: summary(&members, &in_sync, transition.as_ref(), drain.as_ref()),
        transition,
        in_sync,
        min_in_sync: wanted.map_or(previous.min_in_sync, |wanted| wanted.min_in_sync),
        writable,
        unwritable_reason: (!writable).then(|| shortened(&unwritable(seen), 512)),
        opened: seen.opened || previous.opened || (writable && wanted.is_some()),
        managed_keys: managed(facts, index, seen),
        members,
        read_routing: Some(read_routing(seen)),
        routes: Some(routes(facts, seen)),
        drain,
        conditions: conditions(facts, index, seen, previous, generation),
    }
}

/// Why clients cannot send to the group.
pub(crate) fn unwritable(seen: &GroupSeen) -> String {
    if let Some(pod) = seen.pods.iter().find(|pod| pod.stuck.is_some()) {
        let message = pod
            .stuck
            .as_ref()
            .map_or("", |stuck| stuck.message.as_str());
        return format!("pod {}: {message}", pod.name);
    }
    if let Some(pod) = seen.pods.iter().find(|pod| !pod.is_healthy()) {
        return format!("pod {} is not ready", pod.name);
    }
    let Some(ordinal) = seen.master() else {
        let why = seen.brokers.values().find_map(|answer| match answer {
            Answer::Unknown(why) => Some(why.as_str()),
            Answer::Known(_) => None,
        });
        return match why {
            Some(why) => format!("its broker does not answer: {why}"),
            None => "it has no master".to_owned(),
        };
    };
    match seen.broker(ordinal) {
        Some(broker) if !broker.recovered => "its master is reading its files".to_owned(),
        Some(broker) if !broker.takes_sends() && seen.drain_since.is_some() => {
            "it is being removed and takes no more sends".to_owned()
        }
        Some(broker) if !broker.takes_sends() => "it is read-only until it is opened".to_owned(),
        _ => "nobody can say why".to_owned(),
    }
}

fn master(
    facts: &Facts<'_>,
    seen: &GroupSeen,
    previous: &BrokerGroupStatus,
) -> Option<MasterStatus> {
    let Some((ordinal, broker)) = seen
        .master()
        .and_then(|ordinal| Some((ordinal, seen.broker(ordinal)?)))
    else {
        return previous.current_master.clone();
    };
    let pod = seen.pod(ordinal)?.name.clone();
    let before = previous.current_master.as_ref();
    let since = before
        .filter(|before| before.pod == pod && before.broker_id == broker.broker_id)
        .map_or_else(|| time(facts.now), |before| before.since.clone());
    Some(MasterStatus {
        pod,
        broker_id: broker.broker_id,
        address: broker.address.clone(),
        since,
    })
}

/// A move of mastership, when the controllers say that there was one.
fn history(
    facts: &Facts<'_>,
    seen: &GroupSeen,
    previous: &BrokerGroupStatus,
    now: Option<&MasterStatus>,
) -> Vec<FailoverRecord> {
    let mut history = previous.history.clone();
    let (Some(sync), Some(before), Some(now)) = (&seen.sync, previous.current_master.as_ref(), now)
    else {
        return history;
    };
    if before.pod == now.pod || sync.epoch <= previous.epoch {
        return history;
    }
    history.insert(
        0,
        FailoverRecord {
            group: seen.broker_name.clone(),
            from: Some(before.pod.clone()),
            to: now.pod.clone(),
            epoch: sync.epoch,
            reason: "MasterElected".to_owned(),
            detected_at: time(facts.now),
            writable_at: seen.is_writable().then(|| time(facts.now)),
            rto_millis: None,
            planned: false,
        },
    );
    history.truncate(HISTORY_MAX);
    history
}

fn member(seen: &GroupSeen, pod: &PodSeen) -> MemberStatus {
    let broker = seen.broker(pod.ordinal);
    let end = seen
        .master()
        .and_then(|ordinal| seen.broker(ordinal))
        .map_or(0, |master| master.max_offset);
    let risks = broker.map(|b| b.risks.clone()).unwrap_or_default();
    let mut risks: Vec<String> = risks.iter().map(|risk| risk.as_str().to_owned()).collect();
    if seen.sync.is_none() && seen.pods.len() <= 1 {
        risks.push("structurallyUnsafe".to_owned());
    }
    MemberStatus {
        pod: pod.name.clone(),
        ordinal: pod.ordinal,
        broker_id: broker.map(|broker| broker.broker_id),
        role: member_role(seen, pod.ordinal),
        in_sync: seen.in_sync(pod.ordinal),
        readable: broker.is_some_and(|broker| broker.recovered),
        lag_bytes: broker.map_or(0, |broker| {
            rounded_bytes(end.saturating_sub(broker.max_offset))
        }),
        version: pod
            .version
            .clone()
            .or_else(|| broker.and_then(|broker| broker.version.clone())),
        revision: pod.revision.clone(),
        node: pod.node.clone(),
        pvc: seen.volumes.get(&pod.ordinal).map(|v| v.name.clone()),
        restarts: pod.restarts,
        safety: SafetyStatus {
            safe: pod.is_healthy() && unsafe_to_restart(seen, pod).is_none(),
            risks,
        },
    }
}

fn summary(
    members: &[MemberStatus],
    in_sync: &[i64],
    transition: Option<&Transition>,
    drain: Option<&DrainStatus>,
) -> GroupSummary {
    let total = members.len();
    let readable = members.iter().filter(|member| member.readable).count();
    let lag = members.iter().map(|member| member.lag_bytes).max();
    GroupSummary {
        in_sync: format!("{}/{total}", in_sync.len()),
        readable: format!("{readable}/{total}"),
        lag: sized(lag.unwrap_or_default()),
        step: match (drain, transition) {
            (Some(drain), _) => drain.phase.to_string(),
            (None, Some(transition)) => transition.op.clone(),
            (None, None) => "Idle".to_owned(),
        },
    }
}

/// Live keys that the operator has set and has to take back if they go.
fn managed(facts: &Facts<'_>, index: i32, seen: &GroupSeen) -> Vec<String> {
    let Some(wanted) = facts.desired.groups.get(&index) else {
        return seen.managed_keys.iter().cloned().collect();
    };
    let mut keys = seen.managed_keys.clone();
    keys.retain(|key| {
        let back = wanted.live_defaults.get(key);
        let default = |has: &String| back.is_some_and(|d| d.eq_ignore_ascii_case(has.trim()));
        back.is_some()
            && seen.brokers.values().any(|answer| {
                answer
                    .known()
                    .is_none_or(|broker| !broker.config.get(key).is_some_and(default))
            })
    });
    keys.extend(wanted.live_config.keys().cloned());
    keys.into_iter().collect()
}

fn read_routing(seen: &GroupSeen) -> ReadRouting {
    let replicas = seen.pods.len() > 1;
    let reason = if replicas {
        "replicas are read when the broker says so"
    } else {
        "the group has no replicas"
    };
    ReadRouting {
        mode: if replicas { "OnSlowConsume" } else { "Off" }.to_owned(),
        suggested_broker_id: None,
        fallback_to_master: true,
        reason: reason.to_owned(),
    }
}

fn routes(facts: &Facts<'_>, seen: &GroupSeen) -> RoutesStatus {
    let missing: Vec<String> = facts
        .observed
        .name_servers
        .views
        .iter()
        .filter(|(_, view)| {
            view.known()
                .is_some_and(|view| !view.brokers.contains_key(&seen.broker_name))
        })
        .map(|(address, _)| address.split('.').next().unwrap_or(address).to_owned())
        .take(9)
        .collect();
    RoutesStatus {
        name_servers_agree: missing.is_empty() && !facts.observed.name_servers.views.is_empty(),
        missing_on: missing,
    }
}

fn drain(
    facts: &Facts<'_>,
    index: i32,
    seen: &GroupSeen,
    previous: &BrokerGroupStatus,
) -> Option<DrainStatus> {
    if facts.desired.groups.contains_key(&index) {
        return None;
    }
    let before = previous.drain.as_ref();
    let marked = seen.is_marked_drained()
        || facts
            .plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::MarkDrained { group } if *group == index));
    let registered = facts.observed.name_servers.views.values().any(|view| {
        view.known()
            .is_some_and(|view| view.brokers.contains_key(&seen.broker_name))
    });
    let gone = seen.set.is_none() && seen.pods.is_empty();
    let phase = if marked && gone && !registered {
        DrainPhase::Unregistered
    } else if marked {
        DrainPhase::Drained
    } else if seen.known_brokers().any(|(_, broker)| broker.takes_sends()) {
        DrainPhase::Cordoned
    } else {
        DrainPhase::Draining
    };
    let backlog = match &seen.backlog {
        Some(Answer::Known(backlog)) => Some(backlog),
        _ => None,
    };
    Some(DrainStatus {
        phase,
        since: before.map_or_else(|| time(facts.now), |before| before.since.clone()),
        remaining_messages: backlog.map(|backlog| rounded(backlog.remaining)),
        slowest_group: backlog.and_then(|backlog| backlog.slowest_group.clone()),
    })
}

fn transition(facts: &Facts<'_>, index: i32, previous: &BrokerGroupStatus) -> Option<Transition> {
    let component = Component::Group(index);
    let step = facts
        .plan
        .steps
        .iter()
        .find(|step| step.component() == component && op_of_step(step).is_some());
    let wait = facts
        .plan
        .waits
        .iter()
        .find(|wait| wait.component == component);
    let (op, text, reason) = match (step, wait) {
        (Some(step), _) => (op_of_step(step)?, step.to_string(), step.to_string()),
        (None, Some(wait)) => (
            op_of_wait(wait.kind),
            format!("{:?}", wait.kind),
            wait.reason.clone(),
        ),
        (None, None) => return None,
    };
    let before = previous
        .transition
        .as_ref()
        .filter(|before| before.op == op);
    Some(Transition {
        op: op.to_owned(),
        step: shortened(&text, 256),
        started_at: before.map_or_else(|| time(facts.now), |before| before.started_at.clone()),
        deadline: wait.and_then(|wait| wait.deadline).map(time),
        reason: shortened(&reason, 512),
    })
}

const fn op_of_step(step: &Step) -> Option<&'static str> {
    match step {
        Step::RestartPod { .. } => Some("RollingUpdate"),
        Step::CopyMetadata { .. } | Step::OpenGroup { .. } => Some("ScaleOut"),
        Step::CloseGroup { .. }
        | Step::MarkDrained { .. }
        | Step::StopGroup { .. }
        | Step::Unregister { .. }
        | Step::DeleteVolume { .. }
        | Step::RemoveGroup { .. } => Some("ScaleIn"),
        Step::GrowVolume { .. } | Step::RecreateSet { .. } => Some("ExpandVolume"),
        Step::ReplaceVolume { .. } => Some("ReplaceVolume"),
        Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::Apply { .. }
        | Step::PushNameServerConfig { .. }
        | Step::PushBrokerConfig { .. }
        | Step::LabelPod { .. } => None,
    }
}

const fn op_of_wait(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Provisioning => "Provisioning",
        WaitKind::Rollout | WaitKind::RolloutHalted | WaitKind::Approval => "RollingUpdate",
        WaitKind::Drain => "ScaleIn",
        WaitKind::Opening | WaitKind::Scaling => "ScaleOut",
        WaitKind::Volume => "ExpandVolume",
        WaitKind::Config => "PushConfig",
        WaitKind::Deletion => "Deletion",
        WaitKind::Refused => "Refused",
    }
}

fn conditions(
    facts: &Facts<'_>,
    index: i32,
    seen: &GroupSeen,
    previous: &BrokerGroupStatus,
    generation: Option<i64>,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let generation = generation.unwrap_or_default();
    let mut all = Conditions::new(&previous.conditions, generation, time(facts.now));
    let members = facts
        .desired
        .groups
        .get(&index)
        .map_or(0, |w| w.members.max(0) as usize);
    let healthy = seen.pods.iter().filter(|pod| pod.is_healthy()).count();
    if facts.desired.hibernated {
        all.set(
            T::Ready,
            Truth::False,
            R::Stopped,
            "operation.hibernated is true",
        );
    } else if seen.is_writable() && healthy >= members {
        all.set(
            T::Ready,
            Truth::True,
            R::AllComponentsReady,
            "every member runs",
        );
    } else if seen.opened {
        all.set(
            T::Ready,
            Truth::False,
            R::GroupNotWritable,
            &unwritable(seen),
        );
    } else {
        all.set(T::Ready, Truth::False, R::Provisioning, &unwritable(seen));
    }
    match seen
        .pods
        .iter()
        .find_map(|pod| Some((pod, pod.stuck.as_ref()?)))
    {
        Some((pod, stuck)) => {
            let message = format!("pod {}: {}", pod.name, stuck.message);
            all.set(T::Degraded, Truth::True, stuck.reason.condition(), &message);
        }
        None => all.set(
            T::Degraded,
            Truth::False,
            R::AllHealthy,
            "nothing is broken",
        ),
    }
    all.finish()
}
