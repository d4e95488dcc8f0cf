//! Numbers with a meaning: broker ids, queue ids and the two kinds of offset.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($raw);

        impl $name {
            /// Wraps a raw number.
            #[must_use]
            pub const fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The raw number.
            #[must_use]
            pub const fn get(self) -> $raw {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Id of a broker in its group; [`MASTER_ID`] is the master in routes.
    BrokerId(u64)
);
number!(
    /// Byte position in the commit log of one broker.
    CommitLogOffset(u64)
);
number!(
    /// Index of a message in one queue of one topic.
    QueueOffset(u64)
);
number!(
    /// Number of a queue inside a topic on one broker.
    QueueId(u32)
);

/// The id under which a master stands in routes (`MixAll.MASTER_ID`).
pub const MASTER_ID: BrokerId = BrokerId::new(0);

impl CommitLogOffset {
    /// The offset `bytes` further on.
    #[must_use]
    pub const fn advance(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl QueueOffset {
    /// The offset `count` messages further on.
    #[must_use]
    pub const fn advance(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}
