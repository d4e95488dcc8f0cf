//! Pop consumption on the metrics page, by Java's names.
//!
//! **Invariant:** figures of single groups are bounded by the groups that popped; those of deleted
//! ones go with them.

use super::{
    group_labels,
    page::{Page, counter, gauge},
};
use crate::core::Core;

/// Buffers, revive topic, redeliveries.
pub(super) fn figures(page: &mut Page, core: &Core) {
    let (in_flight, buffered, bytes) = core.pops.totals();
    for (name, help, value) in [
        (
            "rocketmq_pop_checkpoint_buffer_size",
            "Checkpoints that only memory holds.",
            buffered,
        ),
        (
            "rocketmq_pop_inflight_messages",
            "Popped messages neither acknowledged nor sent again.",
            in_flight,
        ),
        (
            "rocketmq_held_pops",
            "Pops and notifications that wait for a message.",
            core.pops.waits.count(),
        ),
        (
            "rocketmq_pop_state_bytes",
            "Memory that messages in flight take.",
            bytes,
        ),
    ] {
        page.family(gauge(name, help), |family| family.sample(&[], value));
    }
    let lags = core.pops.revive_lags();
    let about = gauge(
        "rocketmq_pop_revive_lag",
        "Checkpoints of the revive topic that are not done with.",
    );
    page.family(about, |family| {
        for (queue, lag) in &lags {
            family.sample(&[("queue_id", &queue.to_string())], lag);
        }
    });
    let counters = &core.pops.counters;
    let about = counter(
        "rocketmq_pop_revive_in_message_total",
        "Records written to the revive topic.",
    );
    page.family(about, |family| {
        for (kind, total) in [
            ("CK", counters.checkpoints_written.get()),
            ("ACK", counters.acks_written.get()),
        ] {
            family.sample(&[("revive_message_type", kind)], total);
        }
    });
    let retries = counters.retries();
    let about = counter(
        "rocketmq_pop_revive_retry_messages_total",
        "Messages put into retry topics.",
    );
    page.family(about, |family| {
        for (key, total) in &retries {
            if let Some((topic, group)) = key.split_once('@') {
                let [group, topic, ..] = group_labels(topic, group);
                family.sample(&[group, topic], total);
            }
        }
    });
}
