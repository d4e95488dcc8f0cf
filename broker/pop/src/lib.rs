//! Pop consumption as a pure state machine: messages out, acks in, invisible times, redelivery,
//! ordered groups, waiting pops. Events go in, actions come out; nothing in here reads a clock, a
//! disk or a random source.
//!
//! | part | keyed by | what it is |
//! |---|---|---|
//! | [`Queue`] | group, stored topic, queue | checkpoints, order, lock, commit: the machine |
//! | [`plan`] | – | which queues a pop looks at |
//! | [`polls::Polls`] | group, topic, queue | pops that wait |
//! | [`ReviveQueue`] | queue of the revive topic | up to where its records are done with |
//! | [`redelivery`] | – | retry topic or dead-letter topic |
//!
//! Each is independent of the others, so a shell keeps each behind a lock of its own and many
//! threads pop and ack at once. No lock is held while another one is taken: actions are put into a
//! buffer of the thread and carried out after the queue's lock is free, or under it if the store
//! only appends to memory; their answers take the lock again.
//!
//! ```text
//! pop(group, topic, …):
//!     if polls::is_late(now, born, poll) → POLLING_TIMEOUT
//!     invisible = Invisible::of_pop(millis)?          // ≤ 0: refused
//!     for source in plan::plan(PlanAsk { random, … }) until enough messages:
//!         queue = queues.get(group, source.topic.stored_topic(topic, group), source.queue)
//!         loop (a few times):
//!             match queue.lock().begin_pop(now, ask, bounds of store and offset table, out):
//!                 Nothing(_)   → next source
//!                 Read(order)  → store.read(from, until, max, filter)
//!             match queue.lock().finish_pop(now, order.ticket, read, out):
//!                 Messages(b)  → answer gets b.messages of what was read, its texts from b
//!                 Again        → once more;  Nothing or Stale → next source
//!         marks.keep(queue, queue.mark());  carry_out(out)
//!     nothing: polls.hold(key, deadline) — full: POLLING_FULL — then look once more; or answer
//! ack:    handle.check(broker)?; queue.ack / ack_order / ack_batch; carry_out(out); answer 0
//! change: queue.change_invisible / change_order; carry_out(out); answer when `record` is written
//! timer:  at wake_at() of each queue (a heap in the shell): queue.tick(now, out); carry_out(out)
//! append to (topic, queue): polls.arrived(…);  copy put into a retry topic: polls.wake(…)
//! carry_out, in order:
//!     WriteCheckpoint → append `ck` to the revive topic; revive.note(at, 1); queue.record_written
//!     WriteAcks       → append `ack` or `bAck`; revive.note(at, 0)
//!     Commit          → offset table
//!     Redeliver       → read exactly that offset; destination(…); append; queue.redelivered
//!     DeadLetter      → the same, to the dead-letter topic; queue.dead_lettered
//!     Resolved        → revive.resolved(at); if revive.advance() → offset of the revive group
//!     Wake            → polls.wake(topic, group, queue)
//! start:  for each revive queue, from its offset: parts = queue.recover_checkpoint(…),
//!         revive.note(at, parts); queue.recover_acks(…); then recover_order, recovered for each
//! ```
//!
//! What happens when:
//!
//! | event | behaviour |
//! |---|---|
//! | buffer full | new checkpoints are written at once; at twice the limit the queue gives nothing |
//! | too many in flight | the queue gives nothing until something is acked or sent on |
//! | wall clock steps | nothing: waiting goes by the steady clock |
//! | clock wrong at a restart | no message waits longer than its own invisible time |
//! | killed | records and marks keep messages invisible; what is in doubt is read again in place |
//! | killed while a copy was made | there may be two copies of that message |
//! | topic deleted, made again | old handles are void, old records are acked, offsets begin anew |
//! | group reset | as deleted, but reading goes on at the new offset |
//! | queue cut (its end moved back) | claims behind the end are void; reading goes on there |
//! | fewer read queues | no new pops; acks count, what is due is sent on, the offset moves |
//! | more read queues | each begins as its first pop says |
//! | group becomes ordered | its queues wait until nothing unordered is in flight |
//! | group becomes unordered | the batch becomes a checkpoint; its handles still count |
//!
//! **Invariant:** the committed offset passes a message only when it is acked, copied on, dropped
//! on purpose, or held by a record of the revive topic. As in Java, a message with a durable record
//! does not hold the offset back: its record speaks for it.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod action;
mod buffer;
mod checkpoint;
mod options;
pub mod plan;
pub mod polls;
mod queue;
pub mod redelivery;
mod revive;
mod time;

pub use action::{AckWrite, Action, Actions, CheckpointWrite, Copied, RecordKey, Redelivery};
pub use options::Options;
pub use queue::*;
pub use revive::ReviveQueue;
pub use time::{INVISIBLE_MAX_MILLIS, INVISIBLE_MIN_MILLIS, Invisible, InvisibleError, Now};
