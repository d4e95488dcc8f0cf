//! Whether a group has the topics and consumer groups that it needs before clients may send to it.
//!
//! **Invariant:** pure, and the same answer for the plan, which copies what is missing, and for the
//! guard, which is asked again with a fresh look right before the group is opened: a topic may have
//! been made since the copy. Between that look and the opening no one can know; what is made then
//! reaches the group as it reaches every open one, by whoever makes it.

use crate::observe::Observed;
use crate::plan::Desired;

/// What a group has of what open groups have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// Everything.
    Complete,
    /// That group has more.
    MissingFrom(i32),
    /// Nobody can say.
    Unknown(&'static str),
}

/// Compares group `index` with the group that topics are copied from.
pub(crate) fn metadata(observed: &Observed, desired: &Desired, index: i32) -> Metadata {
    let seen = observed.groups.get(&index);
    let master = seen.and_then(|group| group.broker(group.master()?));
    let Some((seen, has)) = seen.zip(master.and_then(|broker| broker.metadata.as_ref())) else {
        return Metadata::Unknown("its topics and consumer groups cannot be read");
    };
    let others = || observed.groups.iter().filter(|(other, _)| **other != index);
    let reference = others()
        .filter_map(|(other, group)| {
            let master = group.broker(group.master()?)?;
            (group.opened || master.takes_sends()).then_some((*other, master.metadata.as_ref()?))
        })
        // A group that is wanted is the better source; one that drains is better than none.
        .min_by_key(|(other, _)| (!desired.groups.contains_key(other), *other));
    match reference {
        Some((_, all)) if all.is_subset(has) => Metadata::Complete,
        Some((from, _)) => Metadata::MissingFrom(from),
        None if !observed.opened_once() => Metadata::Complete,
        // It was open, and what it has is its own; or there is nobody else at all.
        None if seen.opened && !has.is_empty() => Metadata::Complete,
        None if others().all(|(_, group)| !group.opened) => Metadata::Complete,
        None => Metadata::Unknown("no open group answers from which topics could be copied"),
    }
}
