//! What a manifest asks and one computer does not give, in plain lines.
//!
//! **Invariant:** a field that has another value than its default and counts for nothing here is
//! named. Which fields count stands in [`HONOURED`], all others in the lists beside it; a test
//! compares the lists with the kind's definition, so that a new field needs a decision.

use super::{Note, Placement};
use rmq_operator_api::{RocketMQCluster, RocketMQClusterSpec};
use serde_json::Value;

/// Fields that are carried out, or whose own line below says how far.
#[cfg(test)]
const HONOURED: &[&str] = &[
    "version",
    "clusterName",
    "nameServer.replicas",
    "nameServer.externalRef",
    "nameServer.config",
    "brokers.groups",
    "brokers.namePrefix",
    "brokers.replicasPerGroup",
    "brokers.storage",
    "brokers.flush",
    "brokers.config",
    "brokers.groupOverrides",
    "controller",
    "proxy",
];

/// Fields about replicas, of which there are none here.
const OF_REPLICAS: &[&str] = &["brokers.replication", "brokers.readFromReplica"];

/// Fields about pods, volumes and other objects of Kubernetes.
const OF_KUBERNETES: &[&str] = &[
    "image",
    "nameServer.resources",
    "nameServer.podTemplate",
    "brokers.storage.class",
    "brokers.storage.retainPolicy",
    "brokers.storage.autoExpand",
    "brokers.placement",
    "brokers.resources",
    "brokers.podTemplate",
    "brokers.terminationGracePeriod",
    "listeners",
    "updateStrategy",
    "scaleIn",
    "pdb",
    "networkPolicy",
    "monitoring",
    "operation",
    "deletionPolicy",
];

/// Parts of an entry of `brokers.groupOverrides` that are about pods.
const OF_KUBERNETES_IN_OVERRIDES: &[&str] = &["resources", "zone"];

/// All lines, in the order of the manifest.
pub(super) fn of(cluster: &RocketMQCluster, placement: &Placement) -> Vec<Note> {
    let spec = &cluster.spec;
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(Note(text));
    if spec.version != placement.program_version {
        note(format!(
            "spec.version asks for {}; on this computer this program's own version runs, {}",
            spec.version, placement.program_version
        ));
    }
    if !spec.name_server.external_ref.is_empty() {
        note(format!(
            "spec.nameServer.externalRef: no NameServer is started; brokers register at {}",
            spec.name_server.external_ref.join(", ")
        ));
        if !spec.name_server.config.is_empty() {
            note("spec.nameServer.config counts for nothing beside externalRef".to_owned());
        }
    }
    if spec.brokers.replicas_per_group > 0 {
        note(format!(
            "spec.brokers.replicasPerGroup: {} asked; replicas are not supported on this computer \
             yet, each group runs its master alone",
            spec.brokers.replicas_per_group
        ));
    }
    sizes(cluster, placement, &mut note);
    if spec.controller.is_some() {
        note("spec.controller: not supported on this computer yet; none runs".to_owned());
    }
    if let Some(proxy) = &spec.proxy
        && proxy.replicas > 1
    {
        note(format!(
            "spec.proxy.replicas: {} asked; one runs on this computer",
            proxy.replicas
        ));
    }
    let left_out = changed(spec);
    if !left_out.is_empty() {
        note(format!(
            "only for Kubernetes, without effect on this computer: {}",
            left_out.join(", ")
        ));
    }
    notes
}

fn sizes(cluster: &RocketMQCluster, placement: &Placement, note: &mut impl FnMut(String)) {
    let brokers = &cluster.spec.brokers;
    let dir = placement.data_dir.display();
    if brokers.storage.size.to_string() != rmq_operator_api::defaults::STORAGE_SIZE {
        note(format!(
            "spec.brokers.storage.size: {} is not enforced on this computer; data grows in {dir}",
            brokers.storage.size,
        ));
    }
    for (index, given) in brokers.group_overrides.iter().enumerate() {
        let at = format!("spec.brokers.groupOverrides[{index}]");
        if let Some(size) = &given.storage_size {
            note(format!(
                "{at}.storageSize: {size} is not enforced on this computer; data grows in {dir}"
            ));
        }
        let beyond: Vec<String> = given
            .groups
            .iter()
            .filter(|group| **group >= brokers.groups)
            .map(ToString::to_string)
            .collect();
        if !beyond.is_empty() {
            note(format!(
                "{at}.groups: there is no group {}; spec.brokers.groups is {}",
                beyond.join(", "),
                brokers.groups
            ));
        }
    }
}

/// Fields without effect here that somebody has set.
fn changed(spec: &RocketMQClusterSpec) -> Vec<String> {
    let given = serde_json::to_value(spec).unwrap_or_default();
    let usual = usual();
    let fields = OF_KUBERNETES.iter().chain(OF_REPLICAS);
    let mut changed: Vec<String> = fields
        .filter(|path| find(&given, path) != find(&usual, path))
        .map(|path| format!("spec.{path}"))
        .collect();
    let overrides = find(&given, "brokers.groupOverrides").and_then(Value::as_array);
    for (index, given) in overrides.into_iter().flatten().enumerate() {
        let set = OF_KUBERNETES_IN_OVERRIDES
            .iter()
            .filter(|field| given.get(field).is_some());
        changed.extend(set.map(|field| format!("spec.brokers.groupOverrides[{index}].{field}")));
    }
    changed
}

/// A manifest that says nothing it need not say.
fn usual() -> Value {
    let least = serde_json::json!({ "version": "0.1.0" });
    let spec: Result<RocketMQClusterSpec, _> = serde_json::from_value(least);
    spec.and_then(serde_json::to_value).unwrap_or_default()
}

/// `a.b` of an object; an absent member and one that is null are the same.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path
        .split('.')
        .try_fold(object, |at, member| at.get(member));
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::crd;

    #[test]
    fn every_field_of_the_kind_is_in_exactly_one_list() {
        let definition = serde_json::to_value(crd::rocketmq_cluster()).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let spec = schema["properties"]["spec"]["properties"]
            .as_object()
            .unwrap();
        let listed = |path: &str| {
            let lists = [HONOURED, OF_REPLICAS, OF_KUBERNETES];
            lists
                .iter()
                .flat_map(|list| list.iter())
                .filter(|p| **p == path)
                .count()
        };
        for (field, schema) in spec {
            if listed(field) == 1 {
                continue;
            }
            let inner = schema["properties"].as_object();
            for inner in inner.expect(field).keys() {
                let path = format!("{field}.{inner}");
                assert_eq!(listed(&path), 1, "{path} must be in one list of notes.rs");
            }
        }
    }

    #[test]
    fn the_least_manifest_has_nothing_to_say() {
        let spec: RocketMQClusterSpec = serde_json::from_value(usual()).unwrap();
        assert_eq!(changed(&spec), Vec::<String>::new());
    }
}
