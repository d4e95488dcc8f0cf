//! Clusters and whole brokers: cluster info (106), taking and giving write permission (205, 327).

use rmq_protocol::header::{AddWritePermResponse, BrokerNameHeader, WipeWritePermResponse};

use super::{
    call::{Call, Handled, echo},
    core::Core,
};

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one shape")]
pub(super) fn info(core: &Core, call: &Call<'_>) -> Handled {
    let prepared = core.read().table.prepared_clusters();
    let body = prepared.unwrap_or_else(|| core.write().table.cluster_answer());
    Ok(call.success().with_body(body))
}

pub(super) fn wipe_write_perm(core: &Core, call: &Call<'_>) -> Handled {
    let header: BrokerNameHeader<'_> = call.fields()?;
    let topics = core.write().table.wipe_write_perm(&header.broker_name);
    tracing::info!(
        broker = echo(&header.broker_name),
        topics,
        "write permission wiped"
    );
    Ok(call.success().with_header(&WipeWritePermResponse {
        wipe_topic_count: topics as i32,
    }))
}

pub(super) fn add_write_perm(core: &Core, call: &Call<'_>) -> Handled {
    let header: BrokerNameHeader<'_> = call.fields()?;
    let topics = core.write().table.add_write_perm(&header.broker_name);
    tracing::info!(
        broker = echo(&header.broker_name),
        topics,
        "write permission given"
    );
    Ok(call.success().with_header(&AddWritePermResponse {
        add_topic_count: topics as i32,
    }))
}
