//! A topic's route as the gateway needs it: what clients are told, and where a request goes.
//!
//! **Invariant:** only masters take requests; queue numbers of a route are bounded by
//! [`limits::QUEUES_MAX`], whatever the NameServer says.

use std::collections::BTreeMap;

use rmq_protocol::body::{QueueData, TopicRouteData};
use rmq_types::{java_hash, limits};

use crate::proto::v2::{Assignment, Broker, Endpoints, MessageQueue, Permission, Resource};
use crate::rules::kind::TopicKind;

const PERM_READ: i32 = 4;
const PERM_WRITE: i32 = 2;

/// A queue that takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) broker: &'a str,
    pub(crate) addr: &'a str,
    pub(crate) queue: i32,
}

/// Queues of one broker that a client may write to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writable {
    broker: String,
    addr: String,
    queues: u32,
}

/// Where a topic is.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    data: TopicRouteData,
    /// Address of each group's master.
    masters: BTreeMap<String, String>,
    /// By name of the broker.
    writable: Vec<Writable>,
    queues: u32,
}

impl Route {
    /// From what a NameServer says.
    pub(crate) fn new(data: TopicRouteData) -> Self {
        let masters: BTreeMap<String, String> = data
            .broker_datas
            .iter()
            .filter_map(|broker| {
                let addr = broker.broker_addrs.get(&0)?;
                Some((broker.broker_name.clone(), addr.clone()))
            })
            .collect();
        let mut writable: Vec<_> = data
            .queue_datas
            .iter()
            .filter(|queues| queues.perm & PERM_WRITE != 0)
            .filter_map(|queues| {
                Some(Writable {
                    broker: queues.broker_name.clone(),
                    addr: masters.get(&queues.broker_name)?.clone(),
                    queues: bounded(queues.write_queue_nums),
                })
            })
            .filter(|one| one.queues > 0)
            .collect();
        writable.sort_by(|a, b| a.broker.cmp(&b.broker));
        let queues = writable
            .iter()
            .fold(0_u32, |sum, one| sum.saturating_add(one.queues));
        Self {
            data,
            masters,
            writable,
            queues,
        }
    }

    /// The address of a broker's master.
    pub(crate) fn master(&self, broker: &str) -> Option<&str> {
        self.masters.get(broker).map(String::as_str)
    }

    /// Addresses of all masters, by name.
    pub(crate) fn masters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.masters
            .iter()
            .map(|(name, addr)| (name.as_str(), addr.as_str()))
    }

    /// The queue of a message group: Guava's consistent hash of Java's string hash, so that Java
    /// gateways beside this one choose the same.
    pub(crate) fn of_group(&self, group: &str) -> Option<Place<'_>> {
        let queues = i32::try_from(self.queues).ok().filter(|count| *count > 0)?;
        let chosen = consistent_hash(i64::from(java_hash(group)), queues);
        self.nth(chosen.unsigned_abs())
    }

    /// The `turn`-th queue in turn, of brokers other than `avoided` if there are any: neighbours in
    /// turn are queues of different brokers.
    pub(crate) fn in_turn(&self, turn: usize, avoided: Option<&str>) -> Option<Place<'_>> {
        let is_open = |one: &&Writable| avoided != Some(one.broker.as_str());
        let open = self.writable.iter().filter(is_open).count();
        let brokers: Vec<&Writable> = if open > 0 {
            self.writable.iter().filter(is_open).collect()
        } else {
            self.writable.iter().collect()
        };
        let one = brokers.get(turn.checked_rem(brokers.len())?)?;
        let queue = (turn / brokers.len()) % one.queues as usize;
        Some(Place {
            broker: &one.broker,
            addr: &one.addr,
            queue: i32::try_from(queue).ok()?,
        })
    }

    fn nth(&self, mut index: u32) -> Option<Place<'_>> {
        for one in &self.writable {
            if index < one.queues {
                return Some(Place {
                    broker: &one.broker,
                    addr: &one.addr,
                    queue: i32::try_from(index).ok()?,
                });
            }
            index -= one.queues;
        }
        None
    }

    /// A broker that can be read and has a master: the one of this name, or else another.
    pub(crate) fn reader(&self, broker: &str) -> Option<(&str, &str)> {
        let readable = || {
            self.data
                .queue_datas
                .iter()
                .filter(|queues| queues.perm & PERM_READ != 0 && queues.read_queue_nums > 0)
                .filter_map(|queues| {
                    let name = queues.broker_name.as_str();
                    Some((name, self.master(name)?))
                })
        };
        readable()
            .find(|(name, _)| *name == broker)
            .or_else(|| readable().next())
    }

    /// The queues that clients are told. `endpoints` are those at which the client reached us: every
    /// broker is behind the gateway.
    pub(crate) fn message_queues(
        &self,
        topic: &Resource,
        kind: TopicKind,
        endpoints: &Endpoints,
    ) -> Vec<MessageQueue> {
        let mut told = Vec::new();
        for queues in &self.data.queue_datas {
            let found = self
                .data
                .broker_datas
                .iter()
                .find(|broker| broker.broker_name == queues.broker_name);
            let Some(found) = found else { continue };
            for id in found.broker_addrs.keys() {
                let broker = Broker {
                    name: found.broker_name.clone(),
                    id: i32::try_from(*id).unwrap_or(i32::MAX),
                    endpoints: Some(endpoints.clone()),
                };
                for (id, permission) in permissions(queues) {
                    told.push(MessageQueue {
                        topic: Some(topic.clone()),
                        id,
                        permission: permission.into(),
                        broker: Some(broker.clone()),
                        accept_message_types: kind.accepted(),
                    });
                }
            }
        }
        told
    }

    /// What a consumer receives from: each broker once, or each queue for ordered groups.
    pub(crate) fn assignments(
        &self,
        topic: &Resource,
        ordered: bool,
        endpoints: &Endpoints,
    ) -> Vec<Assignment> {
        let mut assigned = Vec::new();
        for queues in &self.data.queue_datas {
            let name = &queues.broker_name;
            let readable = queues.perm & PERM_READ != 0 && queues.read_queue_nums > 0;
            if !readable || self.master(name).is_none() {
                continue;
            }
            let ids = if ordered {
                0..bounded(queues.read_queue_nums).cast_signed()
            } else {
                -1..0
            };
            assigned.extend(ids.map(|id| Assignment {
                message_queue: Some(MessageQueue {
                    topic: Some(topic.clone()),
                    id,
                    permission: Permission::Read.into(),
                    broker: Some(Broker {
                        name: name.clone(),
                        id: 0,
                        endpoints: Some(endpoints.clone()),
                    }),
                    accept_message_types: Vec::new(),
                }),
            }));
        }
        assigned
    }
}

fn bounded(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0).min(limits::QUEUES_MAX)
}

/// Each queue of a broker with what it allows; one without permission stands for a closed topic.
fn permissions(queues: &QueueData) -> Vec<(i32, Permission)> {
    let read = if queues.perm & PERM_READ == 0 {
        0
    } else {
        bounded(queues.read_queue_nums)
    };
    let write = if queues.perm & PERM_WRITE == 0 {
        0
    } else {
        bounded(queues.write_queue_nums)
    };
    if read == 0 && write == 0 {
        return vec![(0, Permission::None)];
    }
    (0..read.max(write))
        .map(|id| {
            let permission = if id < read.min(write) {
                Permission::ReadWrite
            } else if id < read {
                Permission::Read
            } else {
                Permission::Write
            };
            (id.cast_signed(), permission)
        })
        .collect()
}

/// `Hashing.consistentHash` of Guava.
fn consistent_hash(input: i64, buckets: i32) -> i32 {
    let mut state = input;
    let mut candidate = 0_i32;
    loop {
        state = state
            .wrapping_mul(2_862_933_555_777_941_757)
            .wrapping_add(1);
        let step = (state.cast_unsigned() >> 33) as i32;
        let random = (f64::from(step) + 1.0) / f64::from(1_u32 << 31);
        // A quotient beyond 32 bits becomes their greatest number, as in Java.
        let next = (f64::from(candidate + 1) / random) as i32;
        if !(0..buckets).contains(&next) {
            return candidate;
        }
        candidate = next;
    }
}

#[cfg(test)]
mod tests;
