//! Taking write permission from a broker and giving it back, over all its topics.
//!
//! The effect lives in memory only and ends when the broker registers a changed topic table.

use super::{
    RouteTable,
    topic::{PERM_READ_WRITE, PERM_WRITE},
};

impl RouteTable {
    /// Removes the write bit from every topic of a broker (request 205); how many topics it has.
    pub fn wipe_write_perm(&mut self, broker: &str) -> usize {
        self.change_perm(broker, |perm| perm & !PERM_WRITE)
    }

    /// Sets every topic of a broker to read and write, whatever it was (request 327).
    pub fn add_write_perm(&mut self, broker: &str) -> usize {
        self.change_perm(broker, |_| PERM_READ_WRITE)
    }

    fn change_perm(&mut self, broker: &str, change: impl Fn(i32) -> i32) -> usize {
        if !self.groups.contains_key(broker) {
            return 0;
        }
        self.topics
            .values_mut()
            .filter_map(|topic| topic.set_perm(broker, &change).then_some(()))
            .count()
    }
}
