//! Brokers about themselves: register (103), unregister (104), topic-table version (322),
//! heartbeat (904), members of a group (901).

use std::collections::BTreeMap;

use rmq_protocol::{
    body::{BrokerMemberGroup, BrokerMemberGroupResponse, DataVersion, KvTable},
    header::{
        BrokerHeader, BrokerHeartbeat, GetBrokerMemberGroup, QueryDataVersionResponse,
        RegisterBrokerResponse,
    },
};

use super::{
    call::{Call, Handled, Refusal, echo},
    core::Core,
    registration,
};
use crate::{
    kv::ORDER_TOPIC_NAMESPACE,
    route::{Accepted, Registered, Unregister},
};

pub(super) fn register(core: &Core, call: &Call<'_>) -> Handled {
    let registration = registration::read(call)?;
    let (cluster, broker) = (registration.cluster.clone(), registration.broker.clone());
    let (id, addr) = (registration.id, registration.addr.clone());
    let now = core.now();
    let (outcome, with_order) = {
        let mut state = core.write();
        let with_order = state.options.live.return_order_topic_config_to_broker;
        (state.table.register(now, &registration), with_order)
    };
    let accepted = match outcome {
        Ok(Registered::Accepted(accepted)) => accepted,
        Ok(Registered::Superseded { holder }) => {
            tracing::warn!(%cluster, %broker, %id, addr, holder, "registration ignored: older state");
            Accepted::default()
        }
        Err(error) => {
            tracing::warn!(addr, %error, "registration refused");
            return Err(Refusal::error(error.to_string()));
        }
    };
    if accepted.is_new {
        tracing::info!(%cluster, %broker, %id, addr, "broker registered");
    }
    core.remember(call.conn);
    core.perform(accepted.actions);
    let header = RegisterBrokerResponse {
        ha_server_addr: accepted.master_ha_addr.map(Into::into),
        master_addr: accepted.master_addr.map(Into::into),
    };
    let answer = call.success().with_header(&header);
    let order = core
        .kv
        .table()
        .namespace(ORDER_TOPIC_NAMESPACE)
        .filter(|_| with_order)
        .cloned();
    Ok(match order {
        Some(table) => answer.with_body(KvTable { table }.to_json()),
        None => answer,
    })
}

pub(super) fn unregister(core: &Core, call: &Call<'_>) -> Handled {
    let header: BrokerHeader<'_> = call.fields()?;
    let word = Unregister {
        cluster: &header.cluster_name,
        broker: &header.broker_name,
        addr: &header.broker_addr,
        connection: call.token(),
    };
    let removed = core.write().table.unregister(word);
    if let Some(actions) = removed {
        let (broker, addr) = (&header.broker_name, &header.broker_addr);
        tracing::info!(%broker, id = header.broker_id, %addr, "broker unregistered");
        core.perform(actions);
    } else {
        tracing::debug!(
            broker = echo(&header.broker_name),
            "unregister without effect"
        );
    }
    Ok(call.success())
}

pub(super) fn query_data_version(core: &Core, call: &Call<'_>) -> Handled {
    let header: BrokerHeader<'_> = call.fields()?;
    let sent = if call.body.is_empty() {
        None
    } else {
        Some(DataVersion::from_json(call.body).map_err(|error| Refusal::body(&error))?)
    };
    let (cluster, broker, addr) = (
        &header.cluster_name,
        &header.broker_name,
        &header.broker_addr,
    );
    let now = core.now();
    let stored = {
        let mut state = core.write();
        state.table.heartbeat(now, cluster, broker, addr);
        state.table.data_version(cluster, broker, addr)
    };
    let changed = stored.is_none() || stored != sent;
    let answer = call
        .success()
        .with_header(&QueryDataVersionResponse { changed });
    Ok(match stored {
        Some(version) => answer.with_body(version.to_json()),
        None => answer,
    })
}

pub(super) fn heartbeat(core: &Core, call: &Call<'_>) -> Handled {
    let header: BrokerHeartbeat<'_> = call.fields()?;
    let now = core.now();
    let (cluster, broker, addr) = (
        &header.cluster_name,
        &header.broker_name,
        &header.broker_addr,
    );
    if !core.write().table.heartbeat(now, cluster, broker, addr) {
        tracing::debug!(%broker, %addr, "heartbeat of a broker that is not registered");
    }
    Ok(call.success())
}

pub(super) fn members(core: &Core, call: &Call<'_>) -> Handled {
    let header: GetBrokerMemberGroup<'_> = call.fields()?;
    let members = core.read().table.members(&header.broker_name);
    let addresses = members
        .addresses
        .into_iter()
        .map(|(id, addr)| (id as i64, addr));
    let group = BrokerMemberGroup {
        broker_addrs: addresses.collect::<BTreeMap<_, _>>(),
        broker_name: header.broker_name.into_owned(),
        cluster: header.cluster_name.into_owned(),
    };
    let body = BrokerMemberGroupResponse {
        broker_member_group: Some(group),
    };
    Ok(call.success().with_body(body.to_json()))
}
