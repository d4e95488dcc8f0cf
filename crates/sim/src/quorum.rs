//! The consensus of the controllers, small enough to simulate: terms, votes, a log that is sent
//! whole, commitment by a majority, and rounds that show a leader that it still leads.
//!
//! **Invariant:** as Raft: one leader a term, a leader's log holds everything committed, an entry is
//! committed when a majority has it and it is of the leader's term or before such an entry. Term,
//! vote and log survive the end of the process.

use std::rc::Rc;

use rmq_controller_fsm::Command;

use crate::rng::Rng;

pub(crate) const CONTROLLERS: usize = 3;
const MAJORITY: usize = CONTROLLERS / 2 + 1;
const SEND_EVERY: u64 = 50;

/// An entry; `None` begins a term.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) term: u64,
    pub(crate) command: Option<Command>,
}

#[derive(Clone, Debug)]
pub(crate) enum QuorumMessage {
    AskVote {
        term: u64,
        last: (u64, usize),
    },
    Vote {
        term: u64,
    },
    Entries {
        term: u64,
        log: Rc<Vec<Entry>>,
        committed: usize,
        round: u64,
    },
    Have {
        term: u64,
        entries: usize,
        round: u64,
    },
}

#[derive(Clone, Debug)]
enum Role {
    Follower,
    Candidate {
        votes: usize,
    },
    Leader {
        have: [usize; CONTROLLERS],
        rounds: [u64; CONTROLLERS],
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    me: usize,
    pub(crate) term: u64,
    voted: bool,
    pub(crate) log: Rc<Vec<Entry>>,
    pub(crate) committed: usize,
    role: Role,
    deadline: u64,
    send_at: u64,
    round: u64,
}

impl Quorum {
    pub(crate) fn new(me: usize, log: Vec<Entry>, rng: &mut Rng) -> Self {
        Self {
            me,
            term: 0,
            voted: false,
            committed: log.len(),
            log: Rc::new(log),
            role: Role::Follower,
            deadline: rng.between(100, 600),
            send_at: 0,
            round: 0,
        }
    }

    pub(crate) fn restarted(&mut self, now: u64, rng: &mut Rng) {
        self.role = Role::Follower;
        self.deadline = now + rng.between(500, 1000);
    }

    pub(crate) fn leads(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }

    /// A leader appends; the index of the entry.
    pub(crate) fn propose(&mut self, command: Option<Command>) -> usize {
        let term = self.term;
        let log = Rc::make_mut(&mut self.log);
        log.push(Entry { term, command });
        self.send_at = 0;
        self.log.len() - 1
    }

    /// The round that begins after now; confirmed once [`Quorum::confirmed_round`] reaches it.
    pub(crate) fn next_round(&self) -> u64 {
        self.round + 1
    }

    pub(crate) fn confirmed_round(&self) -> u64 {
        let Role::Leader { rounds, .. } = &self.role else {
            return 0;
        };
        let mut rounds = *rounds;
        rounds[self.me] = self.round;
        rounds.sort_unstable();
        rounds[CONTROLLERS - MAJORITY]
    }

    fn last(&self) -> (u64, usize) {
        (
            self.log.last().map_or(0, |entry| entry.term),
            self.log.len(),
        )
    }

    fn observe(&mut self, term: u64) {
        if term > self.term {
            self.term = term;
            self.voted = false;
            self.role = Role::Follower;
        }
    }

    /// What is due: messages to all others.
    pub(crate) fn tick(&mut self, now: u64, rng: &mut Rng) -> Option<QuorumMessage> {
        if self.leads() {
            if now < self.send_at {
                return None;
            }
            self.send_at = now + SEND_EVERY;
            self.round += 1;
            return Some(QuorumMessage::Entries {
                term: self.term,
                log: Rc::clone(&self.log),
                committed: self.committed,
                round: self.round,
            });
        }
        if now < self.deadline {
            return None;
        }
        self.deadline = now + rng.between(500, 1000);
        self.term += 1;
        self.voted = true;
        self.role = Role::Candidate { votes: 1 };
        Some(QuorumMessage::AskVote {
            term: self.term,
            last: self.last(),
        })
    }

    pub(crate) fn receive(
        &mut self,
        now: u64,
        from: usize,
        message: QuorumMessage,
        rng: &mut Rng,
    ) -> Option<QuorumMessage> {
        match message {
            QuorumMessage::AskVote { term, last } => {
                self.observe(term);
                let grants = term == self.term && !self.voted && last >= self.last();
                if !grants {
                    return None;
                }
                self.voted = true;
                self.deadline = now + rng.between(500, 1000);
                Some(QuorumMessage::Vote { term })
            }
            QuorumMessage::Vote { term } => {
                self.observe(term);
                if let Role::Candidate { votes } = &mut self.role
                    && term == self.term
                {
                    *votes += 1;
                    if *votes >= MAJORITY {
                        self.role = Role::Leader {
                            have: [0; CONTROLLERS],
                            rounds: [0; CONTROLLERS],
                        };
                        self.round = 0;
                        self.propose(None);
                    }
                }
                None
            }
            QuorumMessage::Entries {
                term,
                log,
                committed,
                round,
            } => {
                self.observe(term);
                if term < self.term {
                    return None;
                }
                self.role = Role::Follower;
                self.deadline = now + rng.between(500, 1000);
                // A late message of the same leader must not take entries back.
                if log.len() >= self.log.len() || self.last().0 < term {
                    self.log = log;
                }
                self.committed = self.committed.max(committed.min(self.log.len()));
                let entries = self.log.len();
                Some(QuorumMessage::Have {
                    term,
                    entries,
                    round,
                })
            }
            QuorumMessage::Have {
                term,
                entries,
                round,
            } => {
                self.observe(term);
                self.heard(from, term, entries, round);
                None
            }
        }
    }

    fn heard(&mut self, from: usize, term: u64, entries: usize, round: u64) {
        let Role::Leader { have, rounds } = &mut self.role else {
            return;
        };
        if term != self.term {
            return;
        }
        have[from] = have[from].max(entries);
        rounds[from] = rounds[from].max(round);
        have[self.me] = self.log.len();
        let mut sorted = *have;
        sorted.sort_unstable();
        let majority_has = sorted[CONTROLLERS - MAJORITY];
        let of_term = majority_has.checked_sub(1).and_then(|at| self.log.get(at));
        if of_term.is_some_and(|entry| entry.term == self.term) {
            self.committed = self.committed.max(majority_has);
        }
    }
}
