//! Names of properties that belong to the protocol: hidden from users and refused from them.
//!
//! **Invariant:** a user property never changes what a broker does with a message. The Java proxy
//! leaves a few names open that do (a message group, inner batches, light queues); they are closed
//! here.

use rmq_protocol::message::properties::names as n;

const RESERVED: [&str; 63] = [
    n::KEYS,
    n::TAGS,
    n::WAIT,
    n::DELAY,
    n::RETRY_TOPIC,
    n::REAL_TOPIC,
    n::REAL_QID,
    n::TRAN_MSG,
    n::PGROUP,
    n::MIN_OFFSET,
    n::MAX_OFFSET,
    n::ORIGIN_MESSAGE_ID,
    n::DLQ_ORIGIN_TOPIC,
    n::DLQ_ORIGIN_MESSAGE_ID,
    n::RECONSUME_TIME,
    n::MAX_RECONSUME_TIMES,
    n::MSG_REGION,
    n::TRACE_ON,
    n::UNIQ_KEY,
    n::EXTEND_UNIQ_INFO,
    n::CONSUME_START_TIME,
    n::INNER_NUM,
    n::INNER_BASE,
    n::DUP_INFO,
    n::CHECK_IMMUNITY_TIME_IN_SECONDS,
    n::TRAN_PREPARED_QUEUE_OFFSET,
    n::TRANSACTION_CHECK_TIMES,
    n::TRANSACTION_ID,
    n::CORRELATION_ID,
    n::REPLY_TO_CLIENT,
    n::TTL,
    n::ARRIVE_TIME,
    n::PUSH_REPLY_TIME,
    n::CLUSTER,
    n::MSG_TYPE,
    n::POP_CK,
    n::POP_CK_OFFSET,
    n::FIRST_POP_TIME,
    n::SHARDING_KEY,
    n::FORWARD_QUEUE_ID,
    n::REDIRECT,
    n::INNER_MULTI_DISPATCH,
    n::INNER_MULTI_QUEUE_OFFSET,
    n::TRACE_CONTEXT,
    n::TIMER_DELAY_SEC,
    n::TIMER_DELAY_MS,
    n::TIMER_DELIVER_MS,
    n::TIMER_OUT_MS,
    n::TIMER_ENQUEUE_MS,
    n::TIMER_DEQUEUE_MS,
    n::TIMER_ROLL_TIMES,
    n::TIMER_DEL_UNIQKEY,
    n::TIMER_DELAY_LEVEL,
    n::BORN_HOST,
    n::BORN_TIMESTAMP,
    n::TRANSIENT_TOPIC_SYS_FLAG,
    n::TRANSIENT_GROUP_SYS_FLAG,
    n::CRC32,
    n::TRANSFER_FLAG,
    n::CORRECTION_FLAG,
    n::MQ2_FLAG,
    n::BUYER_ID,
    n::INSTANCE_ID,
];

/// Whether a property of this name is the protocol's.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}
