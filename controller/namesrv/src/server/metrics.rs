//! Figures of a NameServer as plain numbers; whoever publishes them gives them names.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use rmq_protocol::remoting::request_code;

use super::dispatch;

/// Figures of one moment; counts are since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Brokers registered, group members one by one.
    pub brokers: usize,
    /// Broker groups.
    pub broker_groups: usize,
    /// Clusters.
    pub clusters: usize,
    /// Topics with a route.
    pub topics: usize,
    /// Requests by code, served codes only.
    pub requests: Vec<(i32, u64)>,
    /// Requests with codes that nobody serves.
    pub requests_unsupported: u64,
    /// Route queries (105).
    pub route_queries: u64,
    /// Route queries for topics without a route.
    pub route_misses: u64,
}

/// The counters behind the figures.
#[derive(Debug, Default)]
pub(super) struct Counters {
    by_code: OnceLock<Vec<(i32, AtomicU64)>>,
    unsupported: AtomicU64,
    routes: AtomicU64,
    pub(super) route_misses: AtomicU64,
}

impl Counters {
    pub(super) fn count(&self, code: i32) {
        let counter = if code == request_code::GET_ROUTEINFO_BY_TOPIC {
            &self.routes
        } else {
            self.by_code()
                .iter()
                .find(|(known, _)| *known == code)
                .map_or(&self.unsupported, |one| &one.1)
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Metrics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let routes = load(&self.routes);
        let mut requests: Vec<(i32, u64)> = self
            .by_code()
            .iter()
            .map(|(code, counter)| (*code, load(counter)))
            .collect();
        requests.push((request_code::GET_ROUTEINFO_BY_TOPIC, routes));
        requests.sort_unstable();
        Metrics {
            requests,
            requests_unsupported: load(&self.unsupported),
            route_queries: routes,
            route_misses: load(&self.route_misses),
            ..Metrics::default()
        }
    }

    fn by_code(&self) -> &[(i32, AtomicU64)] {
        self.by_code.get_or_init(|| {
            dispatch::codes()
                .map(|code| (code, AtomicU64::new(0)))
                .collect()
        })
    }
}
