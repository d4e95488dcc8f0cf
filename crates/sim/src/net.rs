//! The network: who reaches whom, and how long it takes.
//!
//! **Invariant:** a message between nodes that are cut off from each other is lost; what both can
//! reach arrives after a few milliseconds, now and then much later. Order is the receiver's business.

use std::collections::BTreeSet;

use crate::rng::Rng;

/// A node: 0, 1, 2 are controllers, then brokers 1, 2, 3.
pub(crate) type Node = usize;

#[derive(Clone, Debug, Default)]
pub(crate) struct Net {
    cut: BTreeSet<(Node, Node)>,
}

impl Net {
    /// The delay of a message, or nothing if it is lost.
    pub(crate) fn delay(&self, from: Node, to: Node, rng: &mut Rng) -> Option<u64> {
        if from != to && self.cut.contains(&(from, to)) {
            return None;
        }
        let slow = rng.one_in(50);
        Some(rng.between(1, if slow { 120 } else { 4 }))
    }

    pub(crate) fn cut_both(&mut self, a: Node, b: Node) {
        self.cut.insert((a, b));
        self.cut.insert((b, a));
    }

    pub(crate) fn cut_one_way(&mut self, from: Node, to: Node) {
        self.cut.insert((from, to));
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
    }
}
