//! When a message counts as held: by the master alone, by a number of members, by the whole set.
//!
//! **Invariant:** while a set may be replaced, a message must count as held in the present set *and*
//! in every set that may replace it; so whichever of them is in force when the master dies holds
//! each acknowledged message on as many members as an election relies on.

use std::collections::BTreeSet;

use rmq_types::{BrokerId, CommitLogOffset};

/// How many members hold a message before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// The master.
    Async,
    /// This many, the master included; all of a smaller set.
    Quorum(u32),
    /// The whole set.
    AllInSync,
}

impl AckRule {
    /// What Java's settings mean: `allAckInSyncStateSet`, and `inSyncReplicas` with the master
    /// counted (1 waits for nobody).
    #[must_use]
    pub fn from_java(in_sync_replicas: u32, all_ack_in_sync_state_set: bool) -> Self {
        if all_ack_in_sync_state_set {
            Self::AllInSync
        } else if in_sync_replicas <= 1 {
            Self::Async
        } else {
            Self::Quorum(in_sync_replicas)
        }
    }

    /// The stricter of two rules: the master's own and the one that its election relies on.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        match (self, other) {
            (Self::AllInSync, _) | (_, Self::AllInSync) => Self::AllInSync,
            (Self::Quorum(a), Self::Quorum(b)) => Self::Quorum(a.max(b)),
            (Self::Quorum(acks), Self::Async) | (Self::Async, Self::Quorum(acks)) => {
                Self::Quorum(acks)
            }
            (Self::Async, Self::Async) => Self::Async,
        }
    }

    /// Members of a set of `members` that must hold a message.
    #[must_use]
    pub fn holders(self, members: usize) -> usize {
        match self {
            Self::Async => 1,
            Self::Quorum(acks) => usize::try_from(acks)
                .unwrap_or(usize::MAX)
                .clamp(1, members.max(1)),
            Self::AllInSync => members.max(1),
        }
    }

    /// Up to where enough members of `set` hold the log, the master among them. `position` says how
    /// far a member's log reaches in this epoch.
    #[must_use]
    pub fn held(
        self,
        set: &BTreeSet<BrokerId>,
        master: BrokerId,
        position: impl Fn(BrokerId) -> CommitLogOffset,
    ) -> CommitLogOffset {
        let own = position(master);
        let mut others: Vec<CommitLogOffset> = set
            .iter()
            .filter(|id| **id != master)
            .map(|id| position(*id))
            .collect();
        others.sort_unstable_by(|a, b| b.cmp(a));
        let others_needed = self.holders(set.len()) - 1;
        match others_needed.checked_sub(1) {
            None => own,
            Some(last) => others.get(last).copied().unwrap_or_default().min(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(rule: AckRule, positions: &[u64]) -> u64 {
        let set = (0..positions.len() as u64).map(BrokerId::new).collect();
        let position = |id: BrokerId| CommitLogOffset::new(positions[id.get() as usize]);
        rule.held(&set, BrokerId::new(0), position).get()
    }

    #[test]
    fn javas_settings_mean_one_master_some_or_all() {
        assert_eq!(AckRule::from_java(1, false), AckRule::Async);
        assert_eq!(AckRule::from_java(0, false), AckRule::Async);
        assert_eq!(AckRule::from_java(2, false), AckRule::Quorum(2));
        assert_eq!(AckRule::from_java(1, true), AckRule::AllInSync);
    }

    #[test]
    fn a_message_is_held_when_enough_members_reach_it_the_master_among_them() {
        assert_eq!(held(AckRule::Async, &[100, 10, 10]), 100);
        assert_eq!(held(AckRule::Quorum(2), &[100, 10, 60]), 60);
        assert_eq!(held(AckRule::Quorum(3), &[100, 10, 60]), 10);
        assert_eq!(held(AckRule::Quorum(5), &[100, 10, 60]), 10);
        assert_eq!(held(AckRule::AllInSync, &[100, 10, 60]), 10);
        assert_eq!(held(AckRule::AllInSync, &[100]), 100);
        // The master's own disk counts too.
        assert_eq!(held(AckRule::Quorum(2), &[50, 70, 60]), 50);
    }

    #[test]
    fn the_stricter_rule_wins() {
        assert_eq!(
            AckRule::Async.at_least(AckRule::Quorum(2)),
            AckRule::Quorum(2)
        );
        assert_eq!(
            AckRule::Quorum(3).at_least(AckRule::Quorum(2)),
            AckRule::Quorum(3)
        );
        assert_eq!(
            AckRule::Quorum(3).at_least(AckRule::AllInSync),
            AckRule::AllInSync
        );
    }
}
