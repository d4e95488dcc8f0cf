//! Who becomes master.
//!
//! **Invariant:** without an acknowledged command only a replica is elected that holds every
//! acknowledged message: it is the best of enough members of the set to meet each acknowledgement.
//! A master that may still take writes is never replaced. [`decide`] changes nothing, so a leader
//! can look before it proposes.
//!
//! Beyond Java: logs are compared as they are (no difference cut to 32 bits); with
//! acknowledgement by a quorum, members are heard only after the old master lost its right
//! (`fresh`), and the set keeps its living members instead of shrinking to the master, while
//! [`Electorate`] remembers among whom the old messages are until the new master has copied them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use rmq_types::{BrokerId, MasterEpoch};

use crate::{
    command::{AckPolicy, Election, MasterStanding, ReplicaFacts, Trigger, Unclean},
    outcome::{Outcome, Refusal},
    state::{BrokerGroup, ElectionRecord, Electorate, State},
};

/// What an election would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This broker becomes master.
    Elect {
        /// The broker.
        winner: BrokerId,
        /// Acknowledged messages may be lost.
        unclean: bool,
    },
    /// The present master stays.
    Stay,
    /// Nobody can be elected, and the group loses its master.
    Clear,
}

/// What `election` would do to `group`.
pub fn decide(group: &BrokerGroup, election: &Election) -> Result<Decision, Refusal> {
    if election.expected_epoch.is_some_and(|e| e != group.epoch) {
        return Err(Refusal::FencedMasterEpoch {
            current: group.epoch,
        });
    }
    let designated = match election.trigger {
        Trigger::Designated(id) => Some(id),
        Trigger::Leader | Trigger::Broker(_) => None,
    };
    if let Some(stay) = master_stays(group, election, designated)? {
        return Ok(stay);
    }
    if let Trigger::Designated(id) | Trigger::Broker(id) = election.trigger
        && !group.replicas.contains_key(&id)
    {
        return Err(Refusal::NotRegistered);
    }
    if group.epoch == MasterEpoch::default() {
        return first(group, election);
    }
    let clean = clean_winner(group, election, designated);
    if let Some(winner) = clean {
        return Ok(Decision::Elect {
            winner,
            unclean: false,
        });
    }
    if election.policy.unclean == Unclean::Acknowledged {
        let living = living(group, election, |_, _| true);
        let winner = match designated {
            Some(id) => living.contains_key(&id).then_some(id),
            None => best(&living),
        };
        if let Some(winner) = winner {
            return Ok(Decision::Elect {
                winner,
                unclean: true,
            });
        }
    }
    match election.trigger {
        Trigger::Leader if group.master.is_some() => Ok(Decision::Clear),
        _ => Err(Refusal::ElectionFailed(
            "no living member of the SyncStateSet is known to hold every acknowledged message",
        )),
    }
}

/// The present master stays as long as it may take writes, and when it is alive and nobody else is
/// wanted.
fn master_stays(
    group: &BrokerGroup,
    election: &Election,
    designated: Option<BrokerId>,
) -> Result<Option<Decision>, Refusal> {
    let Some(master) = group.master else {
        return Ok(None);
    };
    let wanted = designated.is_none_or(|id| id == master);
    match election.standing {
        MasterStanding::Holding | MasterStanding::Released if wanted => Ok(Some(Decision::Stay)),
        MasterStanding::Lost | MasterStanding::Released => Ok(None),
        MasterStanding::Holding => Err(Refusal::ElectionFailed(
            "the present master still holds its lease",
        )),
    }
}

/// The first election of a group: the broker that asks, unless another one is known to have more.
fn first(group: &BrokerGroup, election: &Election) -> Result<Decision, Refusal> {
    let (Trigger::Broker(asker) | Trigger::Designated(asker)) = election.trigger else {
        return Err(Refusal::ElectionFailed("no broker asked to be the first"));
    };
    let living = living(group, election, |_, _| true);
    let longer = best(&living).filter(|id| {
        let has = |facts: &ReplicaFacts| (facts.epoch.max(0), facts.max_offset.max(0));
        let own = living.get(&asker).map_or((0, 0), has);
        living.get(id).is_some_and(|facts| has(facts) > own)
    });
    let winner = match election.trigger {
        Trigger::Broker(_) => longer.unwrap_or(asker),
        Trigger::Designated(_) | Trigger::Leader => asker,
    };
    Ok(Decision::Elect {
        winner,
        unclean: false,
    })
}

fn clean_winner(
    group: &BrokerGroup,
    election: &Election,
    designated: Option<BrokerId>,
) -> Option<BrokerId> {
    // What an election can rely on: those who cannot have lost bytes and, where not everybody holds
    // everything, those who spoke after the last acknowledgement.
    let by_quorum = |ack: AckPolicy| matches!(ack, AckPolicy::Quorum(_));
    let fresh_only = by_quorum(group.ack) || group.unsettled.is_some();
    // Where nothing was promised, a replica that lost bytes is as good as any.
    let promised = group.ack != AckPolicy::Async;
    let reliable = living(group, election, |_, facts| {
        !(facts.may_lack && promised) && (facts.fresh || !fresh_only)
    });
    let heard = |members: &BTreeSet<BrokerId>| {
        let heard = members.iter().filter(|id| reliable.contains_key(id));
        heard.count()
    };
    let needed = group.ack.electors_needed(group.set.len());
    if heard(&group.set) < needed {
        return None;
    }
    let mut electors = group.set.clone();
    if let Some(unsettled) = &group.unsettled {
        if heard(&unsettled.members) < unsettled.needed {
            return None;
        }
        electors.extend(&unsettled.members);
    }
    let candidates: BTreeMap<BrokerId, ReplicaFacts> = reliable
        .into_iter()
        .filter(|(id, _)| electors.contains(id))
        .collect();
    let Some(wanted) = designated else {
        return best(&candidates);
    };
    let wanted_facts = candidates.get(&wanted)?;
    let reaches = |facts: &ReplicaFacts| (facts.epoch, facts.max_offset);
    let behind = candidates
        .values()
        .any(|facts| reaches(facts) > reaches(wanted_facts));
    (!fresh_only || !behind).then_some(wanted)
}

fn living(
    group: &BrokerGroup,
    election: &Election,
    keep: impl Fn(BrokerId, &ReplicaFacts) -> bool,
) -> BTreeMap<BrokerId, ReplicaFacts> {
    let registered = election
        .alive
        .iter()
        .filter(|(id, _)| group.replicas.contains_key(id));
    registered
        .filter(|(id, facts)| keep(**id, facts))
        .map(|(id, facts)| (*id, *facts))
        .collect()
}

/// The longest log of the highest epoch; among equals the preferred one, then the lowest id.
fn best(candidates: &BTreeMap<BrokerId, ReplicaFacts>) -> Option<BrokerId> {
    let rank = |id: BrokerId, facts: &ReplicaFacts| {
        let preferred = Reverse((facts.priority, id));
        (facts.epoch, facts.max_offset, preferred)
    };
    let best = candidates
        .iter()
        .max_by_key(|(id, facts)| rank(**id, facts));
    best.map(|(id, _)| *id)
}

pub(crate) fn elect(state: &mut State, election: &Election) -> Result<Outcome, Refusal> {
    let group = state.groups.get_mut(&election.group);
    let group = group.ok_or(Refusal::NotRegistered)?;
    let (master, unclean) = match decide(group, election)? {
        Decision::Stay => return Ok(Outcome::MasterStays(group.view(&election.group))),
        Decision::Elect { winner, unclean } => (Some(winner), unclean),
        Decision::Clear => (None, false),
    };
    let used_up = Refusal::ElectionFailed("no epoch is left");
    let epoch = group.epoch.next().ok_or(used_up.clone())?;
    let set_epoch = group.set_epoch.next().ok_or(used_up)?;
    if let Some(winner) = master {
        begin(group, election, winner, unclean);
    }
    group.master = master;
    group.epoch = epoch;
    group.set_epoch = set_epoch;
    group.remember(ElectionRecord {
        epoch,
        master,
        at: election.at,
        unclean,
    });
    let view = group.view(&election.group);
    Ok(if master.is_some() {
        Outcome::Elected { view, unclean }
    } else {
        Outcome::MasterCleared(view)
    })
}

/// Set, electorate and policy of the epoch that `winner` begins.
fn begin(group: &mut BrokerGroup, election: &Election, winner: BrokerId, unclean: bool) {
    let first = group.epoch == MasterEpoch::default();
    // Where the messages of the epoch that ends are. Everybody of a set that acknowledged
    // together holds all of them already.
    let before = match group.ack {
        AckPolicy::Quorum(_) => Some(Electorate {
            needed: group.ack.electors_needed(group.set.len()),
            members: group.set.clone(),
        }),
        AckPolicy::Async | AckPolicy::AllInSync => None,
    };
    let alive = |id: &BrokerId| election.alive.contains_key(id);
    let keeps = !unclean && !first && election.policy.ack != AckPolicy::Async;
    // A member of an asynchronous set was never promised to hold what the winner holds.
    let keeps = keeps && group.ack != AckPolicy::Async;
    if keeps {
        group.set.retain(|id| alive(id));
        group.set.insert(winner);
        group.unsettled = group.unsettled.take().or(before);
        // A member that may lack bytes comes back through the master.
        let lacks = |id: &BrokerId| election.alive.get(id).is_some_and(|facts| facts.may_lack);
        group.set.retain(|id| *id == winner || !lacks(id));
    } else {
        group.set = BTreeSet::from([winner]);
        group.unsettled = None;
    }
    group.ack = election.policy.ack;
}
