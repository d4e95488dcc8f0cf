//! NameServers: their objects, their number, their live keys.
//!
//! **Invariant:** a NameServer goes only after every broker that answers has left it, and no broker
//! is restarted for a change of their list.

use super::{Component, Draft, Step, WaitKind};
use crate::observe::{Answer, ObjectsState};
use std::collections::BTreeMap;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let seen = &draft.observed.name_servers;
    if seen.objects != ObjectsState::Same {
        let apply = Step::Apply {
            component: Component::NameServers,
        };
        draft.step(apply);
    }
    if draft.desired.hibernated {
        return;
    }
    let wanted = draft.desired.name_servers.replicas.max(0) as usize;
    let ready = seen.pods.iter().filter(|pod| pod.is_healthy()).count();
    if ready < wanted && seen.objects == ObjectsState::Same {
        let reason = format!("{ready} of {wanted} NameServers are ready");
        let pod = seen
            .pods
            .iter()
            .find(|pod| !pod.is_healthy())
            .map(|pod| pod.name.clone());
        draft.wait(Component::NameServers, pod, WaitKind::Scaling, &reason);
    }
    if wanted == 0 {
        return;
    }
    for (address, view) in &seen.views {
        let Answer::Known(view) = view else {
            continue;
        };
        let keys = different(&draft.desired.name_servers.live_config, &view.config);
        if !keys.is_empty() {
            let address = address.clone();
            draft.step(Step::PushNameServerConfig { address, keys });
        }
    }
}

/// The keys of `wanted` that `has` lacks or has otherwise.
pub(super) fn different(
    wanted: &BTreeMap<String, String>,
    has: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    wanted
        .iter()
        .filter(|(key, value)| !has.get(*key).is_some_and(|has| same_value(has, value)))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Programs write booleans and enums in their own case.
pub(super) fn same_value(has: &str, wanted: &str) -> bool {
    has.trim().eq_ignore_ascii_case(wanted.trim())
}

/// Whether some NameServer can be registered at, so that brokers have somebody to go to.
pub(super) fn some_ready(draft: &Draft<'_>) -> bool {
    draft.desired.name_servers.replicas == 0
        || draft
            .observed
            .name_servers
            .pods
            .iter()
            .any(crate::observe::PodSeen::is_healthy)
}
