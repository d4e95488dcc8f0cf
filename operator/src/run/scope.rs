//! One namespace, or all of them: what is watched there and kept in memory.
//!
//! **Invariant:** every object that the operator makes is known here before anything is decided, so
//! that deciding asks the API server nothing. Watches that break (dropped, 410, 429, 500) begin
//! again by themselves with growing waits. An object that does not parse is kept as such and stops
//! nobody.

use super::metrics::Metrics;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use rmq_operator_api::keys::LABEL_CLUSTER;
use rmq_operator_api::{BrokerGroup, ConsumerGroup, Operation, RocketMQCluster, Topic};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::build::Kind;
use crate::build::labels::MANAGED_SELECTOR;

/// Looks that may wait to be begun; when full, the watch that brings more waits.
const QUEUE_MAX: usize = 1024;

/// An object of ours that may not parse.
pub(crate) type Guarded<K> = DeserializeGuard<K>;

/// Names of objects that are to be looked at.
pub(crate) type Queue<K> = mpsc::Receiver<ObjectRef<Guarded<K>>>;
type Sender<K> = mpsc::Sender<ObjectRef<Guarded<K>>>;

/// What is to be looked at, by kind.
pub(crate) struct Queues {
    pub(crate) clusters: Queue<RocketMQCluster>,
    pub(crate) topics: Queue<Topic>,
    pub(crate) consumer_groups: Queue<ConsumerGroup>,
    pub(crate) operations: Queue<Operation>,
}

/// What is known of a scope.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) clusters: Store<Guarded<RocketMQCluster>>,
    pub(crate) groups: Store<Guarded<BrokerGroup>>,
    pub(crate) topics: Store<Guarded<Topic>>,
    pub(crate) consumer_groups: Store<Guarded<ConsumerGroup>>,
    pub(crate) operations: Store<Guarded<Operation>>,
    pub(crate) accounts: Store<ServiceAccount>,
    pub(crate) services: Store<Service>,
    pub(crate) config_maps: Store<ConfigMap>,
    pub(crate) stateful_sets: Store<StatefulSet>,
    pub(crate) budgets: Store<PodDisruptionBudget>,
    pub(crate) policies: Store<NetworkPolicy>,
    pub(crate) pods: Store<Pod>,
    pub(crate) claims: Store<PersistentVolumeClaim>,
}

/// Begins watches.
pub(crate) struct Watches<'a> {
    pub(crate) client: Client,
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    pub(crate) tasks: &'a mut JoinSet<()>,
    pub(crate) metrics: Metrics,
}

impl Watches<'_> {
    /// Begins to watch everything of the scope.
    pub(crate) fn begin(&mut self) -> (Stores, Queues) {
        let (clusters, of_clusters) = mpsc::channel(QUEUE_MAX);
        let (topics, of_topics) = mpsc::channel(QUEUE_MAX);
        let (groups, of_groups) = mpsc::channel(QUEUE_MAX);
        let (operations, of_operations) = mpsc::channel(QUEUE_MAX);
        let stores = Stores {
            clusters: self.own(&clusters),
            groups: self.groups(&clusters),
            topics: self.own(&topics),
            consumer_groups: self.own(&groups),
            operations: self.own(&operations),
            accounts: self.made(&clusters),
            services: self.made(&clusters),
            config_maps: self.made(&clusters),
            stateful_sets: self.made(&clusters),
            budgets: self.made(&clusters),
            policies: self.made(&clusters),
            pods: self.made(&clusters),
            // Claims carry the labels of their template, which has none that may change.
            claims: self.labelled(LABEL_CLUSTER, &clusters),
        };
        let queues = Queues {
            clusters: of_clusters,
            topics: of_topics,
            consumer_groups: of_groups,
            operations: of_operations,
        };
        (stores, queues)
    }

    fn api<K: Watched>(&self) -> Api<K> {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// A kind of our own group; a change of an object brings a look at itself.
    fn own<K: Watched>(&mut self, queue: &Sender<K>) -> Store<Guarded<K>> {
        self.guarded(queue, |object: &Guarded<K>| {
            Some(ObjectRef::from_obj(object))
        })
    }

    /// Groups of brokers; a change of one brings a look at its cluster.
    fn groups(&mut self, queue: &Sender<RocketMQCluster>) -> Store<Guarded<BrokerGroup>> {
        self.guarded(queue, |group: &Guarded<BrokerGroup>| {
            let cluster = &group.0.as_ref().ok()?.spec.cluster;
            Some(ObjectRef::new(cluster).within(&group.namespace()?))
        })
    }

    fn guarded<K: Watched, T: Watched>(
        &mut self,
        queue: &Sender<T>,
        concerns: impl Fn(&Guarded<K>) -> Option<ObjectRef<Guarded<T>>> + Send + 'static,
    ) -> Store<Guarded<K>> {
        let api: Api<Guarded<K>> = match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let (store, writer) = reflector::store();
        let stream = watcher(api, watcher::Config::default())
            .default_backoff()
            .reflect(writer)
            .touched_objects();
        self.follow(stream, concerns, queue.clone());
        store
    }

    /// A kind that is made by us, or by Kubernetes for us.
    fn made<K: Watched>(&mut self, queue: &Sender<RocketMQCluster>) -> Store<K> {
        self.labelled(MANAGED_SELECTOR, queue)
    }

    fn labelled<K: Watched>(
        &mut self,
        selector: &str,
        queue: &Sender<RocketMQCluster>,
    ) -> Store<K> {
        let api: Api<K> = self.api();
        let (store, writer) = reflector::store();
        let stream = watcher(api, watcher::Config::default().labels(selector))
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear())
            .reflect(writer)
            .touched_objects();
        self.follow(stream, of_label, queue.clone());
        store
    }

    fn follow<K: Send + 'static, T: Watched>(
        &mut self,
        stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
        concerns: impl Fn(&K) -> Option<ObjectRef<Guarded<T>>> + Send + 'static,
        queue: Sender<T>,
    ) {
        let metrics = self.metrics.clone();
        self.tasks.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(seen) = stream.next().await {
                let concerned = match &seen {
                    Ok(object) => concerns(object),
                    Err(error) => {
                        tracing::warn!(%error, "a watch broke and begins again");
                        continue;
                    }
                };
                if let Some(concerned) = concerned
                    && queue.send(concerned).await.is_err()
                {
                    return;
                }
                let waiting = queue.max_capacity().saturating_sub(queue.capacity());
                metrics.queued(&T::kind(&()), waiting);
            }
        });
    }
}

/// Kinds that can be watched here.
pub(crate) trait Watched:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

fn of_label<K: Resource>(object: &K) -> Option<ObjectRef<Guarded<RocketMQCluster>>> {
    let cluster = object.labels().get(LABEL_CLUSTER)?;
    Some(ObjectRef::new(cluster).within(&object.namespace()?))
}

impl Stores {
    /// Waits until everything that exists is known.
    pub(crate) async fn ready(&self) {
        let waits = [
            wait(&self.clusters),
            wait(&self.groups),
            wait(&self.topics),
            wait(&self.consumer_groups),
            wait(&self.operations),
            wait(&self.accounts),
            wait(&self.services),
            wait(&self.config_maps),
            wait(&self.stateful_sets),
            wait(&self.budgets),
            wait(&self.policies),
            wait(&self.pods),
            wait(&self.claims),
        ];
        futures::future::join_all(waits).await;
    }

    /// An object as it was last seen.
    pub(crate) fn live(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        match kind {
            Kind::ServiceAccount => get(&self.accounts, namespace, name),
            Kind::Service => get(&self.services, namespace, name),
            Kind::ConfigMap => get(&self.config_maps, namespace, name),
            Kind::StatefulSet => get(&self.stateful_sets, namespace, name),
            Kind::PodDisruptionBudget => get(&self.budgets, namespace, name),
            Kind::NetworkPolicy => get(&self.policies, namespace, name),
            Kind::Pod => get(&self.pods, namespace, name),
            Kind::PersistentVolumeClaim => get(&self.claims, namespace, name),
            Kind::BrokerGroup => {
                let at = ObjectRef::new(name).within(namespace);
                let found = self.groups.get(&at)?;
                value(found.0.as_ref().ok()?)
            }
            Kind::RocketMQCluster => value(&self.cluster(namespace, name)?),
            Kind::Topic | Kind::ConsumerGroup | Kind::Operation => None,
        }
    }

    /// A cluster as it was last seen, if it parses.
    pub(crate) fn cluster(&self, namespace: &str, name: &str) -> Option<RocketMQCluster> {
        let at = ObjectRef::new(name).within(namespace);
        self.clusters.get(&at)?.0.as_ref().ok().cloned()
    }

    /// Names and UIDs of the objects of a kind that carry a cluster's label.
    pub(crate) fn of_cluster(&self, kind: Kind, namespace: &str, cluster: &str) -> Vec<Found> {
        match kind {
            Kind::ServiceAccount => found(&self.accounts, namespace, cluster),
            Kind::Service => found(&self.services, namespace, cluster),
            Kind::ConfigMap => found(&self.config_maps, namespace, cluster),
            Kind::StatefulSet => found(&self.stateful_sets, namespace, cluster),
            Kind::PodDisruptionBudget => found(&self.budgets, namespace, cluster),
            Kind::NetworkPolicy => found(&self.policies, namespace, cluster),
            Kind::Pod => found(&self.pods, namespace, cluster),
            Kind::PersistentVolumeClaim => found(&self.claims, namespace, cluster),
            Kind::BrokerGroup => found(&self.groups, namespace, cluster),
            // Made by users: it carries no label of ours.
            Kind::RocketMQCluster | Kind::Topic | Kind::ConsumerGroup | Kind::Operation => {
                Vec::new()
            }
        }
    }

    /// The objects of one store that carry a cluster's label.
    pub(crate) fn select<K>(store: &Store<K>, namespace: &str, cluster: &str) -> Vec<Arc<K>>
    where
        K: Resource<DynamicType = ()> + Clone + 'static,
    {
        store
            .state()
            .into_iter()
            .filter(|object| {
                object.meta().namespace.as_deref() == Some(namespace)
                    && object.labels().get(LABEL_CLUSTER).map(String::as_str) == Some(cluster)
            })
            .collect()
    }
}

/// An object by name and UID, and the UID of its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) owner: Option<String>,
    pub(crate) deleting: bool,
}

fn found<K>(store: &Store<K>, namespace: &str, cluster: &str) -> Vec<Found>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    Stores::select(store, namespace, cluster)
        .into_iter()
        .filter_map(|object| {
            let owners = object.owner_references();
            let owner = owners.iter().find(|owner| owner.controller == Some(true));
            Some(Found {
                name: object.name_any(),
                uid: object.uid()?,
                owner: owner.map(|owner| owner.uid.clone()),
                deleting: object.meta().deletion_timestamp.is_some(),
            })
        })
        .collect()
}

fn get<K>(store: &Store<K>, namespace: &str, name: &str) -> Option<Value>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + 'static,
{
    value(&*store.get(&ObjectRef::new(name).within(namespace))?)
}

fn value<K: Serialize>(object: &K) -> Option<Value> {
    serde_json::to_value(object).ok()
}

fn wait<K>(store: &Store<K>) -> futures::future::BoxFuture<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let store = store.clone();
    Box::pin(async move {
        // The writer lives as long as its watch, which ends only with the process.
        let _ = store.wait_until_ready().await;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::mock::{Server, pair};
    use serde_json::json;

    fn map(name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": "mq", "uid": name, "resourceVersion": "1",
                "labels": {LABEL_CLUSTER: "shop"}, "managedFields": [{"manager": "x"}],
            },
        })
    }

    fn list(items: &[Value]) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMapList",
            "metadata": {"resourceVersion": "5"}, "items": items,
        })
    }

    async fn listed(server: &mut Server, items: &[Value]) {
        let asked = server.answer(200, list(items)).await;
        assert!(asked.query.contains("labelSelector="), "{}", asked.query);
        assert!(!asked.query.contains("watch=true"), "{}", asked.query);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_begins_again_after_a_refused_list_and_after_410() {
        let (client, mut server) = pair();
        let (queue, mut looks) = mpsc::channel(8);
        let mut tasks = JoinSet::new();
        let store: Store<ConfigMap> = Watches {
            client,
            namespace: Some("mq".to_owned()),
            tasks: &mut tasks,
            metrics: Metrics::new().unwrap(),
        }
        .made(&queue);
        for (code, reason) in [(500, "InternalError"), (429, "TooManyRequests")] {
            server.refuse(code, reason).await;
        }
        listed(&mut server, &[map("a")]).await;
        let first = looks.recv().await.unwrap();
        assert_eq!(
            (first.name.as_str(), first.namespace.as_deref()),
            ("shop", Some("mq"))
        );
        let gone = json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old", "reason": "Expired", "code": 410,
        }});
        let asked = server.answer(200, gone).await;
        assert!(asked.query.contains("watch=true"), "{}", asked.query);
        listed(&mut server, &[map("b")]).await;
        looks.recv().await.unwrap();
        let names: Vec<_> = store.state().iter().map(|map| map.name_any()).collect();
        assert_eq!(names, ["b"]);
        assert!(store.state()[0].managed_fields().is_empty());
        tasks.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_does_not_parse_is_kept_and_stops_no_other() {
        let (client, mut server) = pair();
        let (queue, mut looks) = mpsc::channel(8);
        let mut tasks = JoinSet::new();
        let store: Store<Guarded<Topic>> = Watches {
            client,
            namespace: None,
            tasks: &mut tasks,
            metrics: Metrics::new().unwrap(),
        }
        .own(&queue);
        let topic = |name: &str, spec: Value| {
            json!({
                "apiVersion": "rocketmq.rs/v1alpha1", "kind": "Topic",
                "metadata": {"name": name, "namespace": "mq", "resourceVersion": "1"},
                "spec": spec,
            })
        };
        let items = [
            topic("bad", json!({"cluster": "c", "writeQueues": "many"})),
            topic("good", json!({"cluster": "c"})),
        ];
        let all = json!({
            "apiVersion": "rocketmq.rs/v1alpha1", "kind": "TopicList",
            "metadata": {"resourceVersion": "5"}, "items": items,
        });
        server.answer(200, all).await;
        let mut names = [
            looks.recv().await.unwrap().name,
            looks.recv().await.unwrap().name,
        ];
        names.sort();
        assert_eq!(names, ["bad", "good"]);
        let parsed = |name: &str| {
            let at = ObjectRef::new(name).within("mq");
            store.get(&at).unwrap().0.is_ok()
        };
        assert!(parsed("good") && !parsed("bad"));
        tasks.shutdown().await;
    }
}
