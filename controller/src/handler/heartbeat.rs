//! Heartbeats of brokers (904).
//!
//! **Invariant:** the answer is made after a majority confirmed, in a round begun after the receipt,
//! that this controller leads, and by the detector that heard the heartbeat.

use std::sync::Arc;

use rmq_controller_fsm::{
    BrokerGroup,
    detector::{ConnectionId, Heartbeat, OurHeartbeat},
    settings_of,
};
use rmq_protocol::header::{ControllerHeartbeat, ControllerHeartbeatResponse};
use rmq_types::{BrokerName, MasterEpoch, SyncStateSetEpoch};

use crate::{
    answer::{Call, Handled, Refusal, acks_of, broker_id, set_of, wire_id},
    core::Core,
};

pub(super) async fn heartbeat(core: &Arc<Core>, call: &Call) -> Handled {
    let heartbeat = read(call)?;
    let group = heartbeat.group.clone();
    let received = call.received;
    let (leadership, urgent) = core.leading(|detector, state| {
        detector.heartbeat(received, state, &heartbeat);
        let master = state.group(&group).and_then(BrokerGroup::master);
        let alive = detector.alive(received, state, &group);
        // An election may have waited for just this.
        master.is_none_or(|master| !alive.contains(&master))
    })?;
    if urgent {
        core.due.notify_one();
    }
    if !call.conn.is_open() {
        // It was closed before it was heard.
        closed(core, call);
    }
    core.confirm().await?;
    let (answer, view, lease_millis) = core.still_leading(leadership, |detector, state| {
        let answer = detector.confirm(received, state, &heartbeat);
        let lease = settings_of(state).lease_millis;
        (answer, state.view(&group), lease)
    })?;
    let Some(view) = view else {
        return Err(Refusal::new(
            rmq_protocol::remoting::response_code::CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            "the broker is not registered here",
        ));
    };
    let master = view.master.as_ref();
    let header = ControllerHeartbeatResponse {
        lease: Some(answer.lease),
        lease_millis: Some(lease_millis as i64),
        round: Some(answer.round as i64),
        unclean: Some(view.unclean),
        acks: Some(acks_of(view.ack)),
        master_broker_id: master.map(|master| wire_id(master.broker)),
        master_address: master.map(|master| master.address.as_str().into()),
        master_epoch: Some(view.epoch.get()),
        sync_state_set_epoch: Some(view.set_epoch.get()),
    };
    let body = set_of(&view).to_json();
    Ok(call.success().with_header(&header).with_body(body))
}

/// A connection was closed by its peer.
pub(crate) fn closed(core: &Core, call: &Call) {
    if call.conn.ended_by_peer() {
        let (now, id) = (core.now(), ConnectionId(call.conn.id().0));
        let _ = core.leading(|detector, state| detector.closed(now, state, id));
    }
}

fn read(call: &Call) -> Result<Heartbeat, Refusal> {
    let header: ControllerHeartbeat<'_> = call.fields()?;
    let name = header.broker_name.as_deref();
    let name = name.ok_or_else(|| Refusal::invalid("brokerName is missing"))?;
    let id = header.broker_id;
    let id = id.ok_or_else(|| Refusal::invalid("brokerId is missing"))?;
    let epoch = |raw: Option<i32>| raw.map(MasterEpoch::new);
    let settled_set = header.settled_set_epoch.map(SyncStateSetEpoch::new);
    // Numbers of ours that are negative are nobody's.
    let number = |raw: Option<i64>| raw.and_then(|raw| u64::try_from(raw).ok()).unwrap_or(0);
    let ours = header.incarnation.map(|incarnation| OurHeartbeat {
        incarnation: number(Some(incarnation)),
        sequence: number(header.sequence),
        round: number(header.round),
        fenced: header.fenced == Some(true),
        settled: epoch(header.settled_master_epoch).zip(settled_set),
        declined: epoch(header.declined_master_epoch),
        may_lack: header.may_lack == Some(true),
    });
    Ok(Heartbeat {
        group: BrokerName::parse(name)?,
        broker: broker_id(id)?,
        connection: ConnectionId(call.conn.id().0),
        epoch: header.epoch.unwrap_or(-1),
        max_offset: header.max_offset.unwrap_or(-1),
        priority: header.election_priority.unwrap_or(i32::MAX),
        timeout_millis: header
            .heartbeat_timeout_mills
            .and_then(|millis| u64::try_from(millis).ok()),
        ours,
    })
}
