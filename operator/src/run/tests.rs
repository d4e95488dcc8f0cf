//! Whole passes over a cluster against a server that keeps what it is sent: what is written, that
//! nothing is written at rest, and that an operator which ends after any write comes to the same end.
//!
//! The server knows nothing of Kubernetes: it merges what is applied and gives Services addresses.
//! Decisions are tested where they are made, in `plan` and `guard`.

use super::Operator;
use super::context::Context;
use super::control::Reconcile as _;
use super::metrics::Metrics;
use super::options::OperatorOptions;
use super::scope::{Guarded, Stores};
use crate::apply::mock::{self, Asked, Server};
use crate::build::{KeyTable, Kind, Site};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;
use kube::{Client, Resource};
use rmq_operator_api::{RocketMQCluster, parse_manifest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nobody answers there, and nothing leaves this computer to find out.
const MANIFEST: &str = "
apiVersion: rocketmq.rs/v1alpha1
kind: RocketMQCluster
metadata: {name: shop}
spec:
  version: 0.1.0
  nameServer: {externalRef: ['127.0.0.1:1']}
  brokers: {groups: 2, replicasPerGroup: 0}
";
/// Passes after which a cluster is at rest, at the latest.
const PASSES_MAX: usize = 12;

/// What the server keeps, by path.
#[derive(Clone, Default)]
struct World {
    objects: BTreeMap<String, Value>,
    serial: u64,
}

impl World {
    fn new() -> Self {
        let mut cluster = parse_manifest(MANIFEST).unwrap();
        cluster.metadata.namespace = Some("mq".to_owned());
        cluster.metadata.generation = Some(1);
        let mut world = Self::default();
        let mut value = serde_json::to_value(cluster).unwrap();
        value["kind"] = json!("RocketMQCluster");
        value["apiVersion"] = json!("rocketmq.rs/v1alpha1");
        world.put(&path(Kind::RocketMQCluster, "shop"), value);
        world
    }

    /// As an API server keeps an object: with a UID, and an address if it is a Service.
    fn put(&mut self, path: &str, value: Value) -> Value {
        self.serial += 1;
        let object = self
            .objects
            .entry(path.to_owned())
            .or_insert_with(|| json!({}));
        merge(object, value);
        let metadata = &mut object["metadata"];
        if metadata.get("uid").is_none() {
            metadata["uid"] = json!(path);
        }
        metadata["namespace"] = json!("mq");
        metadata["resourceVersion"] = json!(self.serial.to_string());
        if path.contains("/services/") && object["spec"].get("clusterIP").is_none() {
            object["spec"]["clusterIP"] = json!(format!("10.0.0.{}", self.serial % 250));
        }
        object.clone()
    }

    fn list(&self, path: &str) -> Value {
        let prefix = format!("{path}/");
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(path, _)| path.starts_with(&prefix))
            .map(|(_, object)| object.clone())
            .collect();
        json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"}, "items": items,
        })
    }

    /// Answers one request as an API server would; says whether it was a write.
    async fn serve(&mut self, server: &mut Server) -> (bool, Asked) {
        let asked = server.take().await;
        let (request, answer) = asked;
        let found = self.objects.get(request.path.trim_end_matches("/status"));
        let (code, body) = match request.method.as_str() {
            "GET" if request.query.contains("watch=true") => return (false, request),
            "GET" if found.is_none() && is_list(&request.path) => (200, self.list(&request.path)),
            "GET" => match found {
                Some(found) => (200, found.clone()),
                None => (
                    404,
                    json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
                ),
            },
            "PATCH" => {
                let path = request.path.trim_end_matches("/status").to_owned();
                let mut body = request.body.clone();
                if let Some(status) = body.get("status").cloned() {
                    // The whole status belongs to whoever applies it.
                    if let Some(kept) = self.objects.get_mut(&path) {
                        kept["status"] = status;
                    }
                    body = json!({"metadata": {}});
                }
                (200, self.put(&path, body))
            }
            _ => (201, request.body.clone()),
        };
        answer.send(code, &body);
        (request.method != "GET", request)
    }
}

/// Whether a path is that of a whole kind: `…/namespaces/mq/<kind>`.
fn is_list(path: &str) -> bool {
    path.split("/namespaces/mq/")
        .nth(1)
        .is_some_and(|rest| !rest.contains('/'))
}

fn merge(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                if key == "resourceVersion" {
                    continue;
                }
                merge(old.entry(key).or_insert(Value::Null), value);
            }
        }
        (old, new) => *old = new,
    }
}

fn path(kind: Kind, name: &str) -> String {
    let resource = kind.resource();
    let root = if resource.group.is_empty() {
        "/api".to_owned()
    } else {
        format!("/apis/{}", resource.group)
    };
    let (version, plural) = (&resource.version, &resource.plural);
    format!("{root}/{version}/namespaces/mq/{plural}/{name}")
}

/// What a watch of the world would know now.
fn seen<K>(world: &World, kind: Kind) -> Store<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    let prefix = path(kind, "");
    for (path, object) in &world.objects {
        if path.starts_with(&prefix) {
            let object: K = serde_json::from_value(object.clone()).unwrap();
            writer.apply_watcher_event(&Event::InitApply(object));
        }
    }
    writer.apply_watcher_event(&Event::InitDone);
    store
}

fn stores(world: &World) -> Stores {
    Stores {
        clusters: seen::<Guarded<RocketMQCluster>>(world, Kind::RocketMQCluster),
        groups: seen(world, Kind::BrokerGroup),
        topics: seen(world, Kind::Topic),
        consumer_groups: seen(world, Kind::ConsumerGroup),
        operations: seen(world, Kind::Operation),
        accounts: seen(world, Kind::ServiceAccount),
        services: seen(world, Kind::Service),
        config_maps: seen(world, Kind::ConfigMap),
        stateful_sets: seen(world, Kind::StatefulSet),
        budgets: seen(world, Kind::PodDisruptionBudget),
        policies: seen(world, Kind::NetworkPolicy),
        pods: seen(world, Kind::Pod),
        claims: seen(world, Kind::PersistentVolumeClaim),
    }
}

fn options() -> OperatorOptions {
    OperatorOptions {
        site: Site {
            image_repository: "rocketmq".to_owned(),
            operator_namespace: "system".to_owned(),
            keys: KeyTable::new(BTreeMap::new(), BTreeMap::new(), BTreeMap::new()),
        },
        namespaces: Vec::new(),
        identity: "test".to_owned(),
        lease: None,
        version: "0.1.0".to_owned(),
        concurrency: 1,
    }
}

fn context(client: Client, world: &World) -> Context {
    let metrics = Metrics::new().unwrap();
    Context::new(client, stores(world), metrics, Arc::new(options()))
}

/// One pass of an operator that was started just now, which ends at the latest after `writes_max`
/// writes; the paths that it wrote.
async fn pass(world: &mut World, writes_max: usize) -> Vec<String> {
    let (client, mut server) = mock::pair();
    let context = context(client, world);
    let cluster = context.stores.cluster("mq", "shop").unwrap();
    let mut writes = Vec::new();
    let mut running = std::pin::pin!(cluster.reconcile(&context));
    loop {
        tokio::select! {
            biased;
            result = &mut running => {
                result.unwrap();
                return writes;
            }
            (written, asked) = world.serve(&mut server) => {
                if written {
                    writes.push(asked.path);
                }
                if writes.len() >= writes_max {
                    return writes;
                }
            }
        }
    }
}

/// Passes until one writes nothing; all that was written.
async fn to_rest(world: &mut World) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..PASSES_MAX {
        let writes = pass(world, usize::MAX).await;
        if writes.is_empty() {
            return all;
        }
        all.extend(writes);
    }
    panic!("still written after {PASSES_MAX} passes: {all:?}");
}

/// Everything but times and serial numbers.
fn essence(world: &World) -> BTreeMap<String, Value> {
    let mut objects = world.objects.clone();
    for object in objects.values_mut() {
        object["metadata"]["resourceVersion"] = Value::Null;
        object.as_object_mut().unwrap().remove("status");
        if object["kind"] == "Service" || object["kind"] == "ConfigMap" {
            object["spec"] = Value::Null;
            object["data"] = Value::Null;
            object["metadata"]["annotations"] = Value::Null;
        }
        if object["kind"] == "StatefulSet" {
            object["spec"]["template"]["metadata"]["annotations"] = Value::Null;
            object["metadata"]["annotations"] = Value::Null;
        }
    }
    objects
}

#[tokio::test]
async fn a_cluster_is_made_in_a_few_passes_and_at_rest_nothing_is_written() {
    let mut world = World::new();
    let writes = to_rest(&mut world).await;
    let made: BTreeSet<_> = world.objects.keys().cloned().collect();
    for (kind, name) in [
        (Kind::ServiceAccount, "shop-broker"),
        (Kind::NetworkPolicy, "shop-broker"),
        (Kind::BrokerGroup, "shop-broker-0"),
        (Kind::Service, "shop-broker-1-0"),
        (Kind::ConfigMap, "shop-broker-1"),
        (Kind::StatefulSet, "shop-broker-1"),
        (Kind::PodDisruptionBudget, "shop-broker-1"),
    ] {
        assert!(
            made.contains(&path(kind, name)),
            "{kind} {name} in {made:?}"
        );
    }
    let config = &world.objects[&path(Kind::ConfigMap, "shop-broker-0")]["data"];
    assert!(
        config["shop-broker-0-0.conf"]
            .as_str()
            .unwrap()
            .contains("brokerIP1=10.0.0.")
    );
    let sets = path(Kind::StatefulSet, "shop-broker-0");
    assert_eq!(writes.iter().filter(|path| **path == sets).count(), 1);
    let cluster = &world.objects[&path(Kind::RocketMQCluster, "shop")];
    assert_eq!(
        cluster["metadata"]["finalizers"],
        json!(["rocketmq.rs/cluster-cleanup"])
    );
    assert_eq!(cluster["status"]["observedGeneration"], 1);
    assert_eq!(pass(&mut world, usize::MAX).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_operator_that_ends_after_any_write_comes_to_the_same_end() {
    let mut undisturbed = World::new();
    let writes = to_rest(&mut undisturbed).await.len();
    let end = essence(&undisturbed);
    for ends_after in 1..=writes {
        let mut world = World::new();
        let mut left = ends_after;
        for _ in 0..PASSES_MAX {
            let done = pass(&mut world, left).await.len();
            left = left.saturating_sub(done);
            if left == 0 {
                break;
            }
        }
        to_rest(&mut world).await;
        assert_eq!(
            essence(&world),
            end,
            "after {ends_after} of {writes} writes"
        );
    }
}

#[tokio::test]
async fn what_somebody_else_changes_or_takes_away_is_put_right() {
    let mut world = World::new();
    to_rest(&mut world).await;
    let end = essence(&world);
    let service = path(Kind::Service, "shop-g0-master");
    let budget = path(Kind::PodDisruptionBudget, "shop-broker-0");
    world.objects.remove(&budget);
    if let Some(object) = world.objects.get_mut(&service) {
        object["metadata"]["labels"]["app.kubernetes.io/version"] = json!("9");
    }
    let writes = to_rest(&mut world).await;
    assert!(
        writes.contains(&service) && writes.contains(&budget),
        "{writes:?}"
    );
    assert!(
        writes.iter().any(|path| path.contains("/events")),
        "{writes:?}"
    );
    assert_eq!(essence(&world), end);
}

#[tokio::test]
async fn a_manifest_with_a_fault_changes_nothing_but_the_status() {
    let mut world = World::new();
    let at = path(Kind::RocketMQCluster, "shop");
    if let Some(cluster) = world.objects.get_mut(&at) {
        cluster["spec"]["brokers"]["replication"] = json!({"minInSync": 5});
    }
    let writes = to_rest(&mut world).await;
    assert_eq!(world.objects.len(), 1, "{writes:?}");
    assert_eq!(world.objects[&at]["status"]["phase"], "Invalid");
}

#[tokio::test]
async fn a_paused_cluster_gets_a_status_and_nothing_else() {
    let mut world = World::new();
    let at = path(Kind::RocketMQCluster, "shop");
    if let Some(cluster) = world.objects.get_mut(&at) {
        cluster["spec"]["operation"] = json!({"paused": true});
    }
    to_rest(&mut world).await;
    assert_eq!(world.objects.len(), 1);
    assert_eq!(world.objects[&at]["status"]["phase"], "Paused");
}

#[tokio::test]
async fn every_loop_begins_once_all_objects_are_known_and_ends_when_asked() {
    let mut world = World::new();
    let topic = path(Kind::Topic, "orders");
    let object = json!({
        "apiVersion": "rocketmq.rs/v1alpha1", "kind": "Topic",
        "metadata": {"name": "orders"}, "spec": {"cluster": "elsewhere"},
    });
    world.put(&topic, object);
    let (client, mut server) = mock::pair();
    let options = OperatorOptions {
        namespaces: vec!["mq".to_owned()],
        ..options()
    };
    let operator = Operator::new(client, options).unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut running = std::pin::pin!(operator.run(stopped));
    let mut missing = BTreeSet::from([
        format!("{topic}/status"),
        format!("{}/status", path(Kind::RocketMQCluster, "shop")),
    ]);
    while !missing.is_empty() {
        tokio::select! {
            ended = &mut running => panic!("{ended:?}"),
            (_, asked) = world.serve(&mut server) => {
                missing.remove(&asked.path);
            }
        }
    }
    stop.send(true).unwrap();
    loop {
        tokio::select! {
            ended = &mut running => return ended.unwrap(),
            _ = world.serve(&mut server) => {}
        }
    }
}
