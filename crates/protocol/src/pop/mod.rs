//! The texts and bodies of pop consumption, byte for byte as Java writes them: handles, offset
//! texts of a pop's answer, records of the revive topic, batch acks, the state of ordered groups.
//!
//! **Invariant:** what a client or a disk gave is read under limits and never panics; a number
//! that fits no field is an error, never a wrap. What the values mean to a queue is `rmq-pop`'s.
//!
//! | what | form |
//! |---|---|
//! | handle, 7 fields | `ckOffset popTime invisibleTime reviveQid t brokerName queueId` |
//! | handle, 8: `POP_CK` | the 7 and `queueOffset` |
//! | handle, 9: gRPC | the 8 and `commitLogOffset`, −1 when unknown |
//! | `startOffsetInfo` | `t queueId offset` joined by `;` |
//! | `msgOffsetInfo` | `t queueId o1,o2,…` joined by `;` |
//! | `orderCountInfo` | `t queueId count` and `t qo<queueId>%<offset> count` joined by `;` |
//!
//! `t` is a [`PopTopic`](rmq_types::pop::PopTopic).

mod base64;
mod batch_ack;
mod handle;
mod offset_info;
mod order_info;
mod record;
#[cfg(test)]
mod tests;

pub use batch_ack::{ACKS_MAX, BatchAck, BatchAckRequest, BitSet, BitSetError};
pub use handle::{HANDLE_BYTES_MAX, HandleError, ReceiptHandle};
pub use offset_info::{
    MessageOffsets, OffsetInfoError, OrderCount, StartOffset, parse_message_offsets,
    parse_order_counts, parse_start_offsets, push_message_offsets, push_order_count,
    push_queue_order_count, push_start_offset,
};
pub use order_info::{OrderInfo, OrderInfoFile};
pub use record::{
    ACK_TAG, AckRecord, BATCH_ACK_TAG, BatchAckRecord, CHECKPOINT_LEAD_MILLIS, CHECKPOINT_TAG,
    CheckpointRecord, RecordError, ReviveRecord,
};
