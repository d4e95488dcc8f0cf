//! One function a request code.
//!
//! **Invariant:** what changes the replicated state is a command that a majority decided; what reads
//! it was confirmed by a majority first, or says of itself that it may be old (1005, 1010).

mod config;
mod elect;
mod heartbeat;
mod members;
mod query;

use std::{future::Future, sync::Arc, time::Duration};

use rmq_controller_fsm::{Command as Proposal, Outcome};
use rmq_protocol::remoting::{Command, request_code, response_code};
use tokio::time::timeout;

use crate::{
    answer::{Call, Handled, Refusal},
    core::Core,
};

/// A proposal whose fate is not known by then is answered as unknown.
const DECIDE_MAX: Duration = Duration::from_secs(3);

/// Answers a request.
pub(crate) async fn handle(core: &Arc<Core>, call: &Call) -> Command {
    let handled = match call.code {
        code if rmq_raft::is_raft_code(code) => raft(core, call).await,
        request_code::BROKER_HEARTBEAT => heartbeat::heartbeat(core, call).await,
        request_code::CONTROLLER_ALTER_SYNC_STATE_SET => members::alter_set(core, call).await,
        request_code::CONTROLLER_ELECT_MASTER => Box::pin(elect::elect(core, call)).await,
        request_code::CONTROLLER_REGISTER_BROKER => members::register(core, call).await,
        request_code::CONTROLLER_GET_REPLICA_INFO => query::replica_info(core, call).await,
        request_code::CONTROLLER_GET_METADATA_INFO => Ok(query::metadata(core, call)),
        request_code::CONTROLLER_GET_SYNC_STATE_DATA => query::sync_state_data(core, call).await,
        request_code::UPDATE_CONTROLLER_CONFIG => config::update(core, call).await,
        request_code::GET_CONTROLLER_CONFIG => Ok(config::get(core, call)),
        request_code::CLEAN_BROKER_DATA => members::clean(core, call).await,
        request_code::CONTROLLER_GET_NEXT_BROKER_ID => query::next_broker_id(core, call).await,
        request_code::CONTROLLER_APPLY_BROKER_ID => members::apply_id(core, call).await,
        code => Err(Refusal::new(
            response_code::REQUEST_CODE_NOT_SUPPORTED,
            format!(" request type {code} not supported"),
        )),
    };
    call.finish(handled)
}

async fn raft(core: &Core, call: &Call) -> Handled {
    let answer = core.node.serve(call.code, &call.ext, &call.body).await;
    match answer {
        Ok(body) => Ok(call.success().with_body(body)),
        Err(remark) => Err(Refusal::new(response_code::SYSTEM_ERROR, remark)),
    }
}

/// Has a command decided, within the time of a request.
async fn decide(core: &Core, command: Proposal) -> Result<Outcome, Refusal> {
    let outcome = within(core.node.propose(command)).await??;
    match outcome.refusal() {
        Some(refusal) => Err(Refusal::from(refusal)),
        None => Ok(outcome),
    }
}

async fn within<T>(work: impl Future<Output = T>) -> Result<T, Refusal> {
    timeout(DECIDE_MAX, work).await.map_err(|_| {
        Refusal::new(
            response_code::SYSTEM_ERROR,
            "no majority of the controllers decided in time; the request may still take effect",
        )
    })
}

/// An outcome that this command cannot have: a defect, told and not hidden.
fn unexpected(outcome: &Outcome) -> Refusal {
    tracing::error!(?outcome, "a command had the outcome of another one");
    Refusal::new(response_code::SYSTEM_ERROR, "unexpected outcome")
}
