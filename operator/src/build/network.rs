//! Who may connect to the pods of a cluster.
//!
//! **Invariant:** the port of replication is for members of the same group only. Pods of the
//! cluster and the operator always reach the ports of clients, whatever `allowFrom` says. What pods
//! connect to is not restricted.

use super::labels::Component;
use super::{Build, HTTP_PORT_NAME, Kind, Object};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rmq_operator_api::PeerSpec;
use rmq_operator_api::keys::LABEL_CLUSTER;
use std::collections::BTreeMap;

pub(super) fn name_server(build: &Build<'_>, owner: &OwnerReference) -> Option<Object> {
    let rules = vec![
        rule(&["remoting"], build.clients()),
        rule(&[HTTP_PORT_NAME], Vec::new()),
    ];
    let name = build.names().name_server();
    policy(build, (Component::NameServer, None), name, rules, owner)
}

/// One policy for the brokers of all groups; replication among them is told apart by their own
/// names, which a master checks.
pub(super) fn broker(build: &Build<'_>, owner: &OwnerReference) -> Option<Object> {
    let peers = NetworkPolicyPeer {
        pod_selector: Some(matching(build.selector(Component::Broker, None))),
        ..NetworkPolicyPeer::default()
    };
    let rules = vec![
        rule(&["remoting", "fast-remoting"], build.clients()),
        rule(&["replication"], vec![peers]),
        rule(&[HTTP_PORT_NAME], Vec::new()),
    ];
    let name = build.names().brokers();
    policy(build, (Component::Broker, None), name, rules, owner)
}

impl Build<'_> {
    /// Who reaches the ports of clients; everybody when empty.
    fn clients(&self) -> Vec<NetworkPolicyPeer> {
        let allowed = &self.cluster.spec.network_policy.allow_from;
        if allowed.is_empty() {
            return Vec::new();
        }
        let own = BTreeMap::from([(LABEL_CLUSTER.to_owned(), self.names().cluster().to_owned())]);
        let operator = BTreeMap::from([(
            "kubernetes.io/metadata.name".to_owned(),
            self.site.operator_namespace.clone(),
        )]);
        let mut peers = vec![
            NetworkPolicyPeer {
                pod_selector: Some(matching(own)),
                ..NetworkPolicyPeer::default()
            },
            NetworkPolicyPeer {
                namespace_selector: Some(matching(operator)),
                ..NetworkPolicyPeer::default()
            },
        ];
        peers.extend(allowed.iter().map(peer));
        peers
    }
}

fn peer(spec: &PeerSpec) -> NetworkPolicyPeer {
    let selector =
        |labels: &BTreeMap<String, String>| (!labels.is_empty()).then(|| matching(labels.clone()));
    NetworkPolicyPeer {
        ip_block: spec.cidr.clone().map(|cidr| IPBlock { cidr, except: None }),
        namespace_selector: selector(&spec.namespaces),
        pod_selector: selector(&spec.pods),
    }
}

fn policy(
    build: &Build<'_>,
    (component, group): (Component, Option<i32>),
    name: String,
    rules: Vec<NetworkPolicyIngressRule>,
    owner: &OwnerReference,
) -> Option<Object> {
    build.cluster.spec.network_policy.enabled.then(|| {
        Object::typed(
            Kind::NetworkPolicy,
            &NetworkPolicy {
                metadata: build.metadata(name, build.labels(component, group), owner),
                spec: Some(NetworkPolicySpec {
                    pod_selector: Some(matching(build.selector(component, group))),
                    policy_types: Some(vec!["Ingress".to_owned()]),
                    ingress: Some(rules),
                    ..NetworkPolicySpec::default()
                }),
            },
        )
    })
}

fn rule(ports: &[&str], from: Vec<NetworkPolicyPeer>) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule {
        from: (!from.is_empty()).then_some(from),
        ports: Some(
            ports
                .iter()
                .map(|name| NetworkPolicyPort {
                    port: Some(IntOrString::String((*name).to_owned())),
                    protocol: Some("TCP".to_owned()),
                    ..NetworkPolicyPort::default()
                })
                .collect(),
        ),
    }
}

fn matching(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        ..LabelSelector::default()
    }
}
