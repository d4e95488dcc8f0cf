//! What the broker acknowledged, and what was found after a kill: one must hold the other.
//!
//! **Invariant:** pure, and the one place that decides. A message that was acknowledged stays at its
//! queue offset with its body; offsets are dense; a message is nowhere twice; and whatever was found
//! once is found for ever. A message without an answer may be there or not, but only once and only in
//! its queue.

use super::message::Queue;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Messages that a run keeps account of.
pub(super) const MESSAGES_MAX: usize = 2_000_000;
/// Faults that are kept; more are only counted.
pub(super) const FAULTS_MAX: usize = 40;

/// A message in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// The number it was made from.
    pub(super) number: u64,
    /// Where it is in the log.
    pub(super) physical: i64,
}

/// What was read at one offset of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The queue offset in its record.
    pub(super) offset: i64,
    /// Whether its body is one of ours and whole: its number and the queue that it was sent to.
    pub(super) message: Option<(u64, Queue)>,
    /// Where its record says that it is in the log.
    pub(super) physical: i64,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) round: u32,
    pub(super) queue: Queue,
    pub(super) offset: i64,
    pub(super) what: What,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Acknowledged or found earlier, and the queue ends before it.
    Lost { number: u64, end: i64 },
    /// Acknowledged or found earlier, and another message is in its place.
    Replaced { number: u64, by: Option<u64> },
    /// The place in the log is not the one that was told.
    MovedInLog { told: i64, found: i64 },
    /// The same message elsewhere too.
    Twice { number: u64, first: (Queue, i64) },
    /// The body is none of ours.
    Broken,
    /// A message of another queue.
    Foreign { number: u64, of: Queue },
    /// The next offset that was found is another one.
    Gap { found: i64 },
    /// The queue says that it ends elsewhere.
    End { said: i64 },
    /// The queue does not begin at 0.
    Start { said: i64 },
    /// Two sends were answered with the same place.
    AcknowledgedTwice { first: u64, second: u64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "round {}: {} offset {}: ",
            self.round, self.queue, self.offset
        )?;
        match &self.what {
            What::Lost { number, end } => {
                write!(f, "message {number} is lost: the queue ends at {end}")
            }
            What::Replaced {
                number,
                by: Some(by),
            } => write!(f, "message {by} is in the place of message {number}"),
            What::Replaced { number, by: None } => {
                write!(f, "the body of message {number} is broken")
            }
            What::MovedInLog { told, found } => write!(
                f,
                "the answer told log offset {told}, the record says {found}"
            ),
            What::Twice { number, first } => write!(
                f,
                "message {number} is also at {} offset {}",
                first.0, first.1
            ),
            What::Broken => f.write_str("a body that nobody sent"),
            What::Foreign { number, of } => {
                write!(f, "message {number} was sent to {of}")
            }
            What::Gap { found } => write!(f, "missing: the next one found is {found}"),
            What::End { said } => write!(f, "the last message is here, the queue's end is {said}"),
            What::Start { said } => write!(f, "the queue begins at {said}"),
            What::AcknowledgedTwice { first, second } => write!(
                f,
                "messages {first} and {second} were both acknowledged here"
            ),
        }
    }
}

/// One queue as it is known.
#[derive(Debug, Default)]
struct Account {
    /// Acknowledged and not yet found.
    open: BTreeMap<i64, Stored>,
    /// Found, by offset: dense from 0.
    found: Vec<Stored>,
}

/// The account of a whole run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    queues: BTreeMap<Queue, Account>,
    places: HashMap<u64, (Queue, i64)>,
    acknowledged: usize,
    faults: Vec<Fault>,
    faults_in_all: usize,
}

impl Ledger {
    /// The broker answered a send of round `round` with this place.
    pub(super) fn acknowledged(&mut self, round: u32, queue: Queue, offset: i64, stored: Stored) {
        let account = self.queues.entry(queue).or_default();
        let taken = match usize::try_from(offset)
            .ok()
            .and_then(|at| account.found.get(at))
        {
            Some(found) => Some(*found),
            None => account.open.insert(offset, stored),
        };
        self.acknowledged += 1;
        if let Some(first) = taken {
            let what = What::AcknowledgedTwice {
                first: first.number,
                second: stored.number,
            };
            self.fault(round, queue, offset, what);
        }
    }

    /// Where reading goes on: all before was found.
    pub(super) fn next(&self, queue: Queue) -> i64 {
        self.queues.get(&queue).map_or(0, |a| a.found.len() as i64)
    }

    /// The end that the queue must have at least.
    pub(super) fn end(&self, queue: Queue) -> i64 {
        let open = self
            .queues
            .get(&queue)
            .and_then(|a| a.open.last_key_value());
        open.map_or(self.next(queue), |(offset, _)| offset + 1)
    }

    /// The queue was read from [`Ledger::next`] to `end`, and this was there.
    pub(super) fn extend(&mut self, round: u32, queue: Queue, end: i64, found: &[Found]) {
        for one in found {
            let expected = self.next(queue);
            if one.offset != expected {
                let what = What::Gap { found: one.offset };
                return self.fault(round, queue, expected, what);
            }
            self.add(round, queue, one);
        }
        let next = self.next(queue);
        if next != end {
            self.fault(round, queue, next, What::End { said: end });
        }
        let open = self
            .queues
            .get_mut(&queue)
            .map(|a| std::mem::take(&mut a.open));
        for (offset, stored) in open.unwrap_or_default() {
            let what = What::Lost {
                number: stored.number,
                end,
            };
            self.fault(round, queue, offset, what);
        }
    }

    /// The whole queue was read again, from `start` to its end: it must be as it was found before.
    pub(super) fn compare(&mut self, round: u32, queue: Queue, start: i64, found: &[Found]) {
        if start != 0 {
            self.fault(round, queue, 0, What::Start { said: start });
        }
        let known = self.queues.get(&queue).map_or(0, |a| a.found.len());
        for at in 0..known {
            let Some(before) = self.found_at(queue, at) else {
                return;
            };
            let offset = at as i64;
            let Some(now) = found.get(at) else {
                let what = What::Lost {
                    number: before.number,
                    end: found.len() as i64,
                };
                return self.fault(round, queue, offset, what);
            };
            if now.offset != offset {
                return self.fault(round, queue, offset, What::Gap { found: now.offset });
            }
            self.same(round, queue, before, now);
        }
        if let Some(more) = found.get(known) {
            let what = What::End { said: more.offset };
            self.fault(round, queue, known as i64, what);
        }
    }

    fn found_at(&self, queue: Queue, at: usize) -> Option<Stored> {
        self.queues.get(&queue)?.found.get(at).copied()
    }

    fn add(&mut self, round: u32, queue: Queue, found: &Found) {
        let offset = found.offset;
        let account = self.queues.entry(queue).or_default();
        let told = account.open.remove(&offset);
        // Whatever is wrong with it, the place counts as read, so that one fault is told once.
        account.found.push(Stored {
            number: found.message.map_or(u64::MAX, |(number, _)| number),
            physical: found.physical,
        });
        if let Some(told) = told {
            self.same(round, queue, told, found);
        }
        match found.message {
            None if told.is_none() => self.fault(round, queue, offset, What::Broken),
            None => {}
            Some((number, of)) => {
                if of != queue {
                    self.fault(round, queue, offset, What::Foreign { number, of });
                }
                if let Some(first) = self.places.insert(number, (queue, offset)) {
                    self.fault(round, queue, offset, What::Twice { number, first });
                }
            }
        }
    }

    fn same(&mut self, round: u32, queue: Queue, before: Stored, now: &Found) {
        let by = now.message.map(|(number, _)| number);
        if by != Some(before.number) {
            let number = before.number;
            self.fault(round, queue, now.offset, What::Replaced { number, by });
        } else if now.physical != before.physical {
            let what = What::MovedInLog {
                told: before.physical,
                found: now.physical,
            };
            self.fault(round, queue, now.offset, what);
        }
    }

    fn fault(&mut self, round: u32, queue: Queue, offset: i64, what: What) {
        self.faults_in_all += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault {
                round,
                queue,
                offset,
                what,
            });
        }
    }

    /// The acknowledged message that is last in the log, of those that were not found yet.
    pub(super) fn last_in_log(&self) -> Option<Stored> {
        let open = self.queues.values().flat_map(|a| a.open.values());
        open.copied().max_by_key(|stored| stored.physical)
    }

    /// The faults so far, and how many there are in all.
    pub(super) fn faults(&self) -> (&[Fault], usize) {
        (&self.faults, self.faults_in_all)
    }

    /// How many messages were acknowledged.
    pub(super) fn acknowledged_count(&self) -> usize {
        self.acknowledged
    }

    /// How many messages were found.
    pub(super) fn found_count(&self) -> usize {
        self.places.len()
    }

    /// Whether there is room for another round.
    pub(super) fn has_room(&self) -> bool {
        self.places.len() < MESSAGES_MAX
    }
}

#[cfg(test)]
mod tests;
