//! Answers about routes: built for one topic, kept as JSON until something they show changes.
//!
//! **Invariant:** a kept answer equals a fresh one. It is dropped with its topic's queues and goes
//! stale with the epoch, which grows with every change of brokers or policy.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use rmq_protocol::body::{BrokerData, ClusterInfo, QueueData, TopicRouteData};
use rmq_types::{MASTER_ID, system};

use super::{
    RouteTable,
    group::Group,
    topic::{Entry, PERM_WRITE},
};

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Standard JSON.
    Standard,
    /// Number keys without quotes, for clients before 4.9.4.
    Legacy,
}

#[derive(Debug)]
pub(super) struct Cached {
    epoch: u64,
    body: Bytes,
}

/// The kept answers of one topic.
#[derive(Debug, Default)]
pub(super) struct Answers {
    standard: Option<Cached>,
    legacy: Option<Cached>,
}

impl Answers {
    fn of(&self, flavour: Flavour) -> Option<&Cached> {
        match flavour {
            Flavour::Standard => self.standard.as_ref(),
            Flavour::Legacy => self.legacy.as_ref(),
        }
    }

    fn of_mut(&mut self, flavour: Flavour) -> &mut Option<Cached> {
        match flavour {
            Flavour::Standard => &mut self.standard,
            Flavour::Legacy => &mut self.legacy,
        }
    }
}

impl RouteTable {
    /// The kept answer for a topic, if there is one that holds.
    #[must_use]
    pub fn prepared(&self, topic: &str, flavour: Flavour) -> Option<&[u8]> {
        let cached = self.topics.get(topic)?.answers.as_ref()?.of(flavour)?;
        (cached.epoch == self.epoch).then_some(&cached.body[..])
    }

    /// The answer for a topic, built if there is none that holds; `None` when there is no route.
    pub fn answer(
        &mut self,
        topic: &str,
        flavour: Flavour,
        order_conf: Option<&str>,
    ) -> Option<Bytes> {
        let kept = self
            .topics
            .get(topic)?
            .answers
            .as_ref()
            .and_then(|kept| kept.of(flavour));
        if let Some(cached) = kept.filter(|cached| cached.epoch == self.epoch) {
            return Some(cached.body.clone());
        }
        let route = self.route(topic, order_conf)?;
        let body = Bytes::from(match flavour {
            Flavour::Standard => route.to_json(),
            Flavour::Legacy => route.to_json_legacy(),
        });
        let answers = self.topics.get_mut(topic)?.answers.get_or_insert_default();
        *answers.of_mut(flavour) = Some(Cached {
            epoch: self.epoch,
            body: body.clone(),
        });
        Some(body)
    }

    /// A topic's route; `None` when no broker has it.
    #[must_use]
    pub fn route(&self, name: &str, order_conf: Option<&str>) -> Option<TopicRouteData> {
        let topic = self.topics.get(name)?;
        let may_act = self.policy.support_acting_master
            && !name.starts_with(system::SYNC_MEMBER_TOPIC_PREFIX);
        let mut route = TopicRouteData {
            order_topic_conf: order_conf.map(str::to_owned),
            topic_queue_mapping_by_broker: self.mappings.get(name).cloned(),
            ..TopicRouteData::default()
        };
        for entry in &topic.entries {
            let Some(group) = self.groups.get(&entry.broker) else {
                continue;
            };
            route.queue_datas.push(queue_data(entry));
            let mut data = broker_data(entry.broker.as_str(), group);
            let writable = entry.queues.perm & PERM_WRITE != 0;
            if may_act && group.acting_master && !group.has_master() && !writable {
                act_as_master(&mut data.broker_addrs);
            }
            route.broker_datas.push(data);
            for member in group
                .members
                .values()
                .filter(|one| !one.filter_servers.is_empty())
            {
                let servers = member.filter_servers.clone();
                route
                    .filter_server_table
                    .insert(member.addr.clone(), servers);
            }
        }
        (!route.broker_datas.is_empty()).then_some(route)
    }

    /// A topic's route for a client in a zone: groups of that zone, and groups without a master
    /// wherever they are.
    #[must_use]
    pub fn route_in_zone(
        &self,
        topic: &str,
        zone: &str,
        order_conf: Option<&str>,
    ) -> Option<TopicRouteData> {
        let mut route = self.route(topic, order_conf)?;
        let (kept, removed): (Vec<_>, Vec<_>) = route.broker_datas.into_iter().partition(|data| {
            let same_zone = data
                .zone_name
                .as_deref()
                .is_some_and(|name| equal_ignoring_case(name, zone));
            same_zone || !data.broker_addrs.contains_key(&0)
        });
        let names: HashSet<&str> = removed
            .iter()
            .map(|data| data.broker_name.as_str())
            .collect();
        route
            .queue_datas
            .retain(|queues| !names.contains(queues.broker_name.as_str()));
        for addr in removed.iter().flat_map(|data| data.broker_addrs.values()) {
            route.filter_server_table.remove(addr);
        }
        route.broker_datas = kept;
        Some(route)
    }

    /// All clusters and groups.
    #[must_use]
    pub fn cluster_info(&self) -> ClusterInfo {
        let broker_addr_table = self
            .groups
            .iter()
            .map(|(name, group)| (name.to_string(), broker_data(name.as_str(), group)))
            .collect();
        let cluster_addr_table = self
            .clusters
            .iter()
            .map(|(name, brokers)| {
                let brokers: BTreeSet<String> = brokers.iter().map(ToString::to_string).collect();
                (name.to_string(), brokers)
            })
            .collect();
        ClusterInfo {
            broker_addr_table,
            cluster_addr_table,
        }
    }

    /// The kept answer about clusters, if there is one that holds.
    #[must_use]
    pub fn prepared_clusters(&self) -> Option<Bytes> {
        let cached = self.cluster_answer.as_ref()?;
        (cached.epoch == self.epoch).then(|| cached.body.clone())
    }

    /// The answer about clusters, kept like those about topics.
    pub fn cluster_answer(&mut self) -> Bytes {
        if let Some(body) = self.prepared_clusters() {
            return body;
        }
        let body = Bytes::from(self.cluster_info().to_json());
        self.cluster_answer = Some(Cached {
            epoch: self.epoch,
            body: body.clone(),
        });
        body
    }
}

/// Zone names are compared as Java's `equalsIgnoreCase` does, near enough: by lower-case text.
fn equal_ignoring_case(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}

fn act_as_master(addresses: &mut BTreeMap<i64, String>) {
    if let Some((_, addr)) = addresses.pop_first() {
        addresses.insert(MASTER_ID.get() as i64, addr);
    }
}

fn queue_data(entry: &Entry) -> QueueData {
    QueueData {
        broker_name: entry.broker.to_string(),
        perm: entry.queues.perm,
        read_queue_nums: entry.queues.read_queues,
        topic_sys_flag: entry.queues.sys_flag,
        write_queue_nums: entry.queues.write_queues,
    }
}

fn broker_data(name: &str, group: &Group) -> BrokerData {
    let addresses = group
        .members
        .iter()
        .map(|(id, one)| (id.get() as i64, one.addr.clone()));
    BrokerData {
        broker_addrs: addresses.collect(),
        broker_name: name.to_owned(),
        cluster: group.cluster.to_string(),
        enable_acting_master: group.acting_master,
        zone_name: group.zone.clone(),
    }
}
