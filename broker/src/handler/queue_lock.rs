//! Queue locks of ordered consumers: codes 41 and 42.

use std::sync::Arc;

use rmq_protocol::body::{LockBatchRequest, LockBatchResponse};

use super::Call;
use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    session::QueueKey,
};

/// Most queues of one request.
const QUEUES_MAX: usize = 4096;

fn read(call: &Call<'_>) -> Result<(LockBatchRequest, Vec<QueueKey>), Failure> {
    if call.body.is_empty() {
        return Err(Failure::system(
            "the request has no body: clientId, consumerGroup, mqSet",
        ));
    }
    let body = LockBatchRequest::from_json(call.body)?;
    if body.client_id.is_empty() || body.consumer_group.is_empty() {
        return Err(Failure::system("clientId or consumerGroup is empty"));
    }
    if body.mq_set.len() > QUEUES_MAX {
        return Err(Failure::system(format!(
            "the request names more than {QUEUES_MAX} queues"
        )));
    }
    let queues = body
        .mq_set
        .iter()
        .map(|mq| (mq.topic.clone(), mq.queue_id))
        .collect();
    Ok((body, queues))
}

/// Code 41.
pub(crate) fn lock_batch(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let (body, queues) = read(call)?;
    let won = lock(&core.locks).lock(core.now(), &body.consumer_group, &body.client_id, queues);
    let queues = body.mq_set.into_iter().zip(won);
    let answer = LockBatchResponse {
        lock_ok_mq_set: queues.filter_map(|(mq, won)| won.then_some(mq)).collect(),
    };
    Ok(success().with_body(answer.to_json()))
}

/// Code 42.
pub(crate) fn unlock_batch(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let (body, queues) = read(call)?;
    lock(&core.locks).unlock(&body.consumer_group, &body.client_id, queues);
    Ok(success())
}
