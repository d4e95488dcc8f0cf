//! Broker ids: given, registered, forgotten.
//!
//! **Invariant:** an id is given to one broker only, also after it or its whole group was forgotten;
//! forgetting never makes an election possible that could lose an acknowledged message.

use std::collections::BTreeSet;

use rmq_types::BrokerId;

use crate::{
    command::{ApplyBrokerId, Clean, CleanBrokerData, RegisterBroker},
    outcome::{Outcome, Refusal},
    state::{
        BrokerGroup, Electorate, FIRST_BROKER_ID, GROUPS_MAX, REPLICAS_MAX, Replica, State,
        TEXT_BYTES_MAX,
    },
};

pub(crate) fn apply_id(state: &mut State, command: &ApplyBrokerId) -> Result<Outcome, Refusal> {
    let next = state.next_broker_id(&command.group);
    let broker = command.broker;
    if command.check_code.len() > TEXT_BYTES_MAX {
        return Err(Refusal::TooMany("bytes in the check code"));
    }
    if let Some(group) = state.groups.get(&command.group) {
        if let Some(replica) = group.replicas.get(&broker) {
            let same = replica.check_code == command.check_code;
            return if same {
                Ok(Outcome::IdApplied { broker })
            } else {
                Err(Refusal::BrokerIdInvalid { next })
            };
        }
        if group.replicas.len() >= REPLICAS_MAX {
            return Err(Refusal::TooMany("brokers in the group"));
        }
    } else {
        if state.groups.len() >= GROUPS_MAX {
            return Err(Refusal::TooMany("groups"));
        }
        // The first of a group asks for exactly the id that the answer to 1012 names.
        if broker != next {
            return Err(Refusal::BrokerIdInvalid { next });
        }
    }
    let after = broker.get().checked_add(1).map(BrokerId::new);
    // An id below the next one belonged to a broker that was forgotten.
    let Some(after) = after.filter(|_| broker >= next && broker >= FIRST_BROKER_ID) else {
        return Err(Refusal::BrokerIdInvalid { next });
    };
    let cluster = command.cluster.clone();
    let group = state
        .groups
        .entry(command.group.clone())
        .or_insert_with(|| BrokerGroup::new(cluster, next));
    let address = command.check_code.split(';').next().unwrap_or_default();
    group.replicas.insert(
        broker,
        Replica {
            address: address.to_owned(),
            check_code: command.check_code.clone(),
        },
    );
    group.next_id = after;
    state.dropped.remove(&command.group);
    Ok(Outcome::IdApplied { broker })
}

pub(crate) fn register(state: &mut State, command: &RegisterBroker) -> Result<Outcome, Refusal> {
    if command.address.len() > TEXT_BYTES_MAX {
        return Err(Refusal::TooMany("bytes in the address"));
    }
    let group = state.groups.get_mut(&command.group);
    let group = group.filter(|group| group.cluster == command.cluster);
    let group = group.ok_or(Refusal::NotRegistered)?;
    let replica = group.replicas.get_mut(&command.broker);
    let replica = replica.ok_or(Refusal::NotRegistered)?;
    if replica.address != command.address {
        replica.address.clone_from(&command.address);
    }
    let mut view = group.view(&command.group);
    if !command.master_alive {
        view.master = None;
    }
    Ok(Outcome::Registered(view))
}

pub(crate) fn clean(state: &mut State, command: &CleanBrokerData) -> Result<Outcome, Refusal> {
    let group = state.groups.get_mut(&command.group);
    let group = group.ok_or(Refusal::CleanInvalid("the group is not known"))?;
    match &command.what {
        Clean::Ids(ids) => {
            clean_ids(group, ids, &command.alive)?;
            if !group.replicas.is_empty() {
                return Ok(Outcome::Cleaned);
            }
        }
        Clean::Group if group.master.is_some() => {
            return Err(Refusal::CleanInvalid("the group has a master"));
        }
        Clean::Group | Clean::GroupEvenAlive => {}
    }
    if state.dropped.len() >= GROUPS_MAX {
        return Err(Refusal::TooMany("dropped groups"));
    }
    if let Some(group) = state.groups.remove(&command.group) {
        state.dropped.insert(command.group.clone(), group.next_id);
    }
    Ok(Outcome::Cleaned)
}

fn clean_ids(
    group: &mut BrokerGroup,
    ids: &BTreeSet<BrokerId>,
    alive: &BTreeSet<BrokerId>,
) -> Result<(), Refusal> {
    if ids.is_empty() {
        return Err(Refusal::CleanInvalid("no ids"));
    }
    if ids.iter().any(|id| alive.contains(id)) {
        return Err(Refusal::CleanInvalid("a broker to be cleaned is alive"));
    }
    if group.replicas.keys().all(|id| ids.contains(id)) {
        // With its last broker the group goes.
        group.replicas.clear();
        return Ok(());
    }
    if group.master.is_some() && ids.iter().any(|id| group.set.contains(id)) {
        return Err(Refusal::CleanInvalid(
            "a broker to be cleaned is in the SyncStateSet, which the master shrinks first",
        ));
    }
    // Without a master: those who stay must still be able to prove that nothing is missing.
    let touched = |members: &BTreeSet<BrokerId>| members.iter().any(|id| ids.contains(id));
    let electorate = group.unsettled.clone().or_else(|| {
        touched(&group.set).then(|| Electorate {
            needed: group.ack.electors_needed(group.set.len()),
            members: group.set.clone(),
        })
    });
    let left = electorate.map(|mut electorate| {
        electorate.members.retain(|id| !ids.contains(id));
        electorate
    });
    let set_left = group.set.iter().filter(|id| !ids.contains(id)).count();
    let empty = !group.set.is_empty() && set_left == 0;
    let too_few = |left: &Electorate| left.members.len() < left.needed;
    if empty || left.as_ref().is_some_and(too_few) {
        return Err(Refusal::CleanInvalid(
            "those who stay could not prove that they hold every acknowledged message",
        ));
    }
    group.unsettled = left;
    group.set.retain(|id| !ids.contains(id));
    group.replicas.retain(|id, _| !ids.contains(id));
    Ok(())
}
