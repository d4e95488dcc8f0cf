//! What one topic takes in, by type of message (`rocketmq_messages_in_total` and its kin).
//!
//! **Invariant:** a topic is looked up once for all its figures; what a type needs is made with its
//! first message. Topics that groups are retried through are not shown here, as in Java.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use super::histogram::{Histogram, Snapshot};
use crate::stats::Counter;

/// Bounds of the buckets, in bytes, as in Java.
static SIZES: [u64; 6] = [1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20];

/// Type of a message, told from its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageType {
    /// None of the others.
    Normal,
    /// With a sharding key.
    Fifo,
    /// To be delivered later.
    Delay,
    /// Of a transaction.
    Transaction,
}

impl MessageType {
    const ALL: [Self; 4] = [Self::Normal, Self::Fifo, Self::Delay, Self::Transaction];

    /// The label's value.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Fifo => "fifo",
            Self::Delay => "delay",
            Self::Transaction => "transaction",
        }
    }
}

#[derive(Debug)]
struct OfType {
    messages: AtomicU64,
    bytes: AtomicU64,
    sizes: Histogram<6>,
}

/// Figures of one topic.
#[derive(Debug)]
pub(crate) struct TopicTraffic {
    topic: Box<str>,
    nums: Arc<Counter>,
    size: Arc<Counter>,
    types: [OnceLock<Box<OfType>>; 4],
}

/// What came of one type.
#[derive(Debug)]
pub(crate) struct View {
    /// The type.
    pub(crate) kind: MessageType,
    /// Messages.
    pub(crate) messages: u64,
    /// Bytes of their records.
    pub(crate) bytes: u64,
    /// Bytes of a message; a batch counts once, with its mean.
    pub(crate) sizes: Snapshot,
}

impl TopicTraffic {
    /// Of a topic whose counters of messages and bytes are these.
    pub(crate) fn new(topic: &str, nums: Arc<Counter>, size: Arc<Counter>) -> Self {
        Self {
            topic: topic.into(),
            nums,
            size,
            types: Default::default(),
        }
    }

    /// The topic.
    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Adds one send of some messages that take `bytes` in the log together.
    pub(crate) fn add(&self, kind: MessageType, messages: u64, bytes: u64) {
        self.nums.add(messages, 1);
        self.size.add(bytes, 1);
        let Some(place) = self.types.get(kind as usize) else {
            return;
        };
        let of = place.get_or_init(|| {
            Box::new(OfType {
                messages: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                sizes: Histogram::new(&SIZES),
            })
        });
        of.messages.fetch_add(messages, Ordering::Relaxed);
        of.bytes.fetch_add(bytes, Ordering::Relaxed);
        of.sizes.record(bytes / messages.max(1), 1);
    }

    /// Each type that came.
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        let types = self.types.iter().zip(MessageType::ALL);
        types.filter_map(|(place, kind)| {
            let of = place.get()?;
            Some(View {
                kind,
                messages: of.messages.load(Ordering::Relaxed),
                bytes: of.bytes.load(Ordering::Relaxed),
                sizes: of.sizes.snapshot(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_its_messages_and_once_its_mean_size() {
        let traffic = TopicTraffic::new("T", Arc::default(), Arc::default());
        traffic.add(MessageType::Normal, 3, 6_000);
        traffic.add(MessageType::Fifo, 1, 100);
        let views: Vec<View> = traffic.views().collect();
        assert_eq!(views.len(), 2);
        assert_eq!((views[0].messages, views[0].bytes), (3, 6_000));
        assert_eq!(views[0].sizes.upto[..2], [(1 << 10, 0), (4 << 10, 1)]);
        assert_eq!((views[0].sizes.count, views[0].sizes.sum), (1, 2_000));
        assert_eq!(views[1].kind.name(), "fifo");
    }
}
