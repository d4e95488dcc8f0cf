//! What the gateway counts.
//!
//! **Invariant:** as many series as there are calls and codes; nothing of a client's makes a label.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: Mutex<BTreeMap<(&'static str, i32), u64>>,
    /// Messages given to clients.
    pub(crate) delivered: AtomicU64,
    /// Messages made visible again because nobody took them.
    pub(crate) given_back: AtomicU64,
    /// Renewals made.
    pub(crate) renewed: AtomicU64,
    /// Messages for which there was no room among those that are renewed.
    pub(crate) not_kept: AtomicU64,
    /// Messages moved to dead-letter topics.
    pub(crate) dead: AtomicU64,
}

/// Numbers of this moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) connections: usize,
    pub(crate) clients: usize,
    pub(crate) waiting: usize,
    pub(crate) kept: usize,
    pub(crate) delivery_bytes: usize,
}

impl Metrics {
    /// Counts a call that ended with this code.
    pub(crate) fn count(&self, call: &'static str, code: i32) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((call, code)).or_default() += 1;
    }

    /// The page's part of the gateway.
    pub(crate) fn write(&self, gauges: Gauges, out: &mut String) {
        let mut number = |kind: &str, name: &str, value: u64| {
            // Writing into a String cannot fail.
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
        };
        number("gauge", "rocketmq_proxy_up", 1);
        number(
            "gauge",
            "rocketmq_proxy_connections",
            gauges.connections as u64,
        );
        number("gauge", "rocketmq_proxy_clients", gauges.clients as u64);
        number(
            "gauge",
            "rocketmq_proxy_receives_waiting",
            gauges.waiting as u64,
        );
        number(
            "gauge",
            "rocketmq_proxy_renewed_messages",
            gauges.kept as u64,
        );
        number(
            "gauge",
            "rocketmq_proxy_delivery_bytes",
            gauges.delivery_bytes as u64,
        );
        for (name, counter) in [
            ("rocketmq_proxy_messages_delivered_total", &self.delivered),
            ("rocketmq_proxy_messages_given_back_total", &self.given_back),
            ("rocketmq_proxy_renewals_total", &self.renewed),
            ("rocketmq_proxy_messages_not_kept_total", &self.not_kept),
            ("rocketmq_proxy_messages_dead_total", &self.dead),
        ] {
            number("counter", name, counter.load(Ordering::Relaxed));
        }
        let name = "rocketmq_proxy_requests_total";
        let _ = writeln!(out, "# TYPE {name} counter");
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for ((call, code), count) in calls.iter() {
            let _ = writeln!(out, "{name}{{rpc=\"{call}\",code=\"{code}\"}} {count}");
        }
    }
}
