//! A topic's route: which broker has which queues, and at which address.
//!
//! **Invariant:** queue numbers taken from a route are bounded by [`limits::QUEUES_MAX`], whatever
//! the NameServer says. Keeps nothing: a route is asked for when it is needed.

use std::time::Duration;

use rmq_protocol::{
    body::{BrokerData, QueueData, TopicRouteData},
    header::GetRoute,
    remoting::{request_code, response_code},
};
use rmq_types::{TopicName, limits};
use tokio::time::{Instant, sleep};

use crate::{
    AdminClient, NameServerError, Target,
    client::{body, refused, request},
};

/// Time between two looks for a route that is to appear.
const ROUTE_POLL: Duration = Duration::from_millis(50);
const PERM_WRITE: i32 = 2;
const PERM_READ: i32 = 4;

/// One queue of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    /// The broker group.
    pub broker: String,
    /// The queue's number there.
    pub id: u32,
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.broker, self.id)
    }
}

/// Where a topic is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRoute {
    /// The topic.
    pub topic: TopicName,
    /// The NameServer that said so.
    pub name_server: String,
    /// What it said.
    pub data: TopicRouteData,
}

impl TopicRoute {
    /// The masters of the groups that have the topic, by name.
    #[must_use]
    pub fn masters(&self) -> Vec<Target> {
        let has = |data: &&BrokerData| {
            self.data
                .queue_datas
                .iter()
                .any(|queues| queues.broker_name == data.broker_name)
        };
        let mut masters: Vec<_> = self
            .data
            .broker_datas
            .iter()
            .filter(has)
            .map(Target::master)
            .collect();
        masters.sort_by(|a, b| a.broker.cmp(&b.broker));
        masters
    }

    /// The queues that take messages and whose group has a master, by broker and number.
    #[must_use]
    pub fn write_queues(&self) -> Vec<Queue> {
        self.queues(
            PERM_WRITE,
            |data| data.write_queue_nums,
            |broker| self.master(broker),
        )
    }

    /// The queues that can be read, by broker and number.
    #[must_use]
    pub fn read_queues(&self) -> Vec<Queue> {
        self.queues(
            PERM_READ,
            |data| data.read_queue_nums,
            |broker| self.reader(broker),
        )
    }

    fn queues<'a>(
        &'a self,
        perm: i32,
        count: impl Fn(&QueueData) -> i32,
        addr: impl Fn(&'a str) -> Option<&'a str>,
    ) -> Vec<Queue> {
        let mut queues = Vec::new();
        for data in self
            .data
            .queue_datas
            .iter()
            .filter(|data| data.perm & perm != 0)
        {
            if addr(&data.broker_name).is_some() {
                let count = u32::try_from(count(data))
                    .unwrap_or(0)
                    .min(limits::QUEUES_MAX);
                let queue = |id| Queue {
                    broker: data.broker_name.clone(),
                    id,
                };
                queues.extend((0..count).map(queue));
            }
        }
        queues.sort();
        queues
    }

    /// Whether a group has queues of the topic.
    #[must_use]
    pub fn has(&self, broker: &str) -> bool {
        self.data
            .queue_datas
            .iter()
            .any(|queues| queues.broker_name == broker)
    }

    /// The address of a group's master.
    #[must_use]
    pub fn master(&self, broker: &str) -> Option<&str> {
        self.group(broker)?.broker_addrs.get(&0).map(String::as_str)
    }

    /// Where a group's queues are read: at the master, or at the first replica while there is none.
    #[must_use]
    pub fn reader(&self, broker: &str) -> Option<&str> {
        self.group(broker)?
            .broker_addrs
            .values()
            .next()
            .map(String::as_str)
    }

    fn group(&self, broker: &str) -> Option<&BrokerData> {
        self.data
            .broker_datas
            .iter()
            .find(|data| data.broker_name == broker)
    }
}

/// `broker (0-7)` for every broker of a list of queues.
pub(crate) fn summary(queues: &[Queue]) -> Vec<String> {
    queues
        .chunk_by(|a, b| a.broker == b.broker)
        .filter_map(|of_one| {
            let (first, last) = (of_one.first()?, of_one.last()?);
            Some(format!("{} ({}-{})", first.broker, first.id, last.id))
        })
        .collect()
}

impl AdminClient {
    /// Where a topic is (code 105).
    pub async fn route(&self, topic: &TopicName) -> Result<TopicRoute, NameServerError> {
        let header = GetRoute {
            topic: topic.as_str().into(),
            accept_standard_json_only: Some(true),
        };
        let code = request_code::GET_ROUTEINFO_BY_TOPIC;
        let (addr, answer) = self.ask_name_servers(&request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => {
                let data = body(&addr, code, &answer, TopicRouteData::from_json)
                    .map_err(NameServerError::Refused)?;
                Ok(TopicRoute {
                    topic: topic.clone(),
                    name_server: addr,
                    data,
                })
            }
            response_code::TOPIC_NOT_EXIST => Err(NameServerError::NoSuchTopic {
                topic: topic.clone(),
                addr,
            }),
            _ => Err(NameServerError::Refused(refused(&addr, code, answer))),
        }
    }

    /// Waits until the route of a topic holds all these broker groups; false if it did not within
    /// `within`. Brokers register a new topic by themselves, a moment after they created it.
    pub async fn await_route(
        &self,
        topic: &TopicName,
        brokers: &[String],
        within: Duration,
    ) -> Result<bool, NameServerError> {
        let deadline = Instant::now() + within;
        loop {
            match self.route(topic).await {
                Ok(route) if brokers.iter().all(|broker| route.has(broker)) => return Ok(true),
                Ok(_) | Err(NameServerError::NoSuchTopic { .. }) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() + ROUTE_POLL > deadline {
                return Ok(false);
            }
            sleep(ROUTE_POLL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> TopicRoute {
        let text = br#"{"brokerDatas":[
            {"brokerAddrs":{"0":"h:1","1":"h:2"},"brokerName":"b","cluster":"c"},
            {"brokerAddrs":{"1":"h:4"},"brokerName":"a","cluster":"c"}],
            "filterServerTable":{},"queueDatas":[
            {"brokerName":"b","perm":6,"readQueueNums":3,"writeQueueNums":2},
            {"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1},
            {"brokerName":"gone","perm":6,"readQueueNums":1,"writeQueueNums":1}]}"#;
        TopicRoute {
            topic: TopicName::parse("T").unwrap(),
            name_server: "ns".into(),
            data: TopicRouteData::from_json(text).unwrap(),
        }
    }

    #[test]
    fn messages_go_to_masters_only_but_are_read_at_a_replica_as_well() {
        let route = route();
        assert_eq!(summary(&route.write_queues()), ["b (0-1)"]);
        assert_eq!(summary(&route.read_queues()), ["a (0-0)", "b (0-2)"]);
        assert_eq!(route.reader("a"), Some("h:4"));
        assert_eq!(route.reader("b"), Some("h:1"));
        let masters: Vec<_> = route
            .masters()
            .into_iter()
            .map(|target| (target.broker, target.addr))
            .collect();
        assert_eq!(
            masters,
            [
                (Some("a".into()), None),
                (Some("b".into()), Some("h:1".into()))
            ]
        );
    }

    #[test]
    fn permissions_and_absurd_counts_are_respected() {
        let mut route = route();
        route.data.queue_datas[0].perm = PERM_READ;
        route.data.queue_datas[1].read_queue_nums = i32::MAX;
        assert!(route.write_queues().is_empty());
        assert_eq!(route.read_queues().len(), limits::QUEUES_MAX as usize + 3);
        route.data.queue_datas[1].read_queue_nums = -1;
        assert_eq!(route.read_queues().len(), 3);
    }
}
