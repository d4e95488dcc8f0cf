//! An election that somebody asks for (1002): a broker that found no master, `electMaster`, a
//! switchover.
//!
//! **Invariant:** a living master is replaced only after it can take no write: the detector says when.
//! If that does not come about in time, it keeps its right.

use std::{sync::Arc, time::Duration};

use rmq_controller_fsm::{
    Asked, Asking, Election, ElectionPolicy, GroupView, Outcome, Trigger, Unclean, settings_of,
};
use rmq_protocol::{
    body::{BrokerMemberGroup, ElectMasterResponse as ElectBody},
    header::{ElectMaster, ElectMasterResponse},
    remoting::{Command, response_code},
};
use rmq_raft::{Leadership, ProposeError};
use rmq_types::{BrokerName, MasterEpoch};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout_at},
};

use super::unexpected;
use crate::{
    answer::{Call, Handled, Refusal, broker_id, set_of, wire_id},
    core::Core,
    lead,
};

/// How long a master is given to be replaced. Longer than its lease, shorter than a request.
const ASK_MAX: Duration = Duration::from_secs(8);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

struct Wanted {
    group: BrokerName,
    trigger: Trigger,
    expected: Option<MasterEpoch>,
    acknowledged: bool,
}

pub(super) async fn elect(core: &Arc<Core>, call: &Call) -> Handled {
    let header: ElectMaster<'_> = call.fields()?;
    let trigger = match header.broker_id {
        -1 => Trigger::Leader,
        id if header.designate_elect => Trigger::Designated(broker_id(id)?),
        id => Trigger::Broker(broker_id(id)?),
    };
    let wanted = Wanted {
        group: BrokerName::parse(&header.broker_name)?,
        trigger,
        expected: header.expected_master_epoch.map(MasterEpoch::new),
        acknowledged: header.acknowledge_data_loss == Some(true),
    };
    let until = Instant::now() + ASK_MAX;
    let (leadership, election) = ask(core, &wanted, until).await?;
    let (sender, receiver) = oneshot::channel();
    let task = Arc::clone(core);
    let begun = core.tasks.run(async move {
        let _ = sender.send(lead::elect(&task, leadership, election).await);
    });
    if !begun {
        let _ = core.still_leading(leadership, |detector, _| detector.decided(&wanted.group));
        return Err(Refusal::busy(&"too much is under way"));
    }
    let outcome = match timeout_at(until + super::DECIDE_MAX, receiver).await {
        Ok(Ok(outcome)) => outcome?,
        Ok(Err(_)) | Err(_) => return Err(ProposeError::Unknown.into()),
    };
    answer(call, &outcome)
}

/// Asks the detector until the election may be proposed.
async fn ask(
    core: &Core,
    wanted: &Wanted,
    until: Instant,
) -> Result<(Leadership, Election), Refusal> {
    let mut first: Option<Leadership> = None;
    loop {
        let (now, wall) = (core.now(), core.wall());
        let (leadership, asked) = core.leading(|detector, state| {
            let known = state
                .group(&wanted.group)
                .map(rmq_controller_fsm::BrokerGroup::epoch);
            if let (Some(expected), Some(known)) = (wanted.expected, known)
                && expected != known
            {
                return Err(known);
            }
            let settings = settings_of(state);
            let designated = matches!(wanted.trigger, Trigger::Designated(_));
            let may_lose = wanted.acknowledged || (settings.unclean_allowed && designated);
            let policy = ElectionPolicy {
                ack: settings.ack,
                unclean: if may_lose {
                    Unclean::Acknowledged
                } else {
                    Unclean::Forbidden
                },
            };
            let asking = Asking {
                now,
                wall,
                group: &wanted.group,
                policy,
            };
            Ok(detector.ask(asking, state, wanted.trigger))
        })?;
        let asked = asked.map_err(|known| {
            let remark = format!("the master epoch is {known}");
            Refusal::new(response_code::CONTROLLER_FENCED_MASTER_EPOCH, remark)
        })?;
        let same = *first.get_or_insert(leadership) == leadership;
        if !same {
            return Err(core.not_leader());
        }
        if let Asked::Propose(election) = asked {
            return Ok((leadership, election));
        }
        if Instant::now() >= until {
            let _ = core.still_leading(leadership, |detector, _| detector.keep(&wanted.group));
            return Err(Refusal::new(
                response_code::CONTROLLER_ELECT_MASTER_FAILED,
                "the wanted broker did not become ready in time; the master keeps its right",
            ));
        }
        core.due.notify_one();
        sleep(LOOK_EVERY).await;
    }
}

fn answer(call: &Call, outcome: &Outcome) -> Handled {
    match outcome {
        Outcome::Elected { view, .. } => Ok(full(call.success(), view)),
        Outcome::MasterStays(view) => {
            let stays = Command::response(call.opaque, outcome.code());
            Ok(full(stays, view).with_remark("the present master stays"))
        }
        Outcome::MasterCleared(_) => Err(Refusal::new(
            outcome.code(),
            "nobody can be elected: the group has no master",
        )),
        Outcome::Refused(refusal) => Err(Refusal::from(refusal)),
        other => Err(unexpected(other)),
    }
}

fn full(answer: Command, view: &GroupView) -> Command {
    let master = view.master.as_ref();
    let header = ElectMasterResponse {
        master_broker_id: master.map(|master| wire_id(master.broker)),
        master_address: master.map(|master| master.address.as_str().into()),
        master_epoch: Some(view.epoch.get()),
        sync_state_set_epoch: Some(view.set_epoch.get()),
    };
    let members = view
        .members
        .iter()
        .map(|(id, address)| (wire_id(*id), address.clone()));
    let body = ElectBody {
        broker_member_group: Some(BrokerMemberGroup {
            broker_addrs: members.collect(),
            broker_name: view.group.to_string(),
            cluster: view.cluster.to_string(),
        }),
        sync_state_set: set_of(view).sync_state_set,
    };
    answer.with_header(&header).with_body(body.to_json())
}
