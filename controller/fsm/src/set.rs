//! Changes of a SyncStateSet.
//!
//! **Invariant:** only the master of the present epoch alters its set, one change after the other,
//! and never to a set without itself or with a broker that is not alive. The refusals come in the
//! Java controller's order.

use rmq_types::{BrokerId, MasterEpoch, SyncStateSetEpoch};

use crate::{
    command::{AlterSyncStateSet, Settle},
    outcome::{Outcome, Refusal},
    state::{BrokerGroup, State},
};

pub(crate) fn alter(state: &mut State, command: &AlterSyncStateSet) -> Result<Outcome, Refusal> {
    let group = state.groups.get_mut(&command.group);
    let group = group.ok_or(Refusal::SetUnalterable("the group is not known"))?;
    if command.set == group.set && !command.renew {
        return Err(Refusal::SetUnalterable("the set is the present one"));
    }
    in_force(
        group,
        command.master,
        (command.master_epoch, command.set_epoch),
    )?;
    let unknown = |id: &&BrokerId| !group.replicas.contains_key(*id);
    if let Some(id) = command.set.iter().find(unknown) {
        return Err(Refusal::InvalidReplica(*id));
    }
    let dead = |id: &&BrokerId| !command.alive.contains(*id);
    if let Some(id) = command.set.iter().find(dead).filter(|_| !command.renew) {
        return Err(Refusal::NotAlive(*id));
    }
    if command.renew && command.set != group.set {
        return Err(Refusal::SetUnalterable("a renewed set is the present one"));
    }
    if command.renew && !command.alive.contains(&command.master) {
        return Err(Refusal::NotAlive(command.master));
    }
    if !command.set.contains(&command.master) {
        return Err(Refusal::SetUnalterable("the master is not in the set"));
    }
    let next = group.set_epoch.next();
    let next = next.ok_or(Refusal::SetUnalterable("no set epoch is left"))?;
    group.set.clone_from(&command.set);
    group.set_epoch = next;
    Ok(Outcome::SetAltered {
        set_epoch: next,
        view: group.view(&command.group),
    })
}

pub(crate) fn settle(state: &mut State, command: &Settle) -> Result<Outcome, Refusal> {
    let group = state.groups.get_mut(&command.group);
    let group = group.ok_or(Refusal::NotRegistered)?;
    in_force(
        group,
        command.master,
        (command.master_epoch, command.set_epoch),
    )?;
    group.unsettled = None;
    Ok(Outcome::Settled)
}

/// Refuses a command that does not speak of the present master in its epoch and of the present set.
fn in_force(
    group: &BrokerGroup,
    master: BrokerId,
    (epoch, set_epoch): (MasterEpoch, SyncStateSetEpoch),
) -> Result<(), Refusal> {
    if group.master != Some(master) {
        return Err(Refusal::InvalidMaster);
    }
    if epoch != group.epoch {
        return Err(Refusal::FencedMasterEpoch {
            current: group.epoch,
        });
    }
    if set_epoch != group.set_epoch {
        return Err(Refusal::FencedSetEpoch {
            current: group.set_epoch,
        });
    }
    Ok(())
}
