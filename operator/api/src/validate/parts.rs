//! Rules of the sections that hold several fields together.
//!
//! **Invariant:** each rule that a CEL rule of the schema states too has its text from `rules`.

use super::Findings;
use crate::cluster::brokers::{BrokersSpec, StorageSpec};
use crate::cluster::listener::{ListenerSpec, ListenerType};
use crate::cluster::pod::{PodTemplate, ResourceAmounts, ResourcesSpec};
use crate::cluster::{RocketMQClusterSpec, policy::PeerSpec};
use crate::problem::{Field, Reason};
use crate::{defaults, owned_broker_key, rules};
use std::collections::BTreeSet;
use std::time::Duration;

/// Least memory of a role, and what is said when it is less.
pub(super) struct MemoryFloor {
    bytes: u64,
    says: &'static str,
}

pub(super) const BROKER_FLOOR: MemoryFloor = MemoryFloor {
    bytes: defaults::BROKER_MEMORY_MIN,
    says: rules::BROKER_MEMORY,
};

pub(super) const NAME_SERVER_FLOOR: MemoryFloor = MemoryFloor {
    bytes: defaults::NAME_SERVER_MEMORY_MIN,
    says: rules::NAME_SERVER_MEMORY,
};

pub(super) fn external(addresses: &[String], found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, address) in addresses.iter().enumerate() {
        let at = || Field::Spec(format!("nameServer.externalRef[{index}]"));
        let port = address
            .rsplit_once(':')
            .map(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        if port != Some(true) {
            let says = "must be host:port with a port from 1 to 65535";
            found.add(at(), Reason::Rule { says });
        }
        if !seen.insert(address) {
            let what = address.clone();
            found.add(at(), Reason::Twice { what });
        }
    }
}

pub(super) fn pods(
    role: &str,
    resources: Option<&ResourcesSpec>,
    template: Option<&PodTemplate>,
    floor: &MemoryFloor,
    found: &mut Findings,
) {
    if let Some(resources) = resources {
        amounts(&format!("{role}.resources"), resources, floor, found);
    }
    let at = format!("{role}.podTemplate");
    for says in template.map(PodTemplate::problems).unwrap_or_default() {
        found.rule(at.clone(), says);
    }
    if let Some(identity) = template.and_then(|t| t.identity)
        && (identity.user < 1 || identity.group < 1)
    {
        found.rule(at, "identity must be from 1: nothing runs as root");
    }
}

fn amounts(at: &str, resources: &ResourcesSpec, floor: &MemoryFloor, found: &mut Findings) {
    if resources.least_memory().is_some_and(|m| m < floor.bytes) {
        found.rule(at, floor.says);
    }
    let (Some(requests), Some(limits)) = (&resources.requests, &resources.limits) else {
        return;
    };
    let memory = |a: &ResourceAmounts| a.memory.as_ref().map(crate::ByteQuantity::bytes);
    let cpu = |a: &ResourceAmounts| a.cpu.as_ref().map(crate::CpuQuantity::millis);
    let below = |limit: Option<u64>, request: Option<u64>| matches!((limit, request), (Some(limit), Some(request)) if limit < request);
    if below(memory(limits), memory(requests)) {
        found.rule(at, rules::MEMORY_LIMIT);
    }
    if below(cpu(limits), cpu(requests)) {
        found.rule(
            at,
            "resources.limits.cpu must be at least resources.requests.cpu",
        );
    }
}

pub(super) fn replication(spec: &BrokersSpec, found: &mut Findings) {
    let min = spec.replication.min_in_sync;
    if min > spec.replicas_per_group.saturating_add(1) {
        found.rule("brokers.replication.minInSync", rules::MIN_IN_SYNC);
    } else if min < 1 {
        let (value, min, max) = (min, 1, 9);
        let field = Field::Spec("brokers.replication.minInSync".to_owned());
        found.add(field, Reason::OutOfRange { value, min, max });
    }
}

pub(super) fn auto_expand(storage: &StorageSpec, found: &mut Findings) {
    let Some(expand) = &storage.auto_expand else {
        return;
    };
    if expand.limit.bytes() < storage.size.bytes() {
        found.rule("brokers.storage.autoExpand.limit", rules::EXPAND_LIMIT);
    }
    if expand.step.bytes() == 0 {
        let field = Field::Spec("brokers.storage.autoExpand.step".to_owned());
        found.add(field, Reason::Zero);
    }
}

pub(super) fn grace(spec: &BrokersSpec, found: &mut Findings) {
    let bounds = Duration::from_secs(5)..=Duration::from_hours(1);
    if !bounds.contains(&spec.termination_grace_period.get()) {
        found.rule("brokers.terminationGracePeriod", rules::GRACE_BOUNDS);
    }
}

pub(super) fn overrides(spec: &BrokersSpec, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, given) in spec.group_overrides.iter().enumerate() {
        let at = format!("brokers.groupOverrides[{index}]");
        if given.groups.is_empty() {
            found.rule(format!("{at}.groups"), "must name a group");
        }
        for group in &given.groups {
            let field = Field::Spec(format!("{at}.groups"));
            if !(0..128).contains(group) {
                let (value, min, max) = (*group, 0, 127);
                found.add(field, Reason::OutOfRange { value, min, max });
            } else if !seen.insert(*group) {
                let what = format!("group {group}");
                found.add(field, Reason::Twice { what });
            }
        }
        if given.storage_size.as_ref().is_some_and(|s| s.bytes() == 0) {
            let field = Field::Spec(format!("{at}.storageSize"));
            found.add(field, Reason::Zero);
        }
        if let Some(resources) = &given.resources {
            amounts(&format!("{at}.resources"), resources, &BROKER_FLOOR, found);
        }
        for (key, value) in &given.config {
            let field = Field::Spec(format!("{at}.config.{key}"));
            if !super::is_config_key(key) {
                found.add(field.clone(), Reason::BadKey);
            } else if let Some(owner) = owned_broker_key(key) {
                found.add(field.clone(), Reason::Owned { owner });
            }
            if value.chars().any(char::is_control) {
                found.add(field, Reason::BadValue);
            }
        }
    }
}

pub(super) fn listeners(listeners: &[ListenerSpec], found: &mut Findings) {
    if listeners.len() > defaults::LISTENERS_MAX {
        found.rule("listeners", rules::ONE_LISTENER);
    }
    for (index, listener) in listeners.iter().enumerate() {
        let at = format!("listeners[{index}]");
        found.label(Field::Spec(format!("{at}.name")), &listener.name, 12);
        for says in listener.problems() {
            found.rule(at.clone(), says);
        }
        if listener.kind != ListenerType::NodePort {
            let ports = 1024..=65_535;
            found.range(Field::Spec(format!("{at}.port")), listener.port, ports);
        }
    }
}

pub(super) fn policies(spec: &RocketMQClusterSpec, found: &mut Findings) {
    if spec
        .image
        .as_ref()
        .is_some_and(|i| i.tag.is_some() && i.digest.is_some())
    {
        found.rule("image", rules::TAG_OR_DIGEST);
    }
    let update = &spec.update_strategy;
    found.range(
        Field::Spec("updateStrategy.maxUnavailableGroups".to_owned()),
        update.max_unavailable_groups,
        defaults::BROKER_GROUPS_RANGE,
    );
    if update.canary.soak.get() > Duration::from_hours(24) {
        found.rule("updateStrategy.canary.soak", rules::SOAK_TOO_LONG);
    }
    if spec.scale_in.timeout.get() < Duration::from_mins(1) {
        found.rule("scaleIn.timeout", rules::SCALE_IN_TIMEOUT);
    }
    if !spec
        .network_policy
        .allow_from
        .iter()
        .all(PeerSpec::is_one_peer)
    {
        found.rule("networkPolicy.allowFrom", rules::ONE_PEER);
    }
    node_ports(spec, found);
}

/// The last group's port must be a NodePort too.
fn node_ports(spec: &RocketMQClusterSpec, found: &mut Findings) {
    let last = spec.brokers.groups.saturating_sub(1);
    for (index, listener) in spec.listeners.iter().enumerate() {
        if listener.kind == ListenerType::NodePort
            && listener.port <= 32_767
            && listener.port_of(last) > 32_767
        {
            let says = "port of the last group is above 32767: begin lower";
            found.rule(format!("listeners[{index}].port"), says);
        }
    }
}
