//! What a controller with an empty disk may do: it is new, or it lost what it had.
//!
//! A controller that lost its disk may have voted and may have acknowledged entries. Were it to vote
//! as if it were new, two leaders of one term or a lost entry could follow. So it asks **all** its
//! peers how far they are before it takes part at all:
//!
//! - Nobody has an entry: the group is new, and nothing was ever promised. The first controller of
//!   the list writes the list of members, once every peer knows that the group is new: so none of
//!   them takes the first entries for something that it lost.
//! - Otherwise it follows, and votes again once it has applied the furthest entry that any peer had.
//!   Whatever it once acknowledged that was committed is on at least one peer, so it is below that.
//!   A vote that it may have given is not above the highest vote of its peers, for whoever it voted
//!   for had given itself the same one: that is the vote it begins with.
//!
//! **Invariant:** the first start of a group, and a start with an empty disk, waits until every peer
//! was heard; any other start waits for nobody.

use serde::{Deserialize, Serialize};

use crate::{
    types::{LogId, NodeId, Vote},
    wire::Standing,
};

/// Whether this controller votes; stands on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Rights {
    /// Like any other.
    Full,
    /// Not before it has applied this entry.
    Following(LogId),
}

/// How a controller with an empty disk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// What it may do.
    pub(crate) rights: Rights,
    /// The vote it takes for its own last one.
    pub(crate) vote: Option<Vote>,
    /// It writes the list of members.
    pub(crate) founds: bool,
}

/// Judges what all peers said. `first` is whether this is the first controller of the list.
pub(crate) fn begin<'a>(
    peers: impl Iterator<Item = &'a Standing> + Clone,
    first: bool,
) -> Beginning {
    let last: Option<LogId> = peers.clone().filter_map(|peer| peer.last).max();
    let Some(last) = last else {
        return Beginning {
            rights: Rights::Full,
            vote: None,
            founds: first,
        };
    };
    let highest = |a: Vote, b: Vote| if b > a { b } else { a };
    let vote = peers.filter_map(|peer| peer.vote).reduce(highest);
    // The list of members that founds a group is no leader's: nothing was promised yet.
    let promised = last.leader_id.term > 0;
    Beginning {
        rights: if promised {
            Rights::Following(last)
        } else {
            Rights::Full
        },
        vote: vote.map(|vote| Vote::new(vote.leader_id.term, vote.leader_id.node_id)),
        founds: false,
    }
}

/// Whether `id` is the first of the list.
pub(crate) fn is_first<'a>(id: NodeId, mut peers: impl Iterator<Item = &'a NodeId>) -> bool {
    peers.all(|peer| *peer >= id)
}

#[cfg(test)]
mod tests {
    use openraft::CommittedLeaderId;

    use super::*;

    fn peer(vote: Option<(u64, u64)>, last: Option<(u64, u64)>) -> Standing {
        Standing {
            vote: vote.map(|(term, node)| Vote::new_committed(term, node)),
            last: last.map(|(term, index)| LogId::new(CommittedLeaderId::new(term, 1), index)),
            votes: true,
        }
    }

    #[test]
    fn where_nobody_has_an_entry_the_first_of_the_list_founds_the_group() {
        let peers = [peer(Some((1, 0)), None), peer(None, None)];
        let found = begin(peers.iter(), true);
        assert_eq!(
            (found.rights, found.vote, found.founds),
            (Rights::Full, None, true)
        );
        assert!(!begin(peers.iter(), false).founds);
    }

    #[test]
    fn a_list_of_members_that_no_leader_wrote_binds_nobody() {
        let peers = [peer(None, Some((0, 0))), peer(None, None)];
        let found = begin(peers.iter(), true);
        assert_eq!(found.rights, Rights::Full);
        assert!(!found.founds);
    }

    #[test]
    fn a_lost_disk_waits_for_the_furthest_entry_and_keeps_below_the_highest_vote() {
        let peers = [
            peer(Some((3, 1)), Some((3, 70))),
            peer(Some((4, 2)), Some((2, 90))),
        ];
        let found = begin(peers.iter(), true);
        let target = LogId::new(CommittedLeaderId::new(3, 1), 70);
        assert_eq!(found.rights, Rights::Following(target));
        assert_eq!(found.vote, Some(Vote::new(4, 2)));
        assert!(!found.founds);
    }
}
