//! The limits of one queue's state.
//!
//! **Invariant:** each limit has a stated answer when it is reached; none of them loses a message.

/// Limits and times; the defaults are those of the Java broker where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A pop that was begun and not finished holds its queue this long, ms. After it another pop
    /// may begin, and the first one's messages are refused.
    pub lock_millis: u64,
    /// A checkpoint with un-acked messages is written to the revive topic after this long, ms.
    pub stay_millis: u64,
    /// A checkpoint that is invisible for longer is written at once, so that the mark of what may
    /// be in flight stays near, ms.
    pub buffer_invisible_millis: u32,
    /// Checkpoints of this queue that no record holds yet. At the limit new ones are written at
    /// once; at twice the limit (records cannot be written) pops get nothing from the queue.
    pub buffered_max: usize,
    /// Messages in flight of this queue; at the limit pops get nothing from it.
    pub in_flight_max: usize,
    /// Writes and redeliveries that one tick or one call begins at most; the rest is due at once
    /// again.
    pub tick_actions_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lock_millis: 5_000,
            stay_millis: 10_000,
            buffer_invisible_millis: 15 * 60 * 1000,
            buffered_max: 20_000,
            in_flight_max: 2_000_000,
            tick_actions_max: 512,
        }
    }
}
