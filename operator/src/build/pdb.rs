//! How many pods may be evicted at a time.
//!
//! **Invariant:** a pod is in at most one budget: the API server refuses to evict a pod of two.

use super::labels::Component;
use super::{Build, Kind, Object};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(super) fn name_server(build: &Build<'_>, owner: &OwnerReference) -> Option<Object> {
    let name = build.names().name_server();
    budget(build, (Component::NameServer, None), name, owner)
}

pub(super) fn broker(build: &Build<'_>, index: i32, owner: &OwnerReference) -> Option<Object> {
    let name = build.names().group(index);
    budget(build, (Component::Broker, Some(index)), name, owner)
}

fn budget(
    build: &Build<'_>,
    (component, group): (Component, Option<i32>),
    name: String,
    owner: &OwnerReference,
) -> Option<Object> {
    build.cluster.spec.pdb.enabled.then(|| {
        Object::typed(
            Kind::PodDisruptionBudget,
            &PodDisruptionBudget {
                metadata: build.metadata(name, build.labels(component, group), owner),
                spec: Some(PodDisruptionBudgetSpec {
                    max_unavailable: Some(IntOrString::Int(1)),
                    selector: Some(LabelSelector {
                        match_labels: Some(build.selector(component, group)),
                        ..LabelSelector::default()
                    }),
                    // A pod that is not ready is no reason to hold up the drain of its node.
                    unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
                    ..PodDisruptionBudgetSpec::default()
                }),
                ..PodDisruptionBudget::default()
            },
        )
    })
}
