//! What a leader tells brokers by itself: a new master (1008), report now (ours).
//!
//! **Invariant:** notices are best effort and bounded in time; whoever misses one hears the same in
//! the answer to its next heartbeat.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rmq_controller_fsm::GroupView;
use rmq_protocol::{
    header::{NotifyBrokerRoleChanged, REPORT_NOW, ReportNow},
    remoting::{Command, request_code},
};
use rmq_types::{BrokerId, BrokerName};
use tokio::time::timeout;

use crate::{
    answer::{set_of, wire_id},
    core::Core,
};

const NOTICE_MAX: Duration = Duration::from_secs(3);

fn send(core: &Arc<Core>, address: String, command: Command) {
    let task = Arc::clone(core);
    let sent = core.tasks.run(async move {
        match timeout(NOTICE_MAX, task.client.notify(&address, command)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a broker was not told"),
            Err(_) => tracing::debug!(address, "a broker was not told in time"),
        }
    });
    if !sent {
        tracing::warn!("a broker was not told: too much is under way");
    }
}

/// Tells the living members of a group who is master.
pub(crate) fn tell_role(core: &Arc<Core>, view: &GroupView, alive: &BTreeSet<BrokerId>) {
    let master = view.master.as_ref();
    let header = NotifyBrokerRoleChanged {
        master_address: master.map(|master| master.address.clone().into()),
        master_epoch: Some(view.epoch.get()),
        sync_state_set_epoch: Some(view.set_epoch.get()),
        master_broker_id: master.map(|master| wire_id(master.broker)),
    };
    let body = set_of(view).to_json();
    for (id, address) in &view.members {
        if !alive.contains(id) && master.is_none_or(|master| master.broker != *id) {
            continue;
        }
        let command = Command::oneway(request_code::NOTIFY_BROKER_ROLE_CHANGED)
            .with_header(&header)
            .with_body(body.clone());
        send(core, address.clone(), command);
    }
}

/// Asks brokers for a heartbeat at once.
pub(crate) fn ask_reports(
    core: &Arc<Core>,
    group: &BrokerName,
    brokers: &BTreeSet<BrokerId>,
    round: u64,
) {
    let view = core.node.state(|state| state.view(group));
    let Some(view) = view else {
        return;
    };
    let asked = view.members.iter().filter(|(id, _)| brokers.contains(*id));
    for (_, address) in asked {
        let header = ReportNow {
            broker_name: group.as_str().to_owned().into(),
            round: round as i64,
        };
        send(
            core,
            address.clone(),
            Command::oneway(REPORT_NOW).with_header(&header),
        );
    }
}
