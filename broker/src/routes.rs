//! Queues of a topic on all brokers, asked from the NameServers and kept for a few seconds.
//!
//! **Invariant:** a NameServer that does not answer never makes a topic look smaller: the last answer
//! stays in use, and without one there is none. With no NameServer configured this broker is alone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmq_net::Client;
use rmq_protocol::{
    body::{MessageQueue, TopicRouteData},
    header,
    remoting::{Command, request_code, response_code},
};
use rmq_types::Timestamp;

use crate::{
    core::{Core, lock},
    metadata::PERM_READ,
    register::parse_addresses,
};

/// How long an answer counts.
const FRESH_MILLIS: i64 = 5_000;
/// How long an answer is kept for when no NameServer can be reached.
const KEPT_MILLIS: i64 = 600_000;
/// Most topics kept.
const TOPICS_MAX: usize = 10_000;
/// How long one NameServer may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// The queues of a topic that consumers share, sorted.
pub(crate) type Queues = Arc<Vec<MessageQueue>>;

#[derive(Debug)]
struct Kept {
    at: Timestamp,
    /// `None`: NameServers know no such topic.
    queues: Option<Queues>,
}

/// The answers kept.
#[derive(Debug)]
pub(crate) struct Routes {
    client: Client,
    kept: Mutex<HashMap<String, Kept>>,
}

impl Routes {
    /// Nothing known yet; `client` reaches the NameServers.
    #[must_use]
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            kept: Mutex::default(),
        }
    }

    /// Readable queues of a topic on all brokers; `None`: unknown. Waits for a peer: not on an io
    /// thread.
    pub(crate) fn queues(&self, core: &Core, topic: &str) -> Option<Queues> {
        let servers = parse_addresses(&core.settings.get().namesrv_addr).unwrap_or_default();
        if servers.is_empty() {
            return own_queues(core, topic);
        }
        let now = core.now();
        if let Some(kept) = lock(&self.kept).get(topic)
            && (0..FRESH_MILLIS).contains(&now.since(kept.at))
        {
            return kept.queues.clone();
        }
        let asked = core.workers.handle().block_on(self.ask(&servers, topic));
        let mut kept = lock(&self.kept);
        let Some(queues) = asked else {
            let last = kept
                .get(topic)
                .filter(|last| now.since(last.at) < KEPT_MILLIS);
            return last.and_then(|last| last.queues.clone());
        };
        if kept.len() >= TOPICS_MAX {
            kept.retain(|_, entry| now.since(entry.at) < FRESH_MILLIS);
        }
        if kept.len() < TOPICS_MAX {
            let entry = Kept {
                at: now,
                queues: queues.clone(),
            };
            kept.insert(topic.to_owned(), entry);
        }
        queues
    }

    /// Outer `None`: nobody answered.
    async fn ask(&self, servers: &[String], topic: &str) -> Option<Option<Queues>> {
        for server in servers {
            let request = Command::request(request_code::GET_ROUTEINFO_BY_TOPIC).with_header(
                &header::GetRoute {
                    topic: topic.into(),
                    accept_standard_json_only: Some(true),
                },
            );
            match self.client.call(server, request, ASK_TIMEOUT).await {
                Ok(answer) if answer.code == response_code::TOPIC_NOT_EXIST => return Some(None),
                Ok(answer) if answer.code == response_code::SUCCESS => {
                    match TopicRouteData::from_json(&answer.body) {
                        Ok(route) => return Some(Some(Arc::new(readable(topic, &route)))),
                        Err(error) => tracing::warn!(server, topic, %error, "route unreadable"),
                    }
                }
                Ok(answer) => tracing::warn!(server, topic, code = answer.code, "route refused"),
                Err(error) => tracing::warn!(server, topic, %error, "route not asked"),
            }
        }
        None
    }
}

fn own_queues(core: &Core, topic: &str) -> Option<Queues> {
    let config = core.topics.get(topic)?;
    let readable = config.perm & PERM_READ != 0;
    let count = if readable { config.read_queue_nums } else { 0 };
    Some(Arc::new(
        numbered(topic, core.identity.name.as_str(), count).collect(),
    ))
}

fn numbered(topic: &str, broker: &str, count: i32) -> impl Iterator<Item = MessageQueue> {
    (0..count).map(move |queue_id| MessageQueue {
        broker_name: broker.to_owned(),
        queue_id,
        topic: topic.to_owned(),
    })
}

fn readable(topic: &str, route: &TopicRouteData) -> Vec<MessageQueue> {
    let most = rmq_types::limits::QUEUES_MAX as i32;
    let mut queues: Vec<MessageQueue> = route
        .queue_datas
        .iter()
        .filter(|data| data.perm & PERM_READ != 0)
        .flat_map(|data| numbered(topic, &data.broker_name, data.read_queue_nums.min(most)))
        .collect();
    queues.sort();
    queues
}

#[cfg(test)]
mod tests {
    use rmq_protocol::body::QueueData;

    use super::*;

    #[test]
    fn queues_of_all_brokers_that_may_be_read_are_listed_in_order() {
        let data = |broker: &str, perm, count| QueueData {
            broker_name: broker.to_owned(),
            perm,
            read_queue_nums: count,
            ..QueueData::default()
        };
        let route = TopicRouteData {
            queue_datas: vec![data("b", 6, 1), data("a", 4, 2), data("c", 2, 4)],
            ..TopicRouteData::default()
        };
        let found: Vec<_> = readable("t", &route)
            .into_iter()
            .map(|mq| (mq.broker_name, mq.queue_id))
            .collect();
        assert_eq!(found, [("a".into(), 0), ("a".into(), 1), ("b".into(), 0)]);
    }
}
