//! Applying commands.
//!
//! **Invariant:** the result depends on the state and the command alone; a refused command leaves
//! the state as it was, and none panics.

use crate::{
    command::Command,
    config, elect, members,
    outcome::{Outcome, Refusal},
    set,
    state::State,
};

/// Applies `command` to `state`.
pub fn apply(state: &mut State, command: &Command) -> Outcome {
    outcome(state, command).unwrap_or_else(Outcome::Refused)
}

fn outcome(state: &mut State, command: &Command) -> Result<Outcome, Refusal> {
    match command {
        Command::ApplyBrokerId(command) => members::apply_id(state, command),
        Command::RegisterBroker(command) => members::register(state, command),
        Command::AlterSyncStateSet(command) => set::alter(state, command),
        Command::ElectMaster(election) => elect::elect(state, election),
        Command::Settle(command) => set::settle(state, command),
        Command::CleanBrokerData(command) => members::clean(state, command),
        Command::SetConfig(values) => config::set(state, values),
    }
}
