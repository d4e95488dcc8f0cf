//! Who is connected: producers and consumers by group, and the queue locks of ordered consumers.
//!
//! Pure tables: the connection is an opaque handle, time is an argument. **Invariant:** every entry
//! has a last sign of life and goes when it is too old, whatever else its client still does.

mod consumers;
mod locks;
mod producers;
pub(crate) mod subscription;

pub(crate) use consumers::{Consumers, Found, Heartbeat, Member, Subscribed};
pub(crate) use locks::{QueueKey, QueueLocks};
pub(crate) use producers::{GROUPS_OF_A_CONNECTION_MAX, Producer, Producers};
