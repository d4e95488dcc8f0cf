//! The NameServers: one StatefulSet whose pods have names that brokers and clients know.
//!
//! **Invariant:** a pod is replaced by the operator only (`OnDelete`), one at a time.

use super::config::render;
use super::labels::Component;
use super::pod::{CONFIG_DIR, DATA, DATA_DIR, Pod};
use super::{Build, HTTP_PORT, Kind, NAME_SERVER_PORT, Object, overlay};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{ConfigMap, EmptyDirVolumeSource, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use rmq_operator_api::keys::{ANNOTATION_CONFIG_HASH, ANNOTATION_RESTART};
use std::collections::BTreeMap;

const FILE: &str = "namesrv.conf";
const GRACE_SECONDS: i64 = 30;

pub(super) fn config_map(build: &Build<'_>, owner: &OwnerReference) -> Object {
    let text = render(&build.cluster.spec.name_server.config);
    let labels = build.labels(Component::NameServer, None);
    Object::typed(
        Kind::ConfigMap,
        &ConfigMap {
            metadata: build.metadata(build.names().name_server(), labels, owner),
            data: Some(BTreeMap::from([(FILE.to_owned(), text)])),
            ..ConfigMap::default()
        },
    )
}

pub(super) fn stateful_set(build: &Build<'_>, owner: &OwnerReference) -> Object {
    let names = build.names();
    let spec = &build.cluster.spec;
    let labels = build.labels(Component::NameServer, None);
    let replicas = if spec.operation.hibernated {
        0
    } else {
        spec.own_name_servers()
    };
    Object::typed(
        Kind::StatefulSet,
        &StatefulSet {
            metadata: build.metadata(names.name_server(), labels, owner),
            spec: Some(StatefulSetSpec {
                pod_management_policy: Some("Parallel".to_owned()),
                replicas: Some(replicas),
                revision_history_limit: Some(3),
                selector: LabelSelector {
                    match_labels: Some(build.selector(Component::NameServer, None)),
                    ..LabelSelector::default()
                },
                service_name: Some(names.name_server_headless()),
                template: template(build),
                update_strategy: Some(StatefulSetUpdateStrategy {
                    type_: Some("OnDelete".to_owned()),
                    ..StatefulSetUpdateStrategy::default()
                }),
                ..StatefulSetSpec::default()
            }),
            ..StatefulSet::default()
        },
    )
}

fn template(build: &Build<'_>) -> PodTemplateSpec {
    let names = build.names();
    let name_server = &build.cluster.spec.name_server;
    let overlay = name_server.pod_template.as_ref();
    let pod = Pod {
        component: Component::NameServer,
        group: None,
        args: [
            "namesrv",
            "-c",
            &format!("{CONFIG_DIR}/{FILE}"),
            "--data",
            DATA_DIR,
            "--listen",
            &format!("0.0.0.0:{NAME_SERVER_PORT}"),
            "--http",
            &format!("0.0.0.0:{HTTP_PORT}"),
            "--log-format",
            "json",
        ]
        .map(str::to_owned)
        .to_vec(),
        ports: vec![("remoting", NAME_SERVER_PORT)],
        requests: [("cpu", "25m"), ("memory", "64Mi")],
        resources: name_server.resources.clone(),
        config_map: names.name_server(),
        account: names.name_server(),
        grace_seconds: GRACE_SECONDS,
    };
    let identity = overlay.and_then(|overlay| overlay.identity);
    let mut spec = build.pod_spec(&pod, identity.as_ref());
    spec.volumes.get_or_insert_default().push(Volume {
        name: DATA.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(Quantity("64Mi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    });
    let mut template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(build.labels(Component::NameServer, None)),
            annotations: Some(build.pod_annotations(build.name_server_hash())),
            ..ObjectMeta::default()
        }),
        spec: Some(spec),
    };
    if let Some(overlay) = overlay {
        overlay::apply(overlay, &mut template);
    }
    template
}

impl Build<'_> {
    /// Annotations of a pod: with each change of one of them the pod is replaced.
    pub(super) fn pod_annotations(&self, config_hash: String) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::from([(ANNOTATION_CONFIG_HASH.to_owned(), config_hash)]);
        let asked = self.cluster.metadata.annotations.as_ref();
        if let Some(token) = asked.and_then(|annotations| annotations.get(ANNOTATION_RESTART)) {
            annotations.insert(ANNOTATION_RESTART.to_owned(), token.clone());
        }
        annotations
    }
}
