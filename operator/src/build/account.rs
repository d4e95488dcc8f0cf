//! The names that pods run under.
//!
//! **Invariant:** no pod of a cluster has a token of the API server, and none has a right there.

use super::labels::Component;
use super::{Build, Kind, Object};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

pub(super) fn name_server(build: &Build<'_>, owner: &OwnerReference) -> Object {
    account(
        build,
        Component::NameServer,
        build.names().name_server(),
        owner,
    )
}

pub(super) fn broker(build: &Build<'_>, owner: &OwnerReference) -> Object {
    account(build, Component::Broker, build.names().brokers(), owner)
}

fn account(
    build: &Build<'_>,
    component: Component,
    name: String,
    owner: &OwnerReference,
) -> Object {
    Object::typed(
        Kind::ServiceAccount,
        &ServiceAccount {
            metadata: build.metadata(name, build.labels(component, None), owner),
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        },
    )
}
