//! Clean-up on request (306, 316, 329), and requests that this broker knows but does not serve yet
//! (37, 370).

use std::sync::Arc;

use rmq_protocol::header::{EndTransaction, RecallMessage};
use rmq_types::system;

use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::Call,
};

/// Code 306. Queue files go together with the log files they point into, so none is left to clean.
pub(super) fn clean_expired_queues(_core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    Ok(success())
}

/// Code 316: data of topics that nobody knows any more.
pub(super) fn clean_unused_topics(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let is_wanted = |topic: &str| {
        core.topics.contains(topic)
            || system::is_system_topic(topic)
            || topic.starts_with(system::LMQ_PREFIX)
    };
    let gone = core.store.retain_topics(is_wanted).map_err(|error| {
        Failure::system(format!(
            "data of unused topics could not be deleted: {error}"
        ))
    })?;
    if !gone.is_empty() {
        tracing::info!(topics = ?gone, "data of unused topics deleted");
    }
    Ok(success())
}

/// Code 329: expired log files, at any hour.
pub(super) fn delete_expired_log(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let cleaned = core.store.delete_expired(true);
    tracing::info!(?cleaned, "expired files deleted on request");
    Ok(success())
}

/// Code 370.
pub(super) fn recall(_core: &Arc<Core>, call: &Call<'_>) -> Answer {
    call.decode::<RecallMessage<'_>>()?;
    Err(Failure::no_permission(
        "recall failed, operation is forbidden: recallMessageEnable is off",
    ))
}

/// Code 37.
pub(super) fn end_transaction(_core: &Arc<Core>, call: &Call<'_>) -> Answer {
    call.decode::<EndTransaction<'_>>()?;
    Err(Failure::system("transactions are not supported yet"))
}
