//! The metrics page, with the names and labels of the Java broker where it measures the same.
//!
//! **Invariant:** a figure that this broker does not have (transactions, timer wheel) is left
//! out, never 0. Reading the page takes no lock that a send or a pull waits for longer than a look-up.

mod created;
mod histogram;
mod labels;
mod lag;
mod page;
mod pop;
mod rpc;
mod traffic;

use rmq_protocol::{body::ConsumeType, remoting::version_name};
use rmq_types::system;

pub(crate) use created::CreateTimes;
pub(crate) use labels::parse as parse_labels;
pub(crate) use lag::Place as LagPlace;
pub(crate) use rpc::{Answered, Outcome, RpcLatency, Tally};
pub(crate) use traffic::{MessageType, TopicTraffic};

use page::{Page, counter, gauge, histogram};

use crate::{
    core::{Core, lock},
    stats::{Stat, Stats},
};

/// Java's processors that are here. Only administration waits for a thread; all others are served
/// on the thread that read them.
const PROCESSORS: [&str; 10] = [
    "ack",
    "admin",
    "client_manager",
    "consumer_manager",
    "heartbeat",
    "lite_pull",
    "pull",
    "query_message",
    "reply",
    "send",
];

/// Renders the page in Prometheus' text form.
#[must_use]
pub(crate) fn render(core: &Core) -> String {
    let identity = &core.identity;
    let settings = core.settings.get();
    let mut common = vec![
        ("cluster", identity.cluster.as_str()),
        ("node_type", "broker"),
        ("node_id", identity.name.as_str()),
    ];
    // Looked at when the broker started.
    common.extend(parse_labels(&settings.metrics_label).unwrap_or_default());
    let mut page = Page::new(&common);
    sizes(&mut page, core);
    requests(&mut page, core);
    incoming(&mut page, &core.stats);
    outgoing(&mut page, &core.stats);
    connections(&mut page, core);
    storage(&mut page, core);
    lags(&mut page, core);
    pop::figures(&mut page, core);
    page.into_text()
}

/// How many of what there are.
fn sizes(page: &mut Page, core: &Core) {
    let plain = |page: &mut Page, name, help, value: usize| {
        page.family(gauge(name, help), |family| family.sample(&[], value));
    };
    let permission = core.settings.get().broker_permission.get();
    page.family(
        gauge("rocketmq_broker_permission", "Permission bits."),
        |family| family.sample(&[], permission),
    );
    plain(page, "rocketmq_topic_number", "Topics.", core.topics.len());
    plain(
        page,
        "rocketmq_consumer_group_number",
        "Subscription groups.",
        core.groups.len(),
    );
    let queued = core.workers.queued();
    page.family(
        gauge(
            "rocketmq_processor_watermark",
            "Requests that wait for a thread.",
        ),
        |family| {
            for processor in PROCESSORS {
                let waiting = if processor == "admin" { queued } else { 0 };
                family.sample(&[("processor", processor)], waiting);
            }
        },
    );
    plain(
        page,
        "rocketmq_held_pulls",
        "Pulls that wait for a message.",
        lock(&core.holds).len(),
    );
    plain(
        page,
        "rocketmq_parked_sends",
        "Stored sends whose answer waits for the disk.",
        core.parked.len(),
    );
}

/// How long requests take.
fn requests(page: &mut Page, core: &Core) {
    let views: Vec<rpc::View> = core.rpc.views().collect();
    let about = histogram("rocketmq_rpc_latency", "Time from request to answer.");
    page.family(about.unit("milliseconds"), |family| {
        for view in &views {
            let labels = [
                ("protocol_type", "remoting"),
                ("request_code", view.request.as_str()),
                ("response_code", view.response.as_str()),
                ("is_long_polling", flag(view.held)),
                ("result", view.outcome.name()),
            ];
            family.distribution(&labels, &view.times);
        }
    });
    for (name, help, times) in [
        (
            "rocketmq_topic_create_execution_time",
            "Time to create or change topics.",
            &core.topic_creation,
        ),
        (
            "rocketmq_consumer_group_create_execution_time",
            "Time to create or change groups.",
            &core.group_creation,
        ),
    ] {
        page.family(histogram(name, help).unit("milliseconds"), |family| {
            for (done, system, values) in times.views() {
                let status = if done { "success" } else { "failure" };
                let labels = [("invocation_status", status), ("is_system", flag(system))];
                family.distribution(&labels, &values);
            }
        });
    }
}

/// Messages stored.
fn incoming(page: &mut Page, stats: &Stats) {
    let topics = stats.traffic();
    let shown = topics.iter().filter(|of| !is_retry_or_dead(of.topic()));
    let rows: Vec<(&str, traffic::View)> = shown
        .flat_map(|of| of.views().map(|view| (of.topic(), view)))
        .collect();
    page.family(
        counter("rocketmq_messages_in_total", "Messages stored."),
        |family| {
            for (topic, view) in &rows {
                family.sample(&topic_labels(topic, view.kind), view.messages);
            }
        },
    );
    page.family(
        counter("rocketmq_throughput_in_total", "Bytes stored."),
        |family| {
            for (topic, view) in &rows {
                family.sample(&topic_labels(topic, view.kind), view.bytes);
            }
        },
    );
    page.family(
        histogram("rocketmq_message_size", "Bytes of a message."),
        |family| {
            for (topic, view) in &rows {
                family.distribution(&topic_labels(topic, view.kind), &view.sizes);
            }
        },
    );
}

fn topic_labels(topic: &str, kind: MessageType) -> [(&'static str, &str); 3] {
    [
        ("topic", topic),
        ("message_type", kind.name()),
        ("is_system", flag(system::is_system_topic(topic))),
    ]
}

/// Messages given out, and those nobody could consume.
fn outgoing(page: &mut Page, stats: &Stats) {
    for (stat, name, help) in [
        (
            Stat::GroupGetNums,
            "rocketmq_messages_out_total",
            "Messages given out.",
        ),
        (
            Stat::GroupGetSize,
            "rocketmq_throughput_out_total",
            "Bytes given out.",
        ),
    ] {
        let list = stats.list(stat);
        page.family(counter(name, help), |family| {
            for (key, value) in &list {
                if let Some((topic, group)) = key.split_once('@')
                    && !is_retry_or_dead(topic)
                {
                    family.sample(&group_labels(topic, group), value);
                }
            }
        });
    }
    let dead = stats.list(Stat::DlqPutNums);
    let about = counter("rocketmq_send_to_dlq_messages_total", "Dead letters.");
    page.family(about, |family| {
        for (key, value) in &dead {
            if let Some((topic, group)) = key.split_once('@') {
                let labels = [
                    ("consumer_group", group),
                    ("topic", topic),
                    ("is_system", flag(is_system(topic, group))),
                ];
                family.sample(&labels, value);
            }
        }
    });
}

/// Clients that are online.
fn connections(page: &mut Page, core: &Core) {
    let producers = lock(&core.producers).kinds();
    let about = gauge("rocketmq_producer_connections", "Producers online.");
    page.family(about, |family| {
        for ((language, version), count) in &producers {
            let labels = [
                ("language", &*language.to_ascii_lowercase()),
                ("version", &*version_name(*version).to_ascii_lowercase()),
                ("protocol_type", "remoting"),
            ];
            family.sample(&labels, count);
        }
    });
    let consumers = lock(&core.consumers).kinds();
    let about = gauge("rocketmq_consumer_connections", "Consumers online.");
    page.family(about, |family| {
        for (kind, count) in &consumers {
            let mode = match kind.consume_type {
                ConsumeType::ConsumeActively => "pull",
                ConsumeType::ConsumePassively => "push",
                ConsumeType::ConsumePop => "pop",
            };
            let labels = [
                ("consumer_group", kind.group.as_str()),
                ("language", &*kind.language.to_ascii_lowercase()),
                ("version", &*version_name(kind.version).to_ascii_lowercase()),
                ("consume_mode", mode),
                ("protocol_type", "remoting"),
                ("is_system", flag(is_system_group(&kind.group))),
            ];
            family.sample(&labels, count);
        }
    });
}

/// The store.
fn storage(page: &mut Page, core: &Core) {
    let state = core.store.state();
    let labels = [("storage_type", "local"), ("storage_medium", "disk")];
    let mut bytes = |about, value: u64| {
        page.family(about, |family| family.sample(&labels, value));
    };
    let size = gauge("rocketmq_storage_size", "Bytes of the log.");
    bytes(size.unit("bytes"), state.log_end - state.log_min);
    bytes(
        gauge(
            "rocketmq_storage_flush_behind_bytes",
            "Bytes not yet on the disk.",
        ),
        state.log_end.saturating_sub(state.durable),
    );
    bytes(
        gauge(
            "rocketmq_storage_dispatch_behind_bytes",
            "Bytes not yet indexed.",
        ),
        state.index_behind,
    );
    let age = core
        .store
        .earliest_time()
        .map_or(0, |oldest| core.now().since(oldest));
    let about = gauge(
        "rocketmq_storage_message_reserve_time",
        "Age of the oldest message.",
    );
    page.family(about.unit("milliseconds"), |family| {
        family.sample(&labels, age);
    });
    let about = gauge(
        "rocketmq_storage_disk_used_percent",
        "Use of the store's disk.",
    );
    page.family(about, |family| {
        family.sample(&labels, state.disk_used_percent);
    });
}

/// What groups have not consumed.
fn lags(page: &mut Page, core: &Core) {
    let lags = lag::all(core);
    let mut figure = |about, of: fn(&lag::Lag) -> i64| {
        page.family(about, |family| {
            for lag in &lags {
                family.sample(&group_labels(&lag.topic, &lag.group), of(lag));
            }
        });
    };
    figure(
        gauge(
            "rocketmq_consumer_lag_messages",
            "Messages not yet consumed.",
        ),
        |lag| lag.behind,
    );
    figure(
        gauge(
            "rocketmq_consumer_lag_latency",
            "Age of the oldest message not yet consumed.",
        )
        .unit("milliseconds"),
        |lag| lag.behind_millis,
    );
    figure(
        gauge(
            "rocketmq_consumer_inflight_messages",
            "Messages given out and not yet consumed.",
        ),
        |lag| lag.inflight,
    );
    figure(
        gauge(
            "rocketmq_consumer_queueing_latency",
            "Age of the oldest message not yet given out.",
        )
        .unit("milliseconds"),
        |lag| lag.ready_millis,
    );
    figure(
        gauge(
            "rocketmq_consumer_ready_messages",
            "Messages not yet given out.",
        ),
        |lag| lag.ready,
    );
}

fn group_labels<'a>(topic: &'a str, group: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("consumer_group", group),
        ("topic", topic),
        ("is_retry", flag(topic.starts_with(system::RETRY_PREFIX))),
        ("is_system", flag(is_system(topic, group))),
    ]
}

fn is_system(topic: &str, group: &str) -> bool {
    system::is_system_topic(topic) || is_system_group(group)
}

/// As Java's page has it: groups of tools are users' groups there.
fn is_system_group(group: &str) -> bool {
    group.starts_with(system::SYSTEM_GROUP_PREFIX)
}

fn is_retry_or_dead(topic: &str) -> bool {
    topic.starts_with(system::RETRY_PREFIX) || topic.starts_with(system::DLQ_PREFIX)
}

const fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
