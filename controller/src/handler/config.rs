//! The controllers' configuration: set (1009) and read (1010).
//!
//! **Invariant:** only the closed list of keys of the replicated state can be set; places and peers
//! are shown and never set over the network (code 16).

use std::collections::BTreeMap;

use rmq_controller_fsm::{Command as Proposal, config_in_force};
use rmq_protocol::{java_properties, remoting::Command};

use super::decide;
use crate::{
    answer::{Call, Handled, Refusal},
    core::Core,
};

pub(super) async fn update(core: &Core, call: &Call) -> Handled {
    let entries = java_properties::parse(&call.body);
    let entries = entries.map_err(|error| Refusal::invalid(error.to_string()))?;
    let values: BTreeMap<String, String> = entries
        .into_iter()
        .map(|entry| (entry.key, entry.value.trim().to_owned()))
        .collect();
    decide(core, Proposal::SetConfig(values)).await?;
    tracing::info!(peer = %call.conn.peer_addr(), "configuration changed");
    Ok(call.success())
}

pub(super) fn get(core: &Core, call: &Call) -> Command {
    let mut entries = core.node.state(config_in_force);
    let options = &core.options;
    entries.insert("controllerDLegerGroup".to_owned(), options.group.clone());
    entries.insert("controllerDLegerPeers".to_owned(), options.peers_text());
    entries.insert(
        "controllerDLegerSelfId".to_owned(),
        format!("n{}", options.id),
    );
    let entries = entries
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()));
    call.success().with_body(java_properties::write(entries))
}
