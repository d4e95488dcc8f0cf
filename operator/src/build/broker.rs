//! One broker group: a StatefulSet of pods that are all alike; who is master is not written here.
//!
//! **Invariant:** claims are called `data-<pod>` and are kept when the StatefulSet goes or shrinks.
//! Each pod has its own file in the group's ConfigMap, `<pod>.conf`, named in its arguments by the
//! downward API: no shell, no script, and a pod cannot start with another's identity.

use super::config::{Keys, render};
use super::labels::Component;
use super::pod::{CONFIG_DIR, DATA, DATA_DIR, Pod};
use super::{Build, GroupFacts, HTTP_PORT, Kind, Object, overlay};
use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodTemplateSpec,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use rmq_operator_api::AdvertisedFrom;
use std::collections::BTreeMap;

/// Folder of the store on its volume, beside what file systems put there themselves.
const STORE: &str = "store";

pub(super) fn config_map(
    build: &Build<'_>,
    index: i32,
    owner: &OwnerReference,
    facts: &GroupFacts,
) -> Object {
    let data = pods(build, index, facts)
        .into_iter()
        .map(|(pod, keys)| (format!("{pod}.conf"), render(&keys)))
        .collect();
    let labels = build.labels(Component::Broker, Some(index));
    Object::typed(
        Kind::ConfigMap,
        &ConfigMap {
            metadata: build.metadata(build.names().group(index), labels, owner),
            data: Some(data),
            ..ConfigMap::default()
        },
    )
}

fn pods(build: &Build<'_>, index: i32, facts: &GroupFacts) -> BTreeMap<String, Keys> {
    (0..build.cluster.spec.members_per_group())
        .map(|ordinal| {
            let pod = build.names().broker_pod(index, ordinal);
            let keys = build.broker_keys(index, facts.addresses.get(&pod));
            (pod, keys)
        })
        .collect()
}

pub(super) fn stateful_set(
    build: &Build<'_>,
    index: i32,
    owner: &OwnerReference,
    facts: &GroupFacts,
) -> Object {
    let names = build.names();
    let spec = &build.cluster.spec;
    let labels = build.labels(Component::Broker, Some(index));
    let replicas = if spec.operation.hibernated {
        0
    } else {
        spec.members_per_group()
    };
    let keep = || Some("Retain".to_owned());
    Object::typed(
        Kind::StatefulSet,
        &StatefulSet {
            metadata: build.metadata(names.group(index), labels, owner),
            spec: Some(StatefulSetSpec {
                persistent_volume_claim_retention_policy: Some(
                    StatefulSetPersistentVolumeClaimRetentionPolicy {
                        when_deleted: keep(),
                        when_scaled: keep(),
                    },
                ),
                pod_management_policy: Some("Parallel".to_owned()),
                replicas: Some(replicas),
                revision_history_limit: Some(3),
                selector: LabelSelector {
                    match_labels: Some(build.selector(Component::Broker, Some(index))),
                    ..LabelSelector::default()
                },
                service_name: Some(names.group_headless(index)),
                template: template(build, index, facts),
                update_strategy: Some(StatefulSetUpdateStrategy {
                    type_: Some("OnDelete".to_owned()),
                    ..StatefulSetUpdateStrategy::default()
                }),
                volume_claim_templates: Some(vec![claim(build, index)]),
                ..StatefulSetSpec::default()
            }),
            ..StatefulSet::default()
        },
    )
}

/// The claim of one pod. Its labels are immutable with the template, so none that changes is here.
fn claim(build: &Build<'_>, index: i32) -> PersistentVolumeClaim {
    let brokers = &build.cluster.spec.brokers;
    let size = brokers.storage_size(index).to_string();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(DATA.to_owned()),
            labels: Some(build.selector(Component::Broker, Some(index))),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(size))])),
                ..VolumeResourceRequirements::default()
            }),
            storage_class_name: brokers.storage.class.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

fn template(build: &Build<'_>, index: i32, facts: &GroupFacts) -> PodTemplateSpec {
    let names = build.names();
    let brokers = &build.cluster.spec.brokers;
    let port = build.broker_port(index);
    let overlay = brokers.pod_template.as_ref();
    let files: Vec<Keys> = pods(build, index, facts).into_values().collect();
    let pod = Pod {
        component: Component::Broker,
        group: Some(index),
        args: arguments(build, port),
        ports: vec![
            ("remoting", port),
            ("fast-remoting", port - 2),
            ("replication", port + 1),
        ],
        requests: [("cpu", "100m"), ("memory", "256Mi")],
        resources: brokers.resources_of(index).cloned(),
        config_map: names.group(index),
        account: names.brokers(),
        grace_seconds: i64::try_from(brokers.termination_grace_period.get().as_secs())
            .unwrap_or(i64::MAX),
    };
    let identity = overlay.and_then(|overlay| overlay.identity);
    let mut spec = build.pod_spec(&pod, identity.as_ref());
    if let Some(zone) = brokers.group_override(index).and_then(|o| o.zone.clone()) {
        spec.node_selector
            .get_or_insert_default()
            .insert("topology.kubernetes.io/zone".to_owned(), zone);
    }
    let mut template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(build.labels(Component::Broker, Some(index))),
            annotations: Some(build.pod_annotations(build.broker_hash(&files))),
            ..ObjectMeta::default()
        }),
        spec: Some(spec),
    };
    if let Some(overlay) = overlay {
        overlay::apply(overlay, &mut template);
    }
    template
}

fn arguments(build: &Build<'_>, port: i32) -> Vec<String> {
    let mut args = [
        "broker",
        "-c",
        &format!("{CONFIG_DIR}/$(POD_NAME).conf"),
        "--data",
        &format!("{DATA_DIR}/{STORE}"),
        "--listen",
        &format!("0.0.0.0:{port}"),
        "--http",
        &format!("0.0.0.0:{HTTP_PORT}"),
        "--log-format",
        "json",
    ]
    .map(str::to_owned)
    .to_vec();
    let address = match build.advertised_from() {
        AdvertisedFrom::PodIP => Some("$(POD_IP)"),
        AdvertisedFrom::HostIP => Some("$(HOST_IP)"),
        AdvertisedFrom::Service | AdvertisedFrom::Annotation | AdvertisedFrom::Template => None,
    };
    if let Some(address) = address {
        args.extend(["--advertise".to_owned(), address.to_owned()]);
    }
    args
}

impl Build<'_> {
    /// The address that clients of a pod are told when the manifest gives it as a template.
    #[must_use]
    pub fn advertised_template(&self, index: i32, pod: &str) -> Option<String> {
        let advertised = self.listener()?.advertised.as_ref()?;
        let names = self.names();
        let text = advertised
            .template
            .as_ref()?
            .replace("{group}", &index.to_string())
            .replace("{pod}", pod)
            .replace("{cluster}", names.cluster())
            .replace("{namespace}", names.namespace());
        Some(text)
    }

    /// Where the address that clients are told comes from.
    #[must_use]
    pub fn advertised_from(&self) -> AdvertisedFrom {
        self.listener().map_or(AdvertisedFrom::Service, |listener| {
            listener.advertised_from()
        })
    }
}
