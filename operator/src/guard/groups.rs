//! What holds for groups and their disks: opening, closing, growing and going.
//!
//! **Invariant:** nothing that holds messages goes unless it was empty, or the user said that it may.

use super::{Case, Invariant, Metadata, Refusal, metadata};
use crate::observe::{GroupSeen, VolumePhase};
use crate::plan::Step;
use rmq_operator_api::ScaleInPolicy;

impl Case<'_> {
    fn is_wanted(&self, index: i32) -> bool {
        self.desired.groups.contains_key(&index)
    }

    fn unwanted(&self, index: i32) -> Result<&GroupSeen, Refusal> {
        self.ensure(
            !self.is_wanted(index),
            Invariant::I18,
            "the manifest asks for the group",
        )?;
        self.group(index)
    }

    pub(super) fn open(&self, index: i32, ordinal: i32) -> Result<(), Refusal> {
        self.ensure(
            self.is_wanted(index),
            Invariant::I18,
            "the group is being removed",
        )?;
        let group = self.group(index)?;
        self.ensure(
            group.master() == Some(ordinal),
            Invariant::I1,
            "the member is not master",
        )?;
        let other = group
            .known_brokers()
            .any(|(seen, broker)| seen != ordinal && broker.takes_sends() && broker.broker_id == 0);
        self.ensure(!other, Invariant::I1, "another member takes sends")?;
        match metadata(self.observed, self.desired, index) {
            Metadata::Complete => Ok(()),
            Metadata::MissingFrom(from) => self.refuse(
                Invariant::I18,
                format!("group {from} has topics or consumer groups that it lacks"),
            ),
            Metadata::Unknown(why) => self.refuse(Invariant::I18, why),
        }
    }

    pub(super) fn close(&self, index: i32) -> Result<(), Refusal> {
        self.unwanted(index).map(|_| ())
    }

    pub(super) fn grow(&self, index: i32, ordinal: i32, bytes: u64) -> Result<(), Refusal> {
        let group = self.group(index)?;
        let larger = group
            .volumes
            .get(&ordinal)
            .is_some_and(|volume| volume.requested < bytes);
        self.ensure(larger, Invariant::I9, "volumes only grow")
    }

    pub(super) fn recreate(&self, index: i32, uid: &str) -> Result<(), Refusal> {
        let group = self.group(index)?;
        self.same_set(group, uid)
    }

    fn same_set(&self, group: &GroupSeen, uid: &str) -> Result<(), Refusal> {
        let same = group
            .set
            .as_ref()
            .is_some_and(|set| set.uid == uid && !uid.is_empty());
        self.ensure(same, Invariant::I7, "the set is another one by now")
    }

    pub(super) fn replace(
        &self,
        index: i32,
        ordinal: i32,
        claim: Option<&(String, String)>,
        pod: Option<&(String, String)>,
    ) -> Result<(), Refusal> {
        let group = self.group(index)?;
        let elsewhere = self
            .before
            .iter()
            .any(|step| matches!(step, Step::ReplaceVolume { .. }));
        self.ensure(
            !elsewhere,
            Invariant::I9,
            "another volume is replaced in this pass",
        )?;
        let volume = group.volumes.get(&ordinal);
        let seen_claim = volume.map(|volume| (volume.name.clone(), volume.uid.clone()));
        let seen_pod = group.pod(ordinal);
        let same_pod = pod.is_none_or(|(name, uid)| {
            seen_pod.is_some_and(|seen| seen.name == *name && seen.uid == *uid)
        });
        self.ensure(
            claim.cloned() == seen_claim && same_pod,
            Invariant::I7,
            "volume or pod are others by now",
        )?;
        let lost = volume.is_none_or(|volume| volume.phase == VolumePhase::Lost);
        let asked = seen_pod.is_some_and(|pod| pod.replace_asked);
        let in_sync = match (&group.sync, group.broker(ordinal)) {
            (Some(sync), Some(broker)) => sync.in_sync.contains(&broker.broker_id),
            // A member that nobody can ask may be the one that has everything.
            (Some(_), None) => !lost,
            (None, _) => false,
        };
        self.ensure(
            !in_sync,
            Invariant::I9,
            "the member is in sync, its disk has messages that are needed",
        )?;
        let others_down = group
            .pods
            .iter()
            .any(|other| other.ordinal != ordinal && !other.is_healthy());
        let alone = group.pods.iter().all(|other| other.ordinal == ordinal);
        self.ensure(
            asked || (lost && !alone && group.sync.is_some()),
            Invariant::I9,
            "only the user can give up the only copy: annotate the pod",
        )?;
        self.ensure(
            !others_down,
            Invariant::I4,
            "another member of the group is not ready",
        )
    }

    /// Whether messages of a group that goes are all consumed, or may be given up.
    fn may_go(&self, index: i32, group: &GroupSeen) -> Result<(), Refusal> {
        let given_up = self.desired.scale_in.policy == ScaleInPolicy::Force
            || self.desired.scale_in.skip.contains(&index);
        self.ensure(
            group.is_marked_drained() || given_up || !group.opened,
            Invariant::I18,
            "consumers have messages left in it",
        )
    }

    pub(super) fn stop(&self, index: i32, uid: &str) -> Result<(), Refusal> {
        let group = self.unwanted(index)?;
        self.same_set(group, uid)?;
        self.may_go(index, group)?;
        let open = group
            .known_brokers()
            .any(|(_, broker)| broker.takes_sends());
        self.ensure(!open, Invariant::I18, "it still takes sends")
    }

    pub(super) fn unregister(&self, index: i32, from: &[String]) -> Result<(), Refusal> {
        let group = self.unwanted(index)?;
        self.ensure(
            group.pods.is_empty() && !from.is_empty(),
            Invariant::I12,
            "a broker that runs registers itself",
        )
    }

    pub(super) fn delete_volume(&self, index: i32, claim: &str, uid: &str) -> Result<(), Refusal> {
        let group = self.group(index)?;
        let seen = group
            .volumes
            .values()
            .any(|volume| volume.name == claim && volume.uid == uid && !uid.is_empty());
        self.ensure(seen, Invariant::I7, "the volume is another one by now")?;
        if self.desired.deleting {
            return self.ensure(
                !self.desired.deletion_blocked
                    && self.desired.delete_volumes_with_cluster
                    && self.observed.cluster.has_finalizer,
                Invariant::I9,
                "deletionPolicy keeps volumes",
            );
        }
        self.unwanted(index)?;
        self.may_go(index, group)?;
        self.ensure(
            self.desired.scale_in.delete_volumes && group.pods.is_empty() && !group.has_set(),
            Invariant::I9,
            "storage.retainPolicy keeps volumes, or a pod still uses it",
        )
    }

    pub(super) fn remove(&self, index: i32) -> Result<(), Refusal> {
        let group = self.unwanted(index)?;
        self.may_go(index, group)?;
        self.ensure(
            group.set.is_none() && group.pods.is_empty(),
            Invariant::I18,
            "its pods still run",
        )?;
        let kept = !self.desired.scale_in.delete_volumes
            || group.volumes.values().all(|volume| volume.deleting);
        self.ensure(kept, Invariant::I9, "its volumes are to be deleted first")
    }
}
