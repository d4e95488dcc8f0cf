//! Half messages that passed through this gateway, so that their end can be told to the broker.
//!
//! **Invariant:** an entry lives [`LIFE_MILLIS`]; at most `max` are kept, the oldest go first. The
//! end of a transaction works only at the gateway that saw its beginning, as with the Java proxy.

use std::collections::{HashMap, VecDeque};

use rmq_types::Timestamp;

/// How long a half message is remembered.
const LIFE_MILLIS: i64 = 30_000;

/// Where a half message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub(crate) broker: String,
    pub(crate) queue_offset: i64,
    pub(crate) commit_log_offset: i64,
    pub(crate) message_id: String,
}

/// See the module. The key is topic and transaction.
#[derive(Debug)]
pub(crate) struct Transactions {
    known: HashMap<(String, String), (Timestamp, Half)>,
    order: VecDeque<(Timestamp, (String, String))>,
    max: usize,
}

impl Transactions {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            known: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Remembers a half message; of several with one id the last one counts.
    pub(crate) fn began(&mut self, topic: &str, id: &str, half: Half, now: Timestamp) {
        self.forget(now);
        if self.order.len() >= self.max {
            self.drop_oldest();
        }
        let key = (topic.to_owned(), id.to_owned());
        self.order.push_back((now, key.clone()));
        self.known.insert(key, (now, half));
    }

    /// Takes a half message whose transaction ends.
    pub(crate) fn end(&mut self, topic: &str, id: &str, now: Timestamp) -> Option<Half> {
        self.forget(now);
        let key = (topic.to_owned(), id.to_owned());
        self.known.remove(&key).map(|(_, half)| half)
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((began, _)) = self.order.front()
            && now.since(*began) > LIFE_MILLIS
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((began, key)) = self.order.pop_front() else {
            return;
        };
        if self.known.get(&key).is_some_and(|(at, _)| *at == began) {
            self.known.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(id: &str) -> Half {
        Half {
            broker: "b".into(),
            queue_offset: 1,
            commit_log_offset: 2,
            message_id: id.into(),
        }
    }

    const T0: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn a_transaction_ends_once_with_the_last_half_message_of_its_id() {
        let mut table = Transactions::new(8);
        table.began("t", "x", half("a"), T0);
        table.began("t", "x", half("b"), T0.plus_millis(5));
        assert_eq!(table.end("u", "x", T0), None);
        assert_eq!(table.end("t", "x", T0), Some(half("b")));
        assert_eq!(table.end("t", "x", T0), None);
    }

    #[test]
    fn half_messages_are_forgotten_after_their_time_and_beyond_the_bound() {
        let mut table = Transactions::new(2);
        for (index, id) in ["x", "y", "z"].into_iter().enumerate() {
            table.began("t", id, half(id), T0.plus_millis(index as i64));
        }
        assert_eq!(table.end("t", "x", T0), None);
        assert!(table.end("t", "y", T0.plus_millis(30_001)).is_some());
        assert_eq!(table.end("t", "z", T0.plus_millis(30_003)), None);
    }
}
