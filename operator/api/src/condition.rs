//! Types and reasons of conditions, and the phase that follows from them.
//!
//! **Invariant:** a condition never has a reason that is not in its type's list, and the phase is a
//! function of the conditions alone.

use crate::words::words;

words! {
    /// What a condition is about.
    ConditionType {
        /// Everything that was asked for runs and answers.
        Ready,
        /// Some group takes sends.
        Available,
        /// A majority of controllers agrees.
        QuorumHealthy,
        /// Every member of every group has what its master has.
        ReplicationHealthy,
        /// Consumers can read from replicas.
        ReadReplicasServing,
        /// Every NameServer gives the same routes.
        RoutesConsistent,
        /// Something is being changed.
        Progressing,
        /// Something is broken, and the reason says what.
        Degraded,
        /// What runs has the configuration of the manifest.
        ConfigApplied,
        /// The versions can work together.
        VersionSupported,
        /// Disks have the size that was asked for.
        StorageReady,
        /// The operator writes nothing.
        Paused,
        /// The pods are stopped on purpose.
        Hibernated,
        /// A deletion waits for a word of the user.
        DeletionBlocked,
        /// Nothing is left to do.
        Quiesced,
        /// Nothing is left to do and everything is healthy.
        Stable,
    }
}

words! {
    /// Why a condition is as it is.
    ConditionReason {
        /// Ready: everything runs.
        AllComponentsReady,
        /// Ready: pods are being made.
        Provisioning,
        /// Ready: a group takes no sends.
        GroupNotWritable,
        /// Ready: no controller decides.
        ControllerQuorumLost,
        /// Ready: too few NameServers answer.
        NameServersUnavailable,
        /// The manifest cannot be carried out as it is.
        InvalidSpec,
        /// Ready: pods are stopped on purpose.
        Stopped,
        /// Available: some group takes sends.
        WritesServed,
        /// Available: no group takes sends.
        AllGroupsDown,
        /// Available: clients find no NameServer.
        NoNameServer,
        /// QuorumHealthy: a majority has everything.
        MajorityCaughtUp,
        /// QuorumHealthy: nobody leads.
        NoLeader,
        /// QuorumHealthy: a minority is behind.
        MinorityLagging,
        /// QuorumHealthy: one controller cannot lose any.
        SingleController,
        /// QuorumHealthy, ReplicationHealthy: there is no controller.
        NoController,
        /// ReplicationHealthy: nobody is behind.
        AllInSync,
        /// ReplicationHealthy: a replica is behind.
        ReplicaLagging,
        /// ReplicationHealthy: fewer than `minInSync`.
        BelowMinInSync,
        /// ReplicationHealthy: replicas were asked for and none runs.
        NoReplicas,
        /// ReplicationHealthy: none was asked for.
        SingleMember,
        /// ReadReplicasServing: reads go to replicas.
        Routed,
        /// ReadReplicasServing: switched off, or there are no replicas.
        Disabled,
        /// ReadReplicasServing: no replica can be read.
        NoReadableReplica,
        /// ReadReplicasServing: replicas are too far behind.
        LagExceeded,
        /// RoutesConsistent: all the same.
        Agreed,
        /// RoutesConsistent: a NameServer lacks a broker.
        BrokerMissingOnNameServer,
        /// RoutesConsistent: a NameServer has an older master.
        StaleEpochRegistered,
        /// RoutesConsistent: a broker is registered under another address than it should.
        WrongAddressRegistered,
        /// The facts could not be asked for.
        Unreachable,
        /// Progressing: pods are replaced.
        RollingUpdate,
        /// Progressing: NameServers or groups come or go.
        Scaling,
        /// Progressing: mastership moves on purpose.
        SwitchingOver,
        /// Progressing: mastership moves because a master was lost.
        FailingOver,
        /// Progressing: disks grow.
        ExpandingStorage,
        /// Progressing: a roll was stopped.
        RolloutPaused,
        /// Nothing to do; or nothing wrong.
        Idle,
        /// Degraded: nothing is wrong.
        AllHealthy,
        /// Degraded: a container ends again and again.
        PodCrashLoop,
        /// Degraded: a container was killed for its memory.
        OOMKilled,
        /// Degraded: no node can take a pod.
        Unschedulable,
        /// Degraded: an image cannot be had.
        ImagePullFailed,
        /// Degraded: a container cannot be made as it is described.
        ContainerConfigError,
        /// Degraded: a volume is held by another node or cannot be mounted.
        VolumeAttachConflict,
        /// Degraded: a volume is gone.
        VolumeLost,
        /// Degraded: a disk is nearly full.
        DiskPressure,
        /// Degraded: a replica cannot keep up.
        SlowReplica,
        /// Degraded: a pod's node does not answer.
        NodeLost,
        /// Degraded: a pod runs and does not become ready.
        NotReady,
        /// Degraded: the members asked for can never be safe.
        UnsafeTopology,
        /// Degraded: draining takes longer than `scaleIn.timeout`.
        DrainLate,
        /// ConfigApplied: all the same.
        InSync,
        /// ConfigApplied: some keys count after a restart.
        PendingRestart,
        /// ConfigApplied: a broker did not take a key.
        Rejected,
        /// ConfigApplied: keys are being sent.
        Pushing,
        /// VersionSupported: yes.
        Supported,
        /// VersionSupported: an older version may not read newer files.
        DowngradeForbidden,
        /// VersionSupported: the operator does not know the version.
        UnknownVersion,
        /// StorageReady: as asked.
        AsRequested,
        /// StorageReady: disks are growing.
        ResizePending,
        /// StorageReady: the class cannot grow disks.
        ResizeUnsupported,
        /// Paused, Hibernated: the manifest says so.
        UserRequested,
        /// Paused, Hibernated, DeletionBlocked: no.
        NotRequested,
        /// DeletionBlocked: `deletionPolicy.protect`.
        Protected,
        /// Quiesced: nothing is left to do.
        NothingToDo,
        /// Quiesced: something is being done or waited for.
        StillReconciling,
        /// Stable: yes.
        QuiescedAndHealthy,
        /// Stable: no.
        Unstable,
        /// An object was applied to every group it is meant for.
        Applied,
        /// An object is applied to some groups only so far.
        PartlyApplied,
        /// An object was refused by a broker.
        RefusedByBroker,
        /// The cluster an object names is not there.
        ClusterNotFound,
        /// Two objects mean the same topic or consumer group.
        NameConflict,
        /// An operation needs a controller, and there is none.
        NeedsController,
    }
}

words! {
    /// One word for people; a function of the conditions.
    Phase {
        /// Nothing is known yet.
        Pending,
        /// The manifest cannot be carried out as it is.
        Invalid,
        /// It is being made for the first time.
        Provisioning,
        /// Everything runs.
        Ready,
        /// Pods are replaced.
        Updating,
        /// NameServers, groups or disks come, grow or go.
        Scaling,
        /// A roll was stopped and waits for a person.
        Halted,
        /// Something is broken.
        Degraded,
        /// No group takes sends.
        Unavailable,
        /// The operator writes nothing.
        Paused,
        /// The pods are stopped on purpose.
        Hibernated,
    }
}

use ConditionReason as R;

const READY: &[R] = &[
    R::AllComponentsReady,
    R::Provisioning,
    R::GroupNotWritable,
    R::ControllerQuorumLost,
    R::NameServersUnavailable,
    R::InvalidSpec,
    R::Stopped,
    R::NotReady,
    R::Unreachable,
    R::Applied,
    R::PartlyApplied,
    R::RefusedByBroker,
    R::ClusterNotFound,
    R::NameConflict,
    R::NeedsController,
];
const AVAILABLE: &[R] = &[
    R::WritesServed,
    R::AllGroupsDown,
    R::NoNameServer,
    R::Stopped,
];
const QUORUM_HEALTHY: &[R] = &[
    R::MajorityCaughtUp,
    R::NoLeader,
    R::MinorityLagging,
    R::SingleController,
    R::NoController,
];
const REPLICATION_HEALTHY: &[R] = &[
    R::AllInSync,
    R::ReplicaLagging,
    R::BelowMinInSync,
    R::NoReplicas,
    R::SingleMember,
    R::Unreachable,
];
const READ_REPLICAS_SERVING: &[R] = &[R::Routed, R::Disabled, R::NoReadableReplica, R::LagExceeded];
const ROUTES_CONSISTENT: &[R] = &[
    R::Agreed,
    R::BrokerMissingOnNameServer,
    R::StaleEpochRegistered,
    R::WrongAddressRegistered,
    R::Unreachable,
    R::Stopped,
];
const PROGRESSING: &[R] = &[
    R::RollingUpdate,
    R::Scaling,
    R::SwitchingOver,
    R::FailingOver,
    R::ExpandingStorage,
    R::Provisioning,
    R::RolloutPaused,
    R::Idle,
];
const DEGRADED: &[R] = &[
    R::AllHealthy,
    R::PodCrashLoop,
    R::OOMKilled,
    R::Unschedulable,
    R::ImagePullFailed,
    R::ContainerConfigError,
    R::VolumeAttachConflict,
    R::VolumeLost,
    R::DiskPressure,
    R::SlowReplica,
    R::NodeLost,
    R::NotReady,
    R::UnsafeTopology,
    R::DrainLate,
    R::InvalidSpec,
];
const CONFIG_APPLIED: &[R] = &[
    R::InSync,
    R::PendingRestart,
    R::Rejected,
    R::Pushing,
    R::Unreachable,
    R::InvalidSpec,
];
const VERSION_SUPPORTED: &[R] = &[R::Supported, R::DowngradeForbidden, R::UnknownVersion];
const STORAGE_READY: &[R] = &[
    R::AsRequested,
    R::ResizePending,
    R::ResizeUnsupported,
    R::VolumeLost,
    R::Provisioning,
];
const PAUSED: &[R] = &[R::UserRequested, R::NotRequested];
const DELETION_BLOCKED: &[R] = &[R::Protected, R::NotRequested];
const QUIESCED: &[R] = &[R::NothingToDo, R::StillReconciling];
const STABLE: &[R] = &[R::QuiescedAndHealthy, R::StillReconciling, R::Unstable];

impl ConditionType {
    /// The reasons it may have.
    #[must_use]
    pub const fn reasons(self) -> &'static [ConditionReason] {
        match self {
            Self::Ready => READY,
            Self::Available => AVAILABLE,
            Self::QuorumHealthy => QUORUM_HEALTHY,
            Self::ReplicationHealthy => REPLICATION_HEALTHY,
            Self::ReadReplicasServing => READ_REPLICAS_SERVING,
            Self::RoutesConsistent => ROUTES_CONSISTENT,
            Self::Progressing => PROGRESSING,
            Self::Degraded => DEGRADED,
            Self::ConfigApplied => CONFIG_APPLIED,
            Self::VersionSupported => VERSION_SUPPORTED,
            Self::StorageReady => STORAGE_READY,
            Self::Paused | Self::Hibernated => PAUSED,
            Self::DeletionBlocked => DELETION_BLOCKED,
            Self::Quiesced => QUIESCED,
            Self::Stable => STABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What the API conventions ask of a reason and a type.
    fn is_camel_case(word: &str) -> bool {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.len() <= 1024
            && word.bytes().all(|b| b.is_ascii_alphanumeric())
    }

    #[test]
    fn every_word_is_camel_case_and_reads_back() {
        for word in ConditionType::ALL.iter().map(|w| w.as_str()) {
            assert!(is_camel_case(word), "{word}");
            assert_eq!(ConditionType::from_word(word).unwrap().to_string(), word);
        }
        for word in ConditionReason::ALL.iter().map(|w| w.as_str()) {
            assert!(is_camel_case(word), "{word}");
            assert_eq!(ConditionReason::from_word(word).unwrap().to_string(), word);
        }
        for phase in Phase::ALL {
            assert_eq!(Phase::from_word(phase.as_str()), Some(*phase));
        }
    }

    #[test]
    fn every_reason_belongs_to_a_type_and_no_type_names_one_twice() {
        let mut used: BTreeSet<&ConditionReason> = BTreeSet::new();
        for kind in ConditionType::ALL {
            let reasons: BTreeSet<_> = kind.reasons().iter().collect();
            assert_eq!(reasons.len(), kind.reasons().len(), "{kind}");
            assert!(!reasons.is_empty(), "{kind}");
            used.extend(reasons);
        }
        let unused: Vec<_> = ConditionReason::ALL
            .iter()
            .filter(|reason| !used.contains(reason))
            .collect();
        assert_eq!(unused, Vec::<&ConditionReason>::new());
    }

    proptest! {
        #[test]
        fn a_text_that_is_no_word_is_none(text in "\\PC{0,24}") {
            let known = ConditionReason::ALL.iter().any(|r| r.as_str() == text);
            prop_assert_eq!(ConditionReason::from_word(&text).is_some(), known);
        }
    }
}
