//! Reasons of Kubernetes Events that the operator writes.
//!
//! **Invariant:** an event marks a transition; it is written when something changed, never because
//! a state goes on.

use crate::words::words;

words! {
    /// Why an event is written.
    EventReason {
        /// The manifest cannot be carried out as it is.
        InvalidSpec,
        /// An object that was missing or changed by somebody else was put right.
        DriftCorrected,
        /// Live keys were sent to a broker or NameServer and read back.
        ConfigPushed,
        /// A broker or NameServer did not take a key.
        ConfigRejected,
        /// A pod is restarted, and why.
        PodRestarted,
        /// A roll begins.
        RolloutStarted,
        /// A roll was stopped.
        RolloutHalted,
        /// A roll is over.
        RolloutCompleted,
        /// A group was made.
        GroupCreated,
        /// A group has all metadata and takes sends now.
        GroupOpened,
        /// A group takes no more sends: it will be removed.
        GroupCordoned,
        /// A group is empty.
        GroupDrained,
        /// A removal was taken back.
        DrainCancelled,
        /// A group is gone.
        GroupRemoved,
        /// NameServers come or go.
        NameServersScaled,
        /// A disk grows.
        VolumeExpanding,
        /// A disk is gone, and what follows.
        VolumeLost,
        /// A disk was replaced by an empty one.
        VolumeReplaced,
        /// A pod cannot run, and why.
        PodStuck,
        /// A pod runs again.
        PodRecovered,
        /// A step was not taken because an invariant forbids it.
        StepRefused,
        /// A wait is longer than its deadline.
        WaitingTooLong,
        /// The operator writes nothing from here on.
        Paused,
        /// The operator goes on.
        Resumed,
        /// The pods were stopped on purpose.
        Hibernated,
        /// A deletion waits for a word of the user.
        DeletionBlocked,
        /// Everything is gone that should go.
        Deleted,
        /// A master does not answer.
        MasterLost,
        /// A controller chose a master.
        MasterElected,
        /// A group takes sends again.
        WritableAgain,
        /// Everything runs.
        BecameReady,
        /// Not everything runs any more.
        NoLongerReady,
    }
}

words! {
    /// Whether an event is good to know or needs a look.
    EventKind {
        /// Good to know.
        Normal,
        /// Needs a look.
        Warning,
    }
}

impl EventReason {
    /// Whether it is good to know or needs a look.
    #[must_use]
    pub const fn kind(self) -> EventKind {
        match self {
            Self::InvalidSpec
            | Self::ConfigRejected
            | Self::RolloutHalted
            | Self::VolumeLost
            | Self::PodStuck
            | Self::StepRefused
            | Self::WaitingTooLong
            | Self::DeletionBlocked
            | Self::MasterLost
            | Self::NoLongerReady => EventKind::Warning,
            _ => EventKind::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_back_and_fits_an_event() {
        for reason in EventReason::ALL {
            assert_eq!(EventReason::from_word(reason.as_str()), Some(*reason));
            assert!(reason.as_str().len() <= 128, "{reason}");
        }
    }

    #[test]
    fn what_went_wrong_is_a_warning() {
        assert_eq!(EventReason::PodStuck.kind(), EventKind::Warning);
        assert_eq!(EventReason::GroupOpened.kind(), EventKind::Normal);
    }
}
