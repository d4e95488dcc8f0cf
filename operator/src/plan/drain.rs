//! A group that shall go: cordoned, drained, stopped, unregistered, removed.
//!
//! **Invariant:** before its pods go it is written into the group's status that it was drained; up to
//! then adding the group to the manifest again takes the removal back. Time alone never removes.

use super::{Component, Draft, Step, Wait, WaitKind};
use crate::observe::{Answer, Backlog, GroupSeen, ObjectsState};
use rmq_operator_api::ScaleInPolicy;
use rmq_types::Timestamp;

const HOUR_MILLIS: i64 = 3_600_000;

pub(super) fn plan(draft: &mut Draft<'_>, index: i32) {
    let Some(seen) = draft.observed.groups.get(&index) else {
        return;
    };
    if !seen.has_objects && seen.set.is_none() && seen.pods.is_empty() {
        // Only kept disks are left, which nobody asked to delete.
        return;
    }
    let may_go = seen.is_marked_drained() || may_be_given_up(draft, index, seen);
    if may_go && (seen.set.is_none() || seen.set.as_ref().is_some_and(|set| set.deleting)) {
        clear_away(draft, index, seen);
        return;
    }
    if seen.objects != ObjectsState::Same && seen.drain_phase.is_none_or(|_| seen.has_set()) {
        let component = Component::Group(index);
        draft.step(Step::Apply { component });
    }
    let open: Vec<i32> = seen
        .known_brokers()
        .filter(|(_, broker)| broker.takes_sends())
        .map(|(ordinal, _)| ordinal)
        .collect();
    if let Some(ordinal) = open.first().copied() {
        draft.step(Step::CloseGroup {
            group: index,
            ordinal,
        });
        return;
    }
    match drained(draft, index, seen) {
        Ok(()) if seen.is_marked_drained() || may_be_given_up(draft, index, seen) => {
            if let Some(set) = &seen.set {
                let uid = set.uid.clone();
                draft.step(Step::StopGroup { group: index, uid });
            }
        }
        Ok(()) => {
            draft.step(Step::MarkDrained { group: index });
        }
        Err(reason) => {
            let deadline = seen
                .drain_since
                .map(|since| since.plus_millis(draft.desired.scale_in.timeout_millis));
            draft.plan.waits.push(Wait {
                component: Component::Group(index),
                pod: None,
                kind: WaitKind::Drain,
                reason,
                deadline,
            });
        }
    }
}

/// Whether what is left in it may be lost, or it never took a message.
fn may_be_given_up(draft: &Draft<'_>, index: i32, seen: &GroupSeen) -> bool {
    draft.desired.scale_in.policy == ScaleInPolicy::Force
        || draft.desired.scale_in.skip.contains(&index)
        || !seen.opened
}

/// Whether nothing is left in it that somebody waits for; the text says what is.
fn drained(draft: &Draft<'_>, index: i32, seen: &GroupSeen) -> Result<(), String> {
    if may_be_given_up(draft, index, seen) {
        return Ok(());
    }
    let asked = seen.known_brokers().count();
    if asked == 0 || asked < seen.pods.len() {
        return Err(
            "a broker of the group does not answer: nobody can say what is left".to_owned(),
        );
    }
    let backlog = match &seen.backlog {
        Some(Answer::Known(backlog)) => backlog,
        Some(Answer::Unknown(why)) => return Err(format!("what is left cannot be asked: {why}")),
        None => return Err("what is left was not asked yet".to_owned()),
    };
    match draft.desired.scale_in.policy {
        ScaleInPolicy::WaitRetention => expired(backlog, draft.now),
        ScaleInPolicy::WaitConsumed | ScaleInPolicy::Force => consumed(backlog),
    }
}

fn consumed(backlog: &Backlog) -> Result<(), String> {
    if backlog.remaining <= 0 {
        return Ok(());
    }
    let most = backlog
        .slowest_group
        .as_ref()
        .map(|group| format!(", most by {group}"))
        .unwrap_or_default();
    Err(format!(
        "{} messages are not consumed{most}",
        crate::status::rounded(backlog.remaining)
    ))
}

fn expired(backlog: &Backlog, now: Timestamp) -> Result<(), String> {
    let Some(newest) = backlog.newest_at else {
        return Ok(());
    };
    let kept = backlog.retention_hours.saturating_mul(HOUR_MILLIS);
    if now.since(newest) > kept {
        return Ok(());
    }
    let hours = backlog.retention_hours;
    Err(format!(
        "the newest message is younger than the {hours} hours that messages are kept"
    ))
}

/// Its set is gone or going: registration, disks, objects.
fn clear_away(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen) {
    let component = Component::Group(index);
    if seen.set.is_some() || !seen.pods.is_empty() {
        draft.wait(component, None, WaitKind::Drain, "its pods end in order");
        return;
    }
    let from: Vec<String> = draft
        .observed
        .name_servers
        .views
        .iter()
        .filter(|(_, view)| {
            view.known()
                .is_some_and(|view| view.brokers.contains_key(&seen.broker_name))
        })
        .map(|(address, _)| address.clone())
        .collect();
    if !from.is_empty() {
        draft.step(Step::Unregister {
            group: index,
            broker_name: seen.broker_name.clone(),
            from,
        });
        return;
    }
    let volume = seen.volumes.values().find(|volume| !volume.deleting);
    if let (true, Some(volume)) = (draft.desired.scale_in.delete_volumes, volume) {
        draft.step(Step::DeleteVolume {
            group: index,
            claim: volume.name.clone(),
            uid: volume.uid.clone(),
        });
        return;
    }
    draft.step(Step::RemoveGroup { group: index });
}
