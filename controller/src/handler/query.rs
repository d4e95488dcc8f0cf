//! Questions: who leads (1005), a group's master (1004), groups with their members (1006), the next
//! broker id (1012).
//!
//! **Invariant:** 1004, 1006 and 1012 are answered after a majority confirmed the leader; 1005 is any
//! controller's belief.

use std::sync::Arc;

use rmq_controller_fsm::{BrokerGroup, Detector, State};
use rmq_protocol::{
    body::{BrokerReplicasInfo, ReplicaIdentity, ReplicasInfo},
    header::{
        GetControllerMetadataResponse, GetNextBrokerId, GetNextBrokerIdResponse, GetReplicaInfo,
        GetReplicaInfoResponse,
    },
    remoting::{Command, response_code},
};
use rmq_types::{BrokerName, Moment};

use crate::{
    answer::{Call, Handled, Refusal, names, set_of, wire_id},
    core::Core,
};

/// Groups in one question.
const GROUPS_ASKED_MAX: usize = 10_000;

pub(super) fn metadata(core: &Core, call: &Call) -> Command {
    let options = &core.options;
    let leader = core.node.leader().and_then(|id| options.peers.get(&id));
    let header = GetControllerMetadataResponse {
        group: Some(options.group.as_str().into()),
        controller_leader_id: leader.map(|peer| peer.name.as_str().into()),
        controller_leader_address: leader.map(|peer| peer.address.as_str().into()),
        is_leader: core.node.leadership().is_some(),
        peers: Some(options.peers_text().into()),
    };
    call.success().with_header(&header)
}

pub(super) async fn replica_info(core: &Arc<Core>, call: &Call) -> Handled {
    let header: GetReplicaInfo<'_> = call.fields()?;
    let group = BrokerName::parse(&header.broker_name)?;
    core.confirm().await?;
    let view = core.node.state(|state| state.view(&group)).ok_or_else(|| {
        Refusal::new(
            response_code::CONTROLLER_BROKER_METADATA_NOT_EXIST,
            format!("the group {group} is not known"),
        )
    })?;
    let master = view.master.as_ref();
    let header = GetReplicaInfoResponse {
        master_broker_id: master.map(|master| wire_id(master.broker)),
        master_address: master.map(|master| master.address.clone().into()),
        master_epoch: Some(view.epoch.get()),
    };
    let body = set_of(&view).to_json();
    Ok(call.success().with_header(&header).with_body(body))
}

pub(super) async fn sync_state_data(core: &Arc<Core>, call: &Call) -> Handled {
    let asked: Vec<String> = serde_json::from_slice(&call.body)
        .map_err(|error| Refusal::invalid(format!("the body is no list of groups: {error}")))?;
    if asked.len() > GROUPS_ASKED_MAX {
        return Err(Refusal::invalid(format!(
            "at most {GROUPS_ASKED_MAX} groups"
        )));
    }
    core.confirm().await?;
    let now = core.now();
    let (_, info) = core.leading(|detector, state| {
        let known = asked.iter().filter_map(|name| {
            let name = BrokerName::parse(name).ok()?;
            let group = state.group(&name)?;
            Some((
                name.to_string(),
                replicas(now, detector, state, &name, group),
            ))
        });
        BrokerReplicasInfo {
            replicas_info_table: known.collect(),
        }
    })?;
    Ok(call.success().with_body(info.to_json()))
}

fn replicas(
    now: Moment,
    detector: &Detector,
    state: &State,
    name: &BrokerName,
    group: &BrokerGroup,
) -> ReplicasInfo {
    let alive = detector.alive(now, state, name);
    let members = group.replicas().iter().map(|(id, replica)| {
        let identity = ReplicaIdentity {
            alive: alive.contains(id),
            broker_address: replica.address.clone(),
            broker_id: wire_id(*id),
            broker_name: name.to_string(),
        };
        (group.set().contains(id), identity)
    });
    let (inside, outside): (Vec<_>, Vec<_>) = members.partition(|(in_set, _)| *in_set);
    let identities = |found: Vec<(bool, ReplicaIdentity)>| {
        let found = found.into_iter();
        found.map(|(_, identity)| identity).collect()
    };
    let master = group.master();
    ReplicasInfo {
        in_sync_replicas: identities(inside),
        master_address: master
            .and_then(|id| group.replicas().get(&id))
            .map(|replica| replica.address.clone()),
        master_broker_id: master.map(wire_id),
        master_epoch: group.epoch().get(),
        not_in_sync_replicas: identities(outside),
        sync_state_set_epoch: group.set_epoch().get(),
    }
}

pub(super) async fn next_broker_id(core: &Arc<Core>, call: &Call) -> Handled {
    let header: GetNextBrokerId<'_> = call.fields()?;
    let (cluster, group) = names(&header.cluster_name, &header.broker_name)?;
    core.confirm().await?;
    let next = core.node.state(|state| state.next_broker_id(&group));
    let header = GetNextBrokerIdResponse {
        cluster_name: Some(cluster.as_str().into()),
        broker_name: Some(group.as_str().into()),
        next_broker_id: Some(wire_id(next)),
    };
    Ok(call.success().with_header(&header))
}
