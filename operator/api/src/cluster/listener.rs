//! Where clients reach the brokers, and which address they are told.
//!
//! **Invariant:** a broker registers one address at the NameServers, so a cluster has at most one
//! listener. Without one, clients are told the address of each pod's own Service.

use crate::rules;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One way to the brokers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(
    validation = Rule::new(
        "self.type != 'NodePort' || (self.port >= 30000 && self.port <= 32767)"
    ).message(rules::NODE_PORT_RANGE)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListenerSpec {
    /// A name for people and for the names of Services.
    #[schemars(
        length(min = 1, max = 12),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Port of the brokers. A NodePort listener counts up from here: group `g` has `port + g`.
    #[serde(default = "crate::defaults::listener_port")]
    #[schemars(range(min = 1024, max = 65_535))]
    pub port: i32,
    /// What carries clients to the brokers.
    #[serde(default, rename = "type")]
    pub kind: ListenerType,
    /// Which address clients are told; the type's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertised: Option<AdvertisedSpec>,
    /// Annotations of the Services, for the cloud that makes load balancers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
}

/// What carries clients to the brokers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ListenerType {
    /// A ClusterIP Service of each broker: clients inside the cluster.
    #[default]
    Internal,
    /// A port of every node for each broker.
    NodePort,
    /// A load balancer for each broker.
    LoadBalancer,
}

/// Which address clients are told.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(
    validation = Rule::new("has(self.template) == (self.from == 'Template')")
        .message(rules::TEMPLATE_GIVEN),
    validation = Rule::new("has(self.annotation) == (self.from == 'Annotation')")
        .message(rules::ANNOTATION_GIVEN)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdvertisedSpec {
    /// Where the address comes from.
    pub from: AdvertisedFrom,
    /// The address with `{group}`, `{pod}`, `{cluster}` and `{namespace}` filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^([a-z0-9.-]|\{(group|pod|cluster|namespace)\})+$")
    )]
    pub template: Option<String>,
    /// The annotation of the pod that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub annotation: Option<String>,
}

/// Where an advertised address comes from.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum AdvertisedFrom {
    /// The Service of the broker: its ClusterIP, or what the load balancer gives.
    Service,
    /// The pod's own address.
    PodIP,
    /// The address of the pod's node.
    HostIP,
    /// An annotation of the pod, as some networks write it.
    Annotation,
    /// A name of your own.
    Template,
}

impl ListenerSpec {
    /// Where its address comes from, said or not.
    #[must_use]
    pub fn advertised_from(&self) -> AdvertisedFrom {
        match (&self.advertised, self.kind) {
            (Some(advertised), _) => advertised.from,
            (None, ListenerType::NodePort) => AdvertisedFrom::HostIP,
            (None, ListenerType::Internal | ListenerType::LoadBalancer) => AdvertisedFrom::Service,
        }
    }

    /// The port at which clients reach group `group`.
    #[must_use]
    pub fn port_of(&self, group: i32) -> i32 {
        match self.kind {
            ListenerType::NodePort => self.port.saturating_add(group),
            ListenerType::Internal | ListenerType::LoadBalancer => self.port,
        }
    }

    /// What is wrong in it, apart from single fields.
    #[must_use]
    pub fn problems(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        if self.kind == ListenerType::NodePort && !(30_000..=32_767).contains(&self.port) {
            found.push(rules::NODE_PORT_RANGE);
        }
        if let Some(advertised) = &self.advertised {
            if advertised.template.is_some() != (advertised.from == AdvertisedFrom::Template) {
                found.push(rules::TEMPLATE_GIVEN);
            }
            if advertised.annotation.is_some() != (advertised.from == AdvertisedFrom::Annotation) {
                found.push(rules::ANNOTATION_GIVEN);
            }
        }
        found
    }
}
