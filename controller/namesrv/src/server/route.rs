//! Route queries (105): the hot path. A kept answer is found and copied behind a header written by
//! hand; only a miss takes the write lock.

use std::sync::atomic::Ordering;

use rmq_net::Outbox;
use rmq_protocol::{
    header::{DecodeHeader, GetRoute},
    remoting::{ResponseWriter, VERSION_STANDARD_JSON, response_code},
};

use super::{
    call::{Call, Refusal, echo},
    core::Core,
};
use crate::route::Flavour;

/// Java's own hint after the reason.
const HINT: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

pub(super) fn serve(core: &Core, call: &Call<'_>, out: &mut Outbox) {
    if let Err(refusal) = answer(core, call, out) {
        ResponseWriter::new(out.buffer(), call.header.opaque, refusal.code)
            .finish(Some(&refusal.remark), []);
    }
}

fn answer(core: &Core, call: &Call<'_>, out: &mut Outbox) -> Result<(), Refusal> {
    let ext = &call.header.ext;
    let request = GetRoute::decode(ext)?;
    let topic: &str = &request.topic;
    if core.waits_for_brokers() {
        return Err(Refusal::error("name server not ready"));
    }
    if ext.is_true("__ZONE_MODE")
        && let Some(zone) = ext
            .get("__ZONE_NAME")
            .filter(|zone| !zone.trim().is_empty())
    {
        return answer_in_zone(core, call, (topic, zone), out);
    }
    let standard = call.header.version >= VERSION_STANDARD_JSON
        || request.accept_standard_json_only == Some(true);
    let flavour = if standard {
        Flavour::Standard
    } else {
        Flavour::Legacy
    };
    {
        let state = core.read();
        if let Some(body) = state.table.prepared(topic, flavour) {
            write(call, body, out);
            return Ok(());
        }
        if !state.table.has_topic(topic) {
            return Err(unknown(core, topic));
        }
    }
    let body = {
        let mut state = core.write();
        let order = core.order_conf(&state.options, topic);
        state.table.answer(topic, flavour, order.as_deref())
    };
    write(call, &body.ok_or_else(|| unknown(core, topic))?, out);
    Ok(())
}

/// Answers by zone are built each time, and always in the form of old clients, as in Java.
fn answer_in_zone(
    core: &Core,
    call: &Call<'_>,
    (topic, zone): (&str, &str),
    out: &mut Outbox,
) -> Result<(), Refusal> {
    let route = {
        let state = core.read();
        let order = core.order_conf(&state.options, topic);
        state.table.route_in_zone(topic, zone, order.as_deref())
    };
    let route = route.ok_or_else(|| unknown(core, topic))?;
    write(call, &route.to_json_legacy(), out);
    Ok(())
}

fn write(call: &Call<'_>, body: &[u8], out: &mut Outbox) {
    ResponseWriter::new(out.buffer(), call.header.opaque, response_code::SUCCESS)
        .finish(None, [body]);
}

fn unknown(core: &Core, topic: &str) -> Refusal {
    core.counters.route_misses.fetch_add(1, Ordering::Relaxed);
    let remark = format!(
        "No topic route info in name server for the topic: {}{HINT}",
        echo(topic)
    );
    Refusal::new(response_code::TOPIC_NOT_EXIST, remark)
}
