//! The messages of the kill suite: each is made from its number alone, and known again from its body.
//!
//! **Invariant:** the same seed and number give the same bytes, so nothing has to be kept in memory to
//! compare a body; the body says which queue it was sent to.

use rmq_protocol::message::properties::{self, names};

/// Topics that get messages.
pub(super) const TOPICS: usize = 4;
/// One more, to which only delayed messages come.
const DELAYED: u8 = TOPICS as u8;
/// Queues of each.
pub(super) const QUEUES: usize = 4;

/// Bytes before the filling: number, topic, queue.
const HEAD: usize = 10;
const BODY_BYTES_USUAL: u64 = 2_000;
/// One message in this many is a large one.
const LARGE_ONE_IN: u64 = 50;
const BODY_BYTES_LARGE: u64 = 60_000;

/// A stream of numbers that look random; the same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// The stream of one part of a run.
    pub(super) fn of(seed: u64, part: u64) -> Self {
        let mut parts = Self(seed ^ part.wrapping_mul(0xA24B_AED4_963E_E407));
        Self(parts.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// A queue of one of the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Queue {
    pub(super) topic: u8,
    pub(super) queue: u8,
}

impl Queue {
    /// Every queue whose offsets are told to senders.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..TOPICS as u8)
            .flat_map(|topic| (0..QUEUES as u8).map(move |queue| Self { topic, queue }))
    }

    /// The queues to which delayed messages come.
    pub(super) fn delayed() -> impl Iterator<Item = Self> + Clone {
        (0..QUEUES as u8).map(|queue| Self {
            topic: DELAYED,
            queue,
        })
    }

    /// The topic's name.
    pub(super) fn topic_name(self) -> String {
        match self.topic {
            DELAYED => "kill-delayed".to_owned(),
            topic => format!("kill-{topic}"),
        }
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "topic {} queue {}", self.topic_name(), self.queue)
    }
}

/// The body of message `number`, sent to `queue`.
pub(super) fn body(seed: u64, number: u64, queue: Queue) -> Vec<u8> {
    let mut random = Random::of(seed, number);
    let bound = if random.below(LARGE_ONE_IN) == 0 {
        BODY_BYTES_LARGE
    } else {
        BODY_BYTES_USUAL
    };
    let filling = random.below(bound) as usize;
    let mut body = Vec::with_capacity(HEAD + filling + 8);
    body.extend_from_slice(&number.to_be_bytes());
    body.extend_from_slice(&[queue.topic, queue.queue]);
    while body.len() < HEAD + filling {
        body.extend_from_slice(&random.next().to_be_bytes());
    }
    body.truncate(HEAD + filling);
    body
}

/// Number and queue of a message of ours; `None` if its body is not whole.
pub(super) fn recognize(seed: u64, bytes: &[u8]) -> Option<(u64, Queue)> {
    let number = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let queue = Queue {
        topic: *bytes.get(8)?,
        queue: *bytes.get(9)?,
    };
    (body(seed, number, queue) == bytes).then_some((number, queue))
}

/// The key of message `number`.
pub(super) fn key(number: u64) -> String {
    format!("key-{number}")
}

/// The properties text of message `number`.
pub(super) fn properties(seed: u64, number: u64) -> Vec<u8> {
    let mut text = Vec::new();
    properties::push(&mut text, names::KEYS, key(number).as_bytes());
    let unique = format!("{seed:016X}{number:016X}");
    properties::push(&mut text, names::UNIQ_KEY, unique.as_bytes());
    properties::push(&mut text, names::WAIT, b"true");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_again_and_a_changed_one_is_not() {
        let queue = Queue { topic: 3, queue: 1 };
        for number in 0..500 {
            let mut bytes = body(9, number, queue);
            assert_eq!(recognize(9, &bytes), Some((number, queue)));
            assert_eq!(recognize(8, &bytes).filter(|_| bytes.len() > HEAD), None);
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            assert_ne!(recognize(9, &bytes), Some((number, queue)));
            bytes.pop();
            assert_ne!(recognize(9, &bytes), Some((number, queue)));
        }
    }

    #[test]
    fn sizes_are_usual_ones_with_some_large_ones_between() {
        let queue = Queue { topic: 0, queue: 0 };
        let sizes: Vec<usize> = (0..2_000).map(|n| body(1, n, queue).len()).collect();
        let large = sizes.iter().filter(|size| **size > 2_100).count();
        assert!((10..100).contains(&large), "{large} large ones");
        assert!(sizes.iter().all(|size| *size < 60_100));
    }
}
