//! A group that shall be: its objects, its live keys, and when it is opened for sends.
//!
//! **Invariant:** every broker starts read-only, and a group is opened only when it has each topic
//! and consumer group that an open one has; producers never meet a half-made group.

use super::name_servers::{different, same_value, some_ready};
use super::{Component, Draft, GroupWanted, Step, WaitKind, labels, volumes};
use crate::guard::{self, Metadata};
use crate::observe::model::KEY_NAME_SERVERS;
use crate::observe::{BrokerSeen, GroupSeen, ObjectsState};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn plan(draft: &mut Draft<'_>, index: i32) {
    let (observed, desired) = (draft.observed, draft.desired);
    let Some(wanted) = desired.groups.get(&index) else {
        return;
    };
    let missing = GroupSeen::default();
    let seen = observed.groups.get(&index).unwrap_or(&missing);
    if seen.set.as_ref().is_some_and(|set| set.deleting) {
        let reason = "its StatefulSet is being deleted";
        draft.wait(
            Component::Group(index),
            None,
            WaitKind::Provisioning,
            reason,
        );
        return;
    }
    if seen.set.is_none() && !desired.hibernated && !some_ready(draft) {
        let reason = "no NameServer is ready: a broker would have nobody to register at";
        draft.wait(
            Component::Group(index),
            None,
            WaitKind::Provisioning,
            reason,
        );
        return;
    }
    let recreated = volumes::plan(draft, index, seen, wanted);
    if seen.objects != ObjectsState::Same && !recreated {
        let component = Component::Group(index);
        draft.step(Step::Apply { component });
    }
    if desired.hibernated {
        return;
    }
    waiting_for_pods(draft, index, seen, wanted);
    labels::plan(draft, index, seen);
    push(draft, index, seen, wanted);
    open(draft, index, seen);
}

fn waiting_for_pods(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen, wanted: &GroupWanted) {
    let component = Component::Group(index);
    let members = wanted.members.max(0) as usize;
    let ready = seen.pods.iter().filter(|pod| pod.is_healthy()).count();
    if ready >= members || seen.set.is_none() {
        return;
    }
    let pod = seen.pods.iter().find(|pod| !pod.is_healthy());
    let reason = match pod {
        Some(pod) => match &pod.stuck {
            Some(stuck) => format!("{:?}: {}", stuck.reason, stuck.message),
            None => format!("pod {} is not ready yet", pod.name),
        },
        None => format!("{ready} of {members} pods are there"),
    };
    let name = pod.map(|pod| pod.name.clone());
    draft.wait(component, name, WaitKind::Provisioning, &reason);
}

/// Live keys that differ, and those that were set once and are no longer asked for.
fn push(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen, wanted: &GroupWanted) {
    for (ordinal, broker) in seen.known_brokers() {
        let mut keys = different(&wanted.live_config, &broker.config);
        for key in &seen.managed_keys {
            if let (false, Some(default)) = (
                wanted.live_config.contains_key(key),
                wanted.live_defaults.get(key),
            ) && !broker
                .config
                .get(key)
                .is_some_and(|has| same_value(has, default))
            {
                keys.insert(key.clone(), default.clone());
            }
        }
        let addresses: BTreeSet<&str> = draft
            .desired
            .name_servers
            .addresses
            .iter()
            .map(String::as_str)
            .collect();
        if broker.name_servers() != addresses && !addresses.is_empty() {
            keys.insert(
                KEY_NAME_SERVERS.to_owned(),
                draft.desired.name_server_list(),
            );
        }
        let refused = take_refused(&mut keys, broker);
        if !refused.is_empty() {
            let reason = format!("member {ordinal} does not take {}", refused.join(", "));
            draft.wait(Component::Group(index), None, WaitKind::Config, &reason);
        }
        if !keys.is_empty() {
            draft.step(Step::PushBrokerConfig {
                group: index,
                ordinal,
                keys,
            });
        }
    }
}

/// Takes out what the broker refused with this very value: it would refuse it again.
fn take_refused(keys: &mut BTreeMap<String, String>, broker: &BrokerSeen) -> Vec<String> {
    let refused: Vec<String> = keys
        .iter()
        .filter(|(key, value)| broker.rejected.get(*key) == Some(value))
        .map(|(key, _)| key.clone())
        .collect();
    for key in &refused {
        keys.remove(key);
    }
    refused
}

/// Opens it; the guard looks at topics and consumer groups once more, right before.
fn open(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen) {
    let Some((ordinal, broker)) = seen
        .master()
        .and_then(|ordinal| Some((ordinal, seen.broker(ordinal)?)))
    else {
        return;
    };
    if broker.takes_sends() || !broker.recovered {
        return;
    }
    let group = index;
    match guard::metadata(draft.observed, draft.desired, index) {
        Metadata::Complete => {
            draft.step(Step::OpenGroup { group, ordinal });
        }
        Metadata::MissingFrom(from) => {
            let reason = format!("topics and consumer groups are copied from group {from}");
            draft.wait(Component::Group(group), None, WaitKind::Opening, &reason);
            draft.step(Step::CopyMetadata { from, to: group });
        }
        Metadata::Unknown(reason) => {
            draft.wait(Component::Group(group), None, WaitKind::Opening, reason);
        }
    }
}
