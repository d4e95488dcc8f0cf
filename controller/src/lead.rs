//! What a leader does without being asked: it follows its leadership, looks for lost masters every
//! 50 ms, proposes elections, and sets the configuration of its file where nobody has.
//!
//! **Invariant:** for each election and settling that the detector wanted, the detector is told once
//! its fate is known; if the leadership ends before, that detector is gone with it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmq_controller_fsm::{Command, Election, Outcome, Settle, detector::Action, settings_of};
use rmq_raft::{Leadership, ProposeError};
use tokio::time::{MissedTickBehavior, interval};

use crate::{core::Core, notice};

const TICK: Duration = Duration::from_millis(50);

/// Runs until it is dropped.
pub(crate) async fn run(core: Arc<Core>) {
    let mut leaderships = core.node.leaderships();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            changed = leaderships.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            _ = ticks.tick() => {}
            () = core.due.notified() => {}
        }
        if core.follow_leadership() {
            plant(&core);
        }
        look(&core);
    }
}

/// Asks the detector what is due.
fn look(core: &Arc<Core>) {
    let (now, wall) = (core.now(), core.wall());
    let Ok((leadership, actions)) = core.leading(|detector, state| {
        detector.set_settings(settings_of(state));
        detector.tick(now, wall, state)
    }) else {
        return;
    };
    for action in actions {
        match action {
            Action::AskReports {
                group,
                brokers,
                round,
            } => notice::ask_reports(core, &group, &brokers, round),
            Action::Elect(election) => begin_election(core, leadership, election),
            Action::Settle(settle) => begin_settling(core, leadership, settle),
            Action::MasterLost {
                group,
                epoch,
                reason,
            } => tracing::warn!(%group, %epoch, ?reason, "master lost"),
        }
    }
}

fn begin_election(core: &Arc<Core>, leadership: Leadership, election: Election) {
    let (task, group) = (Arc::clone(core), election.group.clone());
    let begun = core.tasks.run(async move {
        if let Err(error) = elect(&task, leadership, election).await {
            tracing::warn!(%error, "an election was not decided");
        }
    });
    if !begun {
        let _ = core.still_leading(leadership, |detector, _| detector.decided(&group));
    }
}

/// Has an election decided, tells the detector, and the brokers if there is a new master.
pub(crate) async fn elect(
    core: &Arc<Core>,
    leadership: Leadership,
    election: Election,
) -> Result<Outcome, ProposeError> {
    let group = election.group.clone();
    let result = core.node.propose(Command::ElectMaster(election)).await;
    let now = core.now();
    // A proposal whose fate is unknown ends with the leadership, and the detector with it.
    let decided = result != Err(ProposeError::Unknown);
    let alive = core.still_leading(leadership, |detector, state| {
        if decided {
            detector.decided(&group);
        }
        detector.alive(now, state, &group)
    });
    if let Ok(Outcome::Elected { view, unclean }) = &result {
        let master = view.master.as_ref().map(|master| master.broker.get());
        tracing::info!(%group, epoch = %view.epoch, master, unclean, "master elected");
        let notify = core.node.state(|state| settings_of(state).notify);
        if notify {
            notice::tell_role(core, view, &alive.unwrap_or_default());
        }
    }
    core.due.notify_one();
    result
}

fn begin_settling(core: &Arc<Core>, leadership: Leadership, settle: Settle) {
    let (task, group) = (Arc::clone(core), settle.group.clone());
    let of_task = group.clone();
    let begun = core.tasks.run(async move {
        let result = task.node.propose(Command::Settle(settle)).await;
        if result != Err(ProposeError::Unknown) {
            let _ = task.still_leading(leadership, |detector, _| {
                detector.settle_decided(&of_task);
            });
        }
    });
    if !begun {
        let _ = core.still_leading(leadership, |detector, _| detector.settle_decided(&group));
    }
}

/// Sets the keys of this controller's file that nobody has set.
fn plant(core: &Arc<Core>) {
    let missing: BTreeMap<String, String> = core.node.state(|state| {
        let seeds = core.options.seeds.iter();
        let missing = seeds.filter(|(key, _)| !state.config().contains_key(*key));
        missing
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    });
    if missing.is_empty() {
        return;
    }
    let task = Arc::clone(core);
    core.tasks.run(async move {
        match task.node.propose(Command::SetConfig(missing)).await {
            Ok(Outcome::Refused(refusal)) => {
                tracing::warn!(%refusal, "the configuration of the file is not taken");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the configuration of the file was not set"),
        }
    });
}
