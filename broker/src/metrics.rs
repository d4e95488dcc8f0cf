//! The metrics page, with the names of the Java broker where they exist.

use std::fmt::Write;

use rmq_types::system;

use crate::{
    core::{Core, lock},
    stats::{Stat, Stats},
};

/// Renders the page in Prometheus' text form.
#[must_use]
pub(crate) fn render(core: &Core) -> String {
    let mut page = Page::new(core);
    page.sizes(core);
    page.traffic(&core.stats);
    page.store(core);
    page.gauge(
        "rocketmq_processor_watermark",
        "Requests that wait.",
        |page| {
            page.sample(&[("processor", "admin")], core.workers.queued());
            page.sample(&[("processor", "send")], core.parked.len());
            page.sample(&[("processor", "pull")], lock(&core.holds).len());
        },
    );
    page.lag(core);
    page.text
}

struct Page {
    text: String,
    common: String,
}

impl Page {
    fn new(core: &Core) -> Self {
        let identity = &core.identity;
        let common = format!(
            "cluster=\"{}\",node_type=\"broker\",node_id=\"{}\"",
            identity.cluster, identity.name
        );
        Self {
            text: String::with_capacity(8192),
            common,
        }
    }

    fn family(
        &mut self,
        name: &'static str,
        kind: &str,
        help: &str,
        fill: impl FnOnce(&mut Family<'_>),
    ) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        fill(&mut Family { page: self, name });
    }

    fn gauge(&mut self, name: &'static str, help: &str, fill: impl FnOnce(&mut Family<'_>)) {
        self.family(name, "gauge", help, fill);
    }

    fn counter(&mut self, name: &'static str, help: &str, fill: impl FnOnce(&mut Family<'_>)) {
        self.family(name, "counter", help, fill);
    }

    /// How many of what there are.
    fn sizes(&mut self, core: &Core) {
        self.gauge("rocketmq_broker_permission", "Permission bits.", |page| {
            page.sample(&[], core.settings.get().broker_permission.get());
        });
        self.gauge("rocketmq_topic_number", "Topics.", |page| {
            page.sample(&[], core.topics.len());
        });
        self.gauge(
            "rocketmq_consumer_group_number",
            "Subscription groups.",
            |page| {
                page.sample(&[], core.groups.len());
            },
        );
        self.gauge(
            "rocketmq_producer_connections",
            "Producers online.",
            |page| {
                page.sample(&[], lock(&core.producers).member_count());
            },
        );
        self.gauge(
            "rocketmq_consumer_connections",
            "Consumers online.",
            |page| {
                page.sample(&[], lock(&core.consumers).member_count());
            },
        );
    }

    /// Messages and bytes in and out.
    fn traffic(&mut self, stats: &Stats) {
        let put_counts = stats.list(Stat::TopicPutNums);
        self.counter("rocketmq_messages_in_total", "Messages stored.", |page| {
            page.topics(&put_counts);
        });
        let put_bytes = stats.list(Stat::TopicPutSize);
        self.counter("rocketmq_throughput_in_total", "Bytes stored.", |page| {
            page.topics(&put_bytes);
        });
        let get_counts = stats.list(Stat::GroupGetNums);
        self.counter(
            "rocketmq_messages_out_total",
            "Messages given out.",
            |page| page.groups(&get_counts),
        );
        let get_bytes = stats.list(Stat::GroupGetSize);
        self.counter(
            "rocketmq_throughput_out_total",
            "Bytes given out.",
            |page| page.groups(&get_bytes),
        );
        let dead = stats.list(Stat::DlqPutNums);
        self.counter(
            "rocketmq_send_to_dlq_messages_total",
            "Dead letters.",
            |page| page.groups(&dead),
        );
    }

    /// The store.
    fn store(&mut self, core: &Core) {
        let state = core.store.state();
        self.gauge("rocketmq_storage_size", "Bytes of the log.", |page| {
            page.storage(state.log_end - state.log_min);
        });
        self.gauge(
            "rocketmq_storage_flush_behind_bytes",
            "Bytes not yet on the disk.",
            |page| {
                page.storage(state.log_end.saturating_sub(state.durable));
            },
        );
        self.gauge(
            "rocketmq_storage_dispatch_behind_bytes",
            "Bytes not yet indexed.",
            |page| {
                page.storage(state.index_behind);
            },
        );
        self.gauge(
            "rocketmq_storage_message_reserve_time",
            "Age of the oldest message in ms.",
            |page| {
                let age = core
                    .store
                    .earliest_time()
                    .map_or(0, |oldest| core.now().since(oldest));
                page.storage(age);
            },
        );
        self.gauge(
            "rocketmq_storage_disk_used_percent",
            "Use of the store's disk.",
            |page| {
                page.storage(state.disk_used_percent);
            },
        );
    }

    /// Messages behind, for every group that committed; broadcast groups keep their own progress.
    fn lag(&mut self, core: &Core) {
        self.gauge(
            "rocketmq_consumer_lag_messages",
            "Messages not yet consumed.",
            |page| {
                // Topic by topic: the table is never copied whole, nor locked for long.
                for topic in core.offsets.topics() {
                    for (group, queues) in core.offsets.committed_in(&topic) {
                        let behind = behind(core, &topic, &queues);
                        page.sample(&page_labels(&topic, &group), behind);
                    }
                }
            },
        );
    }
}

fn behind(core: &Core, topic: &str, queues: &[(i32, i64)]) -> i64 {
    let each = queues.iter().filter_map(|(queue, offset)| {
        let queue = u32::try_from(*queue).ok()?;
        Some((core.store.max_queue_offset(topic, queue)? - offset).max(0))
    });
    each.sum()
}

fn page_labels<'a>(topic: &'a str, group: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("topic", topic),
        ("consumer_group", group),
        ("is_retry", flag(topic.starts_with(system::RETRY_PREFIX))),
        (
            "is_system",
            flag(system::is_system_topic(topic) || system::is_system_group(group)),
        ),
    ]
}

const fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

struct Family<'a> {
    page: &'a mut Page,
    name: &'static str,
}

impl Family<'_> {
    /// Names hold no quotes or backslashes: their alphabet is checked where they enter.
    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.page.text, "{}{{{}", self.name, self.page.common);
        for (label, text) in labels {
            let _ = write!(self.page.text, ",{label}=\"{text}\"");
        }
        let _ = writeln!(self.page.text, "}} {value}");
    }

    fn storage(&mut self, value: impl std::fmt::Display) {
        self.sample(
            &[("storage_type", "local"), ("storage_medium", "disk")],
            value,
        );
    }

    fn topics(&mut self, list: &[(Box<str>, u64)]) {
        for (topic, value) in list {
            self.sample(
                &[
                    ("topic", topic),
                    ("is_system", flag(system::is_system_topic(topic))),
                ],
                value,
            );
        }
    }

    fn groups(&mut self, list: &[(Box<str>, u64)]) {
        for (key, value) in list {
            if let Some((topic, group)) = key.split_once('@') {
                self.sample(&page_labels(topic, group), value);
            }
        }
    }
}
