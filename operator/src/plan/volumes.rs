//! Disks: growing, and lost ones.
//!
//! **Invariant:** a disk never shrinks, and the only copy of anything is given up by the user alone.

use super::{Component, Draft, GroupWanted, Step, WaitKind};
use crate::observe::{GroupSeen, StuckReason, VolumePhase, VolumeSeen};

/// Whether the set is made anew in this pass, so that its objects are not applied.
pub(super) fn plan(
    draft: &mut Draft<'_>,
    index: i32,
    seen: &GroupSeen,
    wanted: &GroupWanted,
) -> bool {
    let mut settled = true;
    for (ordinal, volume) in &seen.volumes {
        settled &= grow(draft, index, (*ordinal, volume), seen, wanted);
    }
    lost(draft, index, seen);
    let Some(set) = seen.set.as_ref().filter(|set| set.volume_bytes > 0) else {
        return false;
    };
    if set.volume_bytes == wanted.volume_bytes {
        return false;
    }
    // The claim template of a set cannot be changed: first the disks, then a new set over the pods.
    if settled && !draft.disturbs(index) {
        let uid = set.uid.clone();
        draft.step(Step::RecreateSet { group: index, uid });
    }
    true
}

/// Whether the disk is asked to have the size it shall have.
fn grow(
    draft: &mut Draft<'_>,
    index: i32,
    (ordinal, volume): (i32, &VolumeSeen),
    seen: &GroupSeen,
    wanted: &GroupWanted,
) -> bool {
    let component = Component::Group(index);
    let pod = seen.pod(ordinal).map(|pod| pod.name.clone());
    if volume.phase != VolumePhase::Bound || volume.deleting {
        return true;
    }
    // The last part of growing needs a pod that mounts the disk.
    if volume.is_growing() && !draft.desired.hibernated {
        let reason = format!("volume {} grows to {} bytes", volume.name, volume.requested);
        draft.wait(component, pod.clone(), WaitKind::Volume, &reason);
    }
    let bytes = wanted
        .volume_bytes
        .max(volume.requested)
        .max(expanded(volume, ordinal, seen, wanted));
    if bytes <= volume.requested {
        return true;
    }
    if volume.expandable == Some(false) {
        let reason = format!("the class of volume {} cannot grow it", volume.name);
        draft.wait(component, pod, WaitKind::Volume, &reason);
        return true;
    }
    draft.step(Step::GrowVolume {
        group: index,
        ordinal,
        claim: volume.name.clone(),
        bytes,
    });
    false
}

/// The size that the disk's use asks for, one step at a time up to the limit.
fn expanded(volume: &VolumeSeen, ordinal: i32, seen: &GroupSeen, wanted: &GroupWanted) -> u64 {
    let Some(expand) = wanted.expand else {
        return 0;
    };
    let full = seen
        .broker(ordinal)
        .is_some_and(|broker| broker.disk_used_permille >= expand.threshold_permille);
    if !full || volume.is_growing() || volume.requested >= expand.limit_bytes {
        return 0;
    }
    volume
        .requested
        .saturating_add(expand.step_bytes)
        .min(expand.limit_bytes)
}

/// Disks that are gone. A replica's is replaced; the only copy needs a word of the user.
fn lost(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen) {
    for pod in &seen.pods {
        let volume = seen.volumes.get(&pod.ordinal);
        let gone = match volume {
            Some(volume) => volume.phase == VolumePhase::Lost,
            None => pod
                .stuck
                .as_ref()
                .is_some_and(|stuck| stuck.reason == StuckReason::VolumeLost),
        };
        if !gone && !pod.replace_asked {
            continue;
        }
        let alone = seen.pods.len() <= 1;
        if alone && !pod.replace_asked {
            let reason = format!(
                "the disk of {} is lost and there is no other copy: bring the volume back, or \
                 annotate the pod with rocketmq.rs/replace=pvc to go on with an empty one",
                pod.name
            );
            let component = Component::Group(index);
            draft.wait(component, Some(pod.name.clone()), WaitKind::Volume, &reason);
            continue;
        }
        if pod.deleting || volume.is_some_and(|volume| volume.deleting) {
            continue;
        }
        let named = |name: &str, uid: &str| (name.to_owned(), uid.to_owned());
        draft.step(Step::ReplaceVolume {
            group: index,
            ordinal: pod.ordinal,
            claim: volume.map(|volume| named(&volume.name, &volume.uid)),
            pod: Some(named(&pod.name, &pod.uid)),
        });
    }
}
