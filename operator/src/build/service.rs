//! The stable addresses of a cluster.
//!
//! **Invariant:** a broker tells its clients the address of its pod's own Service, which outlives
//! the pod: a client's connection fails at once while the pod is away and works again when it is
//! back. That Service has its pod also while the pod is not ready: a broker that has lost the
//! NameServers must keep serving the clients that know it.

use super::labels::Component;
use super::{BROKER_PORT, Build, HTTP_PORT, HTTP_PORT_NAME, Kind, NAME_SERVER_PORT, Object};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rmq_operator_api::keys::{LABEL_READABLE, LABEL_ROLE};
use rmq_operator_api::{ListenerSpec, ListenerType};
use std::collections::BTreeMap;

pub(super) fn name_server(build: &Build<'_>, owner: &OwnerReference) -> Object {
    let mut spec = spec(
        build.selector(Component::NameServer, None),
        vec![port("remoting", NAME_SERVER_PORT)],
    );
    spec.type_ = Some("ClusterIP".to_owned());
    service(
        build,
        (Component::NameServer, None),
        build.names().name_server(),
        spec,
        owner,
    )
}

pub(super) fn name_server_headless(build: &Build<'_>, owner: &OwnerReference) -> Object {
    let ports = vec![
        port("remoting", NAME_SERVER_PORT),
        port(HTTP_PORT_NAME, HTTP_PORT),
    ];
    service(
        build,
        (Component::NameServer, None),
        build.names().name_server_headless(),
        headless(build.selector(Component::NameServer, None), ports),
        owner,
    )
}

pub(super) fn broker_headless(build: &Build<'_>, index: i32, owner: &OwnerReference) -> Object {
    let client = build.broker_port(index);
    let ports = vec![
        port("remoting", client),
        port("fast-remoting", client - 2),
        port("replication", client + 1),
        port(HTTP_PORT_NAME, HTTP_PORT),
    ];
    service(
        build,
        (Component::Broker, Some(index)),
        build.names().group_headless(index),
        headless(build.selector(Component::Broker, Some(index)), ports),
        owner,
    )
}

pub(super) fn master(build: &Build<'_>, index: i32, owner: &OwnerReference) -> Object {
    let mut selector = build.selector(Component::Broker, Some(index));
    selector.insert(LABEL_ROLE.to_owned(), "master".to_owned());
    let name = build.names().master(index);
    role_service(build, index, name, selector, owner)
}

pub(super) fn replicas(build: &Build<'_>, index: i32, owner: &OwnerReference) -> Object {
    let mut selector = build.selector(Component::Broker, Some(index));
    selector.insert(LABEL_ROLE.to_owned(), "replica".to_owned());
    selector.insert(LABEL_READABLE.to_owned(), "true".to_owned());
    let name = build.names().replicas(index);
    role_service(build, index, name, selector, owner)
}

fn role_service(
    build: &Build<'_>,
    index: i32,
    name: String,
    selector: BTreeMap<String, String>,
    owner: &OwnerReference,
) -> Object {
    let mut spec = spec(selector, vec![port("remoting", build.broker_port(index))]);
    spec.type_ = Some("ClusterIP".to_owned());
    service(build, (Component::Broker, Some(index)), name, spec, owner)
}

/// The Service of one broker pod, of the type that the listener asks for.
pub(super) fn broker_pod(
    build: &Build<'_>,
    index: i32,
    ordinal: i32,
    owner: &OwnerReference,
) -> Object {
    let name = build.names().broker_pod(index, ordinal);
    let mut selector = build.selector(Component::Broker, Some(index));
    selector.insert(
        "statefulset.kubernetes.io/pod-name".to_owned(),
        name.clone(),
    );
    let client = build.broker_port(index);
    let mut ports = vec![port("remoting", client)];
    let listener = build.listener();
    let kind = listener.map(|listener| listener.kind).unwrap_or_default();
    if kind == ListenerType::NodePort {
        for port in &mut ports {
            port.node_port = Some(client);
        }
    } else {
        ports.push(port("fast-remoting", client - 2));
    }
    let mut spec = spec(selector, ports);
    spec.publish_not_ready_addresses = Some(true);
    spec.type_ = Some(
        match kind {
            ListenerType::Internal => "ClusterIP",
            ListenerType::NodePort => "NodePort",
            ListenerType::LoadBalancer => "LoadBalancer",
        }
        .to_owned(),
    );
    if kind != ListenerType::Internal {
        // The node that clients are told is the pod's own: no second hop, and the client's address
        // is seen.
        spec.external_traffic_policy = Some("Local".to_owned());
    }
    let labels = build.labels(Component::Broker, Some(index));
    let mut metadata = build.metadata(name, labels, owner);
    metadata.annotations = listener
        .map(|listener| listener.annotations.clone())
        .filter(|annotations| !annotations.is_empty());
    Object::typed(
        Kind::Service,
        &Service {
            metadata,
            spec: Some(spec),
            ..Service::default()
        },
    )
}

impl Build<'_> {
    /// Where clients come in, if the manifest says.
    #[must_use]
    pub fn listener(&self) -> Option<&ListenerSpec> {
        self.cluster.spec.listeners.first()
    }

    /// The port at which brokers of group `index` listen and which clients are told.
    #[must_use]
    pub fn broker_port(&self, index: i32) -> i32 {
        self.listener()
            .map_or(BROKER_PORT, |listener| listener.port_of(index))
    }
}

fn service(
    build: &Build<'_>,
    (component, group): (Component, Option<i32>),
    name: String,
    spec: ServiceSpec,
    owner: &OwnerReference,
) -> Object {
    Object::typed(
        Kind::Service,
        &Service {
            metadata: build.metadata(name, build.labels(component, group), owner),
            spec: Some(spec),
            ..Service::default()
        },
    )
}

fn spec(selector: BTreeMap<String, String>, ports: Vec<ServicePort>) -> ServiceSpec {
    ServiceSpec {
        selector: Some(selector),
        ports: Some(ports),
        ..ServiceSpec::default()
    }
}

/// Names of pods resolve also while the pods are not ready: they find each other to become so.
fn headless(selector: BTreeMap<String, String>, ports: Vec<ServicePort>) -> ServiceSpec {
    ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        publish_not_ready_addresses: Some(true),
        ..spec(selector, ports)
    }
}

fn port(name: &str, number: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: number,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}
