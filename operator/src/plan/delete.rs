//! The cluster's own end: disks by policy, then the finalizer.
//!
//! **Invariant:** everything but disks goes by ownership; a disk is deleted only when
//! `deletionPolicy.pvc` says so.

use super::{Component, Draft, Step, WaitKind};

pub(super) fn plan(draft: &mut Draft<'_>) {
    if !draft.observed.cluster.has_finalizer {
        return;
    }
    if draft.desired.delete_volumes_with_cluster {
        let mut left = false;
        for (index, group) in &draft.observed.groups {
            if let Some(volume) = group.volumes.values().find(|volume| !volume.deleting) {
                left = true;
                draft.step(Step::DeleteVolume {
                    group: *index,
                    claim: volume.name.clone(),
                    uid: volume.uid.clone(),
                });
            }
        }
        if left {
            let reason = "volumes are deleted first";
            draft.wait(Component::Shared, None, WaitKind::Volume, reason);
            return;
        }
    }
    draft.step(Step::RemoveFinalizer);
}
