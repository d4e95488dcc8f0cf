//! The `BrokerGroup` object of one group: what machines and `kubectl get rmqbg` look at.
//!
//! **Invariant:** written by the operator alone, and owned by the cluster; what its pods need is
//! built from the cluster, never from here.

use super::labels::Component;
use super::{Build, Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use rmq_operator_api::BrokerGroupSpec;
use rmq_operator_api::{API_VERSION, BrokerGroup};
use serde_json::json;

/// The object of group `index`; `drain` says that it is to be emptied and then removed.
pub(super) fn broker_group(
    build: &Build<'_>,
    index: i32,
    drain: bool,
    owner: &OwnerReference,
) -> Object {
    let names = build.names();
    let brokers = &build.cluster.spec.brokers;
    let spec = BrokerGroupSpec {
        cluster: names.cluster().to_owned(),
        index,
        broker_name: names.broker_name(index),
        members: build.cluster.spec.members_per_group(),
        min_in_sync: brokers
            .replication
            .min_in_sync
            .min(build.cluster.spec.members_per_group()),
        storage_size: brokers.storage_size(index).clone(),
        drain,
    };
    let labels = build.labels(Component::Broker, Some(index));
    let metadata = build.metadata(names.group(index), labels, owner);
    let value = json!({
        "apiVersion": API_VERSION,
        "kind": "BrokerGroup",
        "metadata": metadata,
        "spec": spec,
    });
    Object::new(Kind::BrokerGroup, names.group(index), value)
}

/// Who owns the objects of a group.
#[must_use]
pub fn owner_of(group: &BrokerGroup) -> Option<OwnerReference> {
    use kube::Resource as _;
    group.controller_owner_ref(&())
}
