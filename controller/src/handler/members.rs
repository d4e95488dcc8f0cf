//! Brokers of a group: take an id (1013), register (1003), change the SyncStateSet (1001), forget
//! brokers (1011).
//!
//! **Invariant:** who is alive is stamped by the leader when it proposes; a master that the leader
//! holds for lost is not, so its set is frozen.

use std::{collections::BTreeSet, sync::Arc};

use rmq_controller_fsm::{
    AlterSyncStateSet, ApplyBrokerId, BrokerGroup, Clean, CleanBrokerData, Command as Proposal,
    Outcome, RegisterBroker,
};
use rmq_protocol::{
    body::SyncStateSet,
    header::{
        AlterSyncStateSet as AlterHeader, AlterSyncStateSetResponse, ApplyBrokerId as ApplyHeader,
        ApplyBrokerIdResponse, CleanControllerBrokerData, RegisterBrokerToController,
        RegisterBrokerToControllerResponse, broker_ids_to_clean,
    },
    remoting::response_code,
};
use rmq_types::{BrokerId, BrokerName, MasterEpoch, SyncStateSetEpoch};

use super::{decide, unexpected};
use crate::{
    answer::{Call, Handled, Refusal, broker_id, names, set_of, wire_id},
    core::Core,
};

pub(super) async fn apply_id(core: &Core, call: &Call) -> Handled {
    let header: ApplyHeader<'_> = call.fields()?;
    let (cluster, group) = names(&header.cluster_name, &header.broker_name)?;
    let answer = ApplyBrokerIdResponse {
        cluster_name: Some(cluster.as_str().to_owned().into()),
        broker_name: Some(group.as_str().to_owned().into()),
    };
    let command = ApplyBrokerId {
        cluster,
        group,
        broker: broker_id(header.applied_broker_id)?,
        check_code: header.register_check_code.into_owned(),
    };
    match decide(core, Proposal::ApplyBrokerId(command)).await? {
        Outcome::IdApplied { .. } => Ok(call.success().with_header(&answer)),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn register(core: &Core, call: &Call) -> Handled {
    let header: RegisterBrokerToController<'_> = call.fields()?;
    let (cluster, group) = names(&header.cluster_name, &header.broker_name)?;
    let now = core.now();
    let (_, master_alive) = core.leading(|detector, state| {
        let master = state.group(&group).and_then(BrokerGroup::master);
        master.is_some_and(|master| detector.alive(now, state, &group).contains(&master))
    })?;
    let command = RegisterBroker {
        cluster,
        group,
        broker: broker_id(header.broker_id)?,
        address: header.broker_address.into_owned(),
        master_alive,
    };
    let outcome = decide(core, Proposal::RegisterBroker(command)).await?;
    let Outcome::Registered(view) = outcome else {
        return Err(unexpected(&outcome));
    };
    let master = view.master.as_ref();
    let header = RegisterBrokerToControllerResponse {
        cluster_name: Some(view.cluster.as_str().into()),
        broker_name: Some(view.group.as_str().into()),
        master_broker_id: master.map(|master| wire_id(master.broker)),
        master_address: master.map(|master| master.address.as_str().into()),
        master_epoch: master.map(|_| view.epoch.get()),
        sync_state_set_epoch: master.map(|_| view.set_epoch.get()),
    };
    let body = set_of(&view).to_json();
    Ok(call.success().with_header(&header).with_body(body))
}

fn alive(core: &Core, group: &BrokerName) -> Result<BTreeSet<BrokerId>, Refusal> {
    let now = core.now();
    let (_, alive) = core.leading(|detector, state| detector.alive(now, state, group))?;
    Ok(alive)
}

pub(super) async fn alter_set(core: &Arc<Core>, call: &Call) -> Handled {
    let header: AlterHeader<'_> = call.fields()?;
    let group = BrokerName::parse(&header.broker_name)?;
    let wanted = SyncStateSet::from_json(&call.body)?;
    let set: Result<BTreeSet<BrokerId>, Refusal> = wanted
        .sync_state_set
        .iter()
        .map(|id| broker_id(*id))
        .collect();
    let command = AlterSyncStateSet {
        alive: alive(core, &group)?,
        group,
        master: broker_id(header.master_broker_id)?,
        master_epoch: MasterEpoch::new(header.master_epoch),
        set: set?,
        set_epoch: SyncStateSetEpoch::new(wanted.sync_state_set_epoch),
        renew: header.renew == Some(true),
    };
    let outcome = decide(core, Proposal::AlterSyncStateSet(command)).await?;
    let Outcome::SetAltered { set_epoch, view } = outcome else {
        return Err(unexpected(&outcome));
    };
    tracing::info!(group = %view.group, set = ?view.set, %set_epoch, "SyncStateSet changed");
    let header = AlterSyncStateSetResponse {
        new_sync_state_set_epoch: set_epoch.get(),
    };
    let body = set_of(&view).to_json();
    Ok(call.success().with_header(&header).with_body(body))
}

pub(super) async fn clean(core: &Arc<Core>, call: &Call) -> Handled {
    let header: CleanControllerBrokerData<'_> = call.fields()?;
    let group = BrokerName::parse(&header.broker_name)?;
    let invalid = |remark: &str| {
        Refusal::new(
            response_code::CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
            remark,
        )
    };
    let text = header.broker_controller_ids_to_clean.unwrap_or_default();
    let what = if header.is_clean_living_broker {
        Clean::GroupEvenAlive
    } else if text.trim().is_empty() {
        Clean::Group
    } else {
        let ids = broker_ids_to_clean(&text);
        let ids = ids.ok_or_else(|| invalid("the ids are no list of numbers"))?;
        let ids: Result<BTreeSet<BrokerId>, Refusal> = ids.into_iter().map(broker_id).collect();
        Clean::Ids(ids?)
    };
    let command = CleanBrokerData {
        alive: alive(core, &group)?,
        group,
        what,
    };
    match decide(core, Proposal::CleanBrokerData(command)).await? {
        Outcome::Cleaned => Ok(call.success()),
        other => Err(unexpected(&other)),
    }
}
