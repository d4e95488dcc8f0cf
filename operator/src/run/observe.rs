//! One look at a cluster: from what the watches know, and from what its parts say.
//!
//! **Invariant:** reads only. What the watches hold costs no request; brokers and NameServers are
//! asked at once, each with a deadline, so that a look ends in bounded time whatever is broken.

use super::ask::{self, BrokerToAsk, NameServerToAsk};
use super::context::key;
use super::objects::Parts;
use super::scope::Stores;
use crate::observe::{
    Answer, ClusterSeen, GroupSeen, NameServersSeen, Observed, PodSeen, SetSeen, VolumeSeen,
};
use crate::plan::Component;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use rmq_operator_api::ByteQuantity;
use rmq_operator_api::keys::{FINALIZER_CLUSTER, LABEL_COMPONENT, LABEL_GROUP};
use rmq_types::{Clock as _, SystemClock, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Longest wait for what the API server is asked on the way.
const DEADLINE: Duration = Duration::from_secs(5);
/// A pod that is not ready for this long is asked about: Events tell of disks that do not come.
const ASK_EVENTS_AFTER_MILLIS: i64 = 20_000;

/// Objects of one cluster that are looked at more than once.
struct Sight {
    now: Timestamp,
    pods: Vec<Arc<Pod>>,
    sets: Vec<Arc<StatefulSet>>,
    claims: Vec<Arc<PersistentVolumeClaim>>,
}

/// Looks at a cluster.
pub(crate) async fn look(parts: Parts<'_>) -> Observed {
    let (context, cluster) = (parts.context, parts.cluster);
    let (namespace, name) = (parts.namespace(), cluster.name_any());
    let stores = &context.stores;
    let sight = Sight {
        now: SystemClock.now(),
        pods: Stores::select(&stores.pods, namespace, &name),
        sets: Stores::select(&stores.stateful_sets, namespace, &name),
        claims: Stores::select(&stores.claims, namespace, &name),
    };
    let mut groups = BTreeMap::new();
    for index in indexes(parts, &sight) {
        groups.insert(index, group(parts, &sight, index).await);
    }
    let addresses = parts.build().names().name_server_addresses();
    let admin = context.admin.of(&key(cluster), &addresses);
    let name_servers = addresses
        .into_iter()
        .map(|name| NameServerToAsk {
            address: parts.name_server_address(&name),
            name,
        })
        .collect();
    let asked = to_ask(parts, &sight, &groups);
    let (views, said) = tokio::join!(
        ask::name_servers(&admin, name_servers),
        ask::brokers(&admin, cluster.cluster_name(), asked)
    );
    for answer in said {
        if let Some(group) = groups.get_mut(&answer.group) {
            let mut broker = answer.broker;
            if let (Answer::Known(seen), Some(pod)) = (&mut broker, group.pod(answer.ordinal)) {
                seen.rejected = context.rejected(&pod.uid);
            }
            group.brokers.insert(answer.ordinal, broker);
            if answer.backlog.is_some() {
                group.backlog = answer.backlog;
            }
        }
    }
    Observed {
        fresh: true,
        cluster: ClusterSeen {
            uid: cluster.uid().unwrap_or_default(),
            has_finalizer: cluster.finalizers().iter().any(|f| f == FINALIZER_CLUSTER),
            objects: parts.state(Component::Shared, false),
        },
        name_servers: NameServersSeen {
            objects: parts.state(Component::NameServers, false),
            set: set(&sight, &parts.build().names().name_server()),
            pods: pods(parts, &sight, None).await,
            views,
        },
        groups,
    }
}

/// Groups that shall be there, and groups of which anything is left.
fn indexes(parts: Parts<'_>, sight: &Sight) -> BTreeSet<i32> {
    let (namespace, name) = (parts.namespace(), parts.cluster.name_any());
    let mut found: BTreeSet<i32> = (0..parts.cluster.spec.brokers.groups).collect();
    let of_groups = Stores::select(&parts.context.stores.groups, namespace, &name);
    found.extend(
        of_groups
            .iter()
            .filter_map(|group| Some(group.0.as_ref().ok()?.spec.index)),
    );
    let label = |labels: &BTreeMap<String, String>| labels.get(LABEL_GROUP)?.parse::<i32>().ok();
    found.extend(sight.sets.iter().filter_map(|set| label(set.labels())));
    found.extend(sight.pods.iter().filter_map(|pod| label(pod.labels())));
    let services = Stores::select(&parts.context.stores.services, namespace, &name);
    found.extend(
        services
            .iter()
            .filter_map(|service| label(service.labels())),
    );
    found
}

async fn group(parts: Parts<'_>, sight: &Sight, index: i32) -> GroupSeen {
    let names = parts.build().names();
    let object = parts.group(index);
    let status = object.as_ref().and_then(|group| group.status.clone());
    let status = status.unwrap_or_default();
    let drained = index >= parts.cluster.spec.brokers.groups;
    let label = index.to_string();
    let is_of = |labels: &BTreeMap<String, String>| labels.get(LABEL_GROUP) == Some(&label);
    let services = Stores::select(
        &parts.context.stores.services,
        parts.namespace(),
        names.cluster(),
    );
    let name = names.group(index);
    let set = set(sight, &name);
    let mut volumes = BTreeMap::new();
    for claim in sight.claims.iter().filter(|claim| is_of(claim.labels())) {
        if let Some(ordinal) = ordinal_of(&claim.name_any()) {
            let expandable = expandable(parts, claim, index).await;
            volumes.insert(ordinal, VolumeSeen::of(claim, expandable));
        }
    }
    GroupSeen {
        broker_name: names.broker_name(index),
        objects: parts.state(Component::Group(index), drained),
        has_objects: object.is_some()
            || set.is_some()
            || services.iter().any(|service| is_of(service.labels())),
        set,
        pods: pods(parts, sight, Some(index)).await,
        volumes,
        brokers: BTreeMap::new(),
        backlog: None,
        sync: None,
        opened: status.opened,
        managed_keys: status.managed_keys.into_iter().collect(),
        drain_phase: status.drain.as_ref().map(|drain| drain.phase),
        drain_since: status
            .drain
            .map(|drain| Timestamp::from_millis(drain.since.0.as_millisecond())),
    }
}

fn set(sight: &Sight, name: &str) -> Option<SetSeen> {
    let set = sight.sets.iter().find(|set| set.name_any() == name)?;
    let (spec, status) = (set.spec.as_ref(), set.status.as_ref());
    // Until its controller has seen the newest template, the revision is that of an older one.
    let current = status.is_some_and(|s| s.observed_generation >= set.metadata.generation);
    let volume = spec
        .and_then(|spec| spec.volume_claim_templates.as_ref()?.first())
        .and_then(|claim| claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref())
        .and_then(|requests| requests.get("storage"))
        .and_then(|size| ByteQuantity::parse(&size.0).ok());
    Some(SetSeen {
        uid: set.uid().unwrap_or_default(),
        replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        update_revision: status
            .filter(|_| current)
            .and_then(|status| status.update_revision.clone()),
        volume_bytes: volume.map_or(0, |size| size.bytes()),
        deleting: set.metadata.deletion_timestamp.is_some(),
    })
}

async fn pods(parts: Parts<'_>, sight: &Sight, group: Option<i32>) -> Vec<PodSeen> {
    let label = group.map(|index| index.to_string());
    let component = if group.is_some() { "broker" } else { "namesrv" };
    let mut seen = Vec::new();
    for pod in &sight.pods {
        let labels = pod.labels();
        if labels.get(LABEL_GROUP) != label.as_ref()
            || labels.get(LABEL_COMPONENT).map(String::as_str) != Some(component)
        {
            continue;
        }
        let first = PodSeen::of(pod, &[], sight.now);
        let waits = !first.ready
            && first.stuck.is_none()
            && !first.deleting
            && sight.now.since(first.created_at) > ASK_EVENTS_AFTER_MILLIS;
        seen.push(if waits {
            let warnings = warnings(parts, pod).await;
            PodSeen::of(pod, &warnings, sight.now)
        } else {
            first
        });
    }
    seen.sort_by_key(|pod| pod.ordinal);
    seen
}

/// Reasons and messages of a pod's Warning events; none if they cannot be had.
async fn warnings(parts: Parts<'_>, pod: &Pod) -> Vec<(String, String)> {
    let api: Api<Event> = Api::namespaced(parts.context.client.clone(), parts.namespace());
    let uid = pod.uid().unwrap_or_default();
    let params = ListParams::default()
        .fields(&format!("involvedObject.uid={uid},type=Warning"))
        .limit(50);
    match timeout(DEADLINE, api.list(&params)).await {
        Ok(Ok(events)) => events
            .items
            .into_iter()
            .filter_map(|event| Some((event.reason?, event.message.unwrap_or_default())))
            .collect(),
        Ok(Err(error)) => {
            tracing::debug!(pod = pod.name_any(), %error, "no events");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Whether the class of a disk that should grow can grow it; asked only then.
async fn expandable(parts: Parts<'_>, claim: &PersistentVolumeClaim, index: i32) -> Option<bool> {
    let seen = VolumeSeen::of(claim, None);
    let wanted = parts.cluster.spec.brokers.storage_size(index).bytes();
    if seen.requested >= wanted {
        return None;
    }
    let class = claim.spec.as_ref()?.storage_class_name.as_ref()?;
    let api: Api<StorageClass> = Api::all(parts.context.client.clone());
    match timeout(DEADLINE, api.get(class)).await {
        Ok(Ok(class)) => Some(class.allow_volume_expansion.unwrap_or(false)),
        _ => None,
    }
}

/// Every broker pod, with how it can be asked.
fn to_ask(parts: Parts<'_>, sight: &Sight, groups: &BTreeMap<i32, GroupSeen>) -> Vec<BrokerToAsk> {
    let build = parts.build();
    let mut asked = Vec::new();
    for (index, group) in groups {
        let port = build.broker_port(*index);
        let facts = parts.facts(*index).unwrap_or_default();
        let drained = *index >= parts.cluster.spec.brokers.groups;
        for pod in &group.pods {
            let found = sight.pods.iter().find(|found| found.name_any() == pod.name);
            let address = found.map_or_else(
                || Err("the pod is gone".to_owned()),
                |found| pod_address(found, port),
            );
            asked.push(BrokerToAsk {
                group: *index,
                ordinal: pod.ordinal,
                address,
                intended: facts
                    .addresses
                    .get(&pod.name)
                    .map(|ip| socket_text(ip, port)),
                broker_name: group.broker_name.clone(),
                backlog: drained.then_some(parts.cluster.spec.scale_in.policy),
            });
        }
    }
    asked
}

/// Where a pod itself listens, whatever Services say.
pub(crate) fn pod_address(pod: &Pod, port: i32) -> Result<String, String> {
    let status = pod.status.as_ref();
    let ip = status
        .and_then(|status| status.pod_ip.as_ref())
        .ok_or("the pod has no address yet")?;
    let running = status
        .and_then(|status| status.container_statuses.as_ref())
        .is_some_and(|all| {
            all.iter().any(|one| {
                one.state
                    .as_ref()
                    .is_some_and(|state| state.running.is_some())
            })
        });
    if running {
        Ok(socket_text(ip, port))
    } else {
        Err("its container does not run".to_owned())
    }
}

fn socket_text(ip: &str, port: i32) -> String {
    if ip.contains(':') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

fn ordinal_of(name: &str) -> Option<i32> {
    name.rsplit('-').next()?.parse().ok()
}
