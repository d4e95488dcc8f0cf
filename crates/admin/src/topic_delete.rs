//! Deleting a topic: first on the brokers, then at the NameServers.
//!
//! **Invariant:** a route is taken away only when every broker has let go of the topic. A broker
//! that keeps it would bring the route back with its next registration.

use rmq_protocol::{
    header::{DeleteTopicFromNameServer, KvKey, TopicHeader},
    remoting::request_code,
};
use rmq_types::{ClusterName, TopicName};

use crate::{
    AdminClient, Answers, AskError, Scope, Target, TargetError, answers::ask_all, client::request,
    order::ORDER_NAMESPACE,
};

/// What one NameServer answered.
#[derive(Debug)]
pub struct NameServerAnswer {
    /// Its address.
    pub addr: String,
    /// What came of it.
    pub outcome: Result<(), AskError>,
}

/// What deleting a topic came to.
#[derive(Debug)]
pub struct TopicDeletion {
    /// Each broker.
    pub brokers: Answers<()>,
    /// Each NameServer; empty if a broker failed, for then the route was left alone.
    pub name_servers: Vec<NameServerAnswer>,
}

impl TopicDeletion {
    /// True if the topic is gone everywhere.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.brokers.is_complete()
            && self
                .name_servers
                .iter()
                .all(|answer| answer.outcome.is_ok())
    }
}

impl AdminClient {
    /// Deletes a topic with its messages on the masters of one cluster, or wherever its route says
    /// it is, then its route (codes 215 and 216).
    pub async fn delete_topic(
        &self,
        topic: &TopicName,
        cluster: Option<&ClusterName>,
    ) -> Result<TopicDeletion, TargetError> {
        let targets = match cluster {
            Some(name) => self.targets(&Scope::Cluster(name.clone())).await?,
            None => self.route(topic).await?.masters(),
        };
        Ok(self.delete_topic_at(topic, targets, cluster).await)
    }

    pub(crate) async fn delete_topic_at(
        &self,
        topic: &TopicName,
        targets: Vec<Target>,
        cluster: Option<&ClusterName>,
    ) -> TopicDeletion {
        let shared = (self.clone(), topic.clone());
        let brokers = ask_all(targets, |_, addr| {
            let (admin, topic) = shared.clone();
            async move {
                let header = TopicHeader {
                    topic: topic.as_str().into(),
                };
                let delete = request(request_code::DELETE_TOPIC_IN_BROKER, &header);
                admin.ask(&addr, delete).await.map(|_| ())
            }
        })
        .await;
        if !brokers.is_complete() {
            return TopicDeletion {
                brokers,
                name_servers: Vec::new(),
            };
        }
        let header = DeleteTopicFromNameServer {
            topic: topic.as_str().into(),
            cluster_name: cluster.map(|name| name.as_str().into()),
        };
        let delete = request(request_code::DELETE_TOPIC_IN_NAMESRV, &header);
        let name_servers = self.ask_every_name_server(&delete).await;
        let order = KvKey {
            namespace: ORDER_NAMESPACE.into(),
            key: topic.as_str().into(),
        };
        let forget = request(request_code::DELETE_KV_CONFIG, &order);
        for answer in self.ask_every_name_server(&forget).await {
            if let Err(error) = answer.outcome {
                tracing::debug!(%topic, %error, "order configuration not removed");
            }
        }
        TopicDeletion {
            brokers,
            name_servers,
        }
    }
}
