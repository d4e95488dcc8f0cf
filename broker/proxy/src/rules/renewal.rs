//! Popped messages that the gateway keeps invisible while their push consumer works.
//!
//! **Invariant:** a message has one handle that counts: the first one given to the client stands for
//! the newest. While a renewal is under way the handle is nobody's (it is about to be of no more
//! use), so an acknowledgement waits for it. At most `max` messages are kept; one beyond is not
//! renewed and comes again when its time has passed.

use std::collections::HashMap;
use std::time::Duration;

use rmq_types::Timestamp;

/// Renewed when no more than this is left.
const AHEAD_MILLIS: i64 = 10_000;
/// The new invisible time by the number of renewals, in minutes.
const STEPS_MINUTES: [u64; 6] = [1, 3, 5, 10, 30, 60];
/// Failures in a row after which a message is left to its time.
const FAILURES_MAX: u32 = 3;
/// After this long a message counts as not consumed.
const TOTAL_MILLIS: i64 = 3 * 3_600_000;

/// A client's consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) client: String,
    pub(crate) group: String,
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The topic it was popped from.
    pub(crate) topic: String,
    /// Its newest handle.
    pub(crate) handle: String,
    /// When it becomes visible.
    pub(crate) visible_at: Timestamp,
    /// How often it was consumed before.
    pub(crate) consumed: i32,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    since: Timestamp,
    renewals: usize,
    failures: u32,
    busy: bool,
}

/// A renewal to be made.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) owner: Owner,
    /// The handle that the client knows.
    pub(crate) first: String,
    pub(crate) kept: Kept,
    pub(crate) step: Step,
}

/// What a renewal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Keeps the message invisible for so long.
    Renew(Duration),
    /// Gives it up: it is to come again after the group's delay.
    GiveUp,
}

/// What became of a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is not kept here: the client's own handle counts.
    Unknown,
    /// It is out of the table; this is the handle that counts.
    Newest(String),
    /// It is being renewed just now: to be asked again.
    Busy,
}

/// Whose message a handle is: the client's first handle in the entries of its owner.
#[derive(Debug)]
pub(crate) struct Renewals {
    owners: HashMap<Owner, HashMap<String, Entry>>,
    count: usize,
    max: usize,
}

impl Renewals {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            owners: HashMap::new(),
            count: 0,
            max,
        }
    }

    /// Messages that are kept.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Keeps a message that was just popped; false if there is no room.
    pub(crate) fn keep(&mut self, owner: &Owner, kept: Kept, now: Timestamp) -> bool {
        if self.count >= self.max {
            return false;
        }
        let first = kept.handle.clone();
        let entry = Entry {
            kept,
            since: now,
            renewals: 0,
            failures: 0,
            busy: false,
        };
        let entries = self.owners.entry(owner.clone()).or_default();
        if entries.insert(first, entry).is_none() {
            self.count += 1;
        }
        true
    }

    /// Takes a message out because its client is done with it.
    pub(crate) fn take(&mut self, owner: &Owner, first: &str) -> Taken {
        let Some(entries) = self.owners.get_mut(owner) else {
            return Taken::Unknown;
        };
        match entries.get(first) {
            None => return Taken::Unknown,
            Some(entry) if entry.busy => return Taken::Busy,
            Some(_) => {}
        }
        match self.remove(owner, first) {
            Some(entry) => Taken::Newest(entry.kept.handle),
            None => Taken::Unknown,
        }
    }

    fn remove(&mut self, owner: &Owner, first: &str) -> Option<Entry> {
        let entries = self.owners.get_mut(owner)?;
        let entry = entries.remove(first);
        if entries.is_empty() {
            self.owners.remove(owner);
        }
        if entry.is_some() {
            self.count -= 1;
        }
        entry
    }

    /// The renewals that are due; each stays busy until [`Renewals::done`].
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut due = Vec::new();
        for (owner, entries) in &mut self.owners {
            for (first, entry) in entries {
                if entry.busy || entry.kept.visible_at.since(now) > AHEAD_MILLIS {
                    continue;
                }
                entry.busy = true;
                let step = if now.since(entry.since) >= TOTAL_MILLIS {
                    Step::GiveUp
                } else {
                    let index = entry.renewals.min(STEPS_MINUTES.len() - 1);
                    Step::Renew(Duration::from_mins(STEPS_MINUTES[index]))
                };
                due.push(Due {
                    owner: owner.clone(),
                    first: first.clone(),
                    kept: entry.kept.clone(),
                    step,
                });
            }
        }
        due
    }

    /// A renewal has ended: with the new handle and its time, or not. `now`: a message whose time has
    /// passed cannot be kept any more.
    pub(crate) fn done(&mut self, due: &Due, outcome: Option<(String, Timestamp)>, now: Timestamp) {
        let entries = self.owners.get_mut(&due.owner);
        let Some(entry) = entries.and_then(|entries| entries.get_mut(&due.first)) else {
            return;
        };
        entry.busy = false;
        match outcome {
            Some((handle, visible_at)) => {
                entry.kept.handle = handle;
                entry.kept.visible_at = visible_at;
                entry.renewals += 1;
                entry.failures = 0;
            }
            None => entry.failures += 1,
        }
        let over = due.step == Step::GiveUp
            || entry.failures >= FAILURES_MAX
            || entry.kept.visible_at <= now;
        if over {
            self.remove(&due.owner, &due.first);
        }
    }

    /// Takes out all messages of a client that is gone; those being renewed stay invisible for the
    /// time of that renewal.
    pub(crate) fn leave(&mut self, client: &str) -> Vec<(Owner, Kept)> {
        let owners: Vec<Owner> = self
            .owners
            .keys()
            .filter(|owner| owner.client == client)
            .cloned()
            .collect();
        let mut left = Vec::new();
        for owner in owners {
            let entries = self.owners.remove(&owner).unwrap_or_default();
            self.count -= entries.len();
            let idle = entries.into_values().filter(|entry| !entry.busy);
            left.extend(idle.map(|entry| (owner.clone(), entry.kept)));
        }
        left
    }
}

#[cfg(test)]
mod tests;
