//! The Kubernetes objects of a cluster, as functions of its manifest.
//!
//! **Invariant:** pure: the same manifest, site and addresses give the same objects byte by byte, so
//! that an object at rest is never written. Nothing here asks anybody anything; what only a running
//! cluster knows (the addresses of Services) is an argument. Every object carries the labels of
//! [`labels`] and its owner, by which it is found and pruned.

pub mod account;
pub mod broker;
pub mod config;
pub mod group;
pub mod keys;
pub mod labels;
pub mod name_server;
pub mod names;
pub mod network;
pub mod object;
pub mod overlay;
pub mod pdb;
pub mod pod;
pub mod service;

pub use keys::{KeyClass, KeyTable};
pub use names::Names;
pub use object::{Kind, Object};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use rmq_operator_api::RocketMQCluster;
use std::collections::BTreeMap;

/// Port of the NameServers.
pub const NAME_SERVER_PORT: i32 = 9876;
/// Port of a broker for clients, unless a listener says another one.
pub const BROKER_PORT: i32 = 10911;
/// Port of the page with `/metrics`, `/livez`, `/readyz` and `/startupz`, the same for every role.
pub const HTTP_PORT: i32 = 5557;
/// Its name in pods and Services.
pub const HTTP_PORT_NAME: &str = "http-metrics";

/// What the operator itself knows and every cluster is built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Registry and name of the image when the manifest names none.
    pub image_repository: String,
    /// The operator's own namespace, which NetworkPolicies let in.
    pub operator_namespace: String,
    /// Which keys of the configuration files need a restart.
    pub keys: KeyTable,
}

/// What only the running cluster knows of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFacts {
    /// What clients are told, by the name of the pod; without an entry a pod tells them its own
    /// address.
    pub addresses: BTreeMap<String, String>,
}

/// One cluster to build for.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The manifest, already found sound.
    pub cluster: &'a RocketMQCluster,
    /// The operator's own facts.
    pub site: &'a Site,
}

impl<'a> Build<'a> {
    /// Names of everything.
    #[must_use]
    pub fn names(&self) -> Names<'a> {
        Names::of(self.cluster)
    }

    /// The objects that are of no part: accounts, and the policy of all brokers.
    #[must_use]
    pub fn shared_objects(&self, owner: &OwnerReference) -> Vec<Object> {
        let mut objects = vec![
            account::name_server(self, owner),
            account::broker(self, owner),
        ];
        objects.extend(network::broker(self, owner));
        objects
    }

    /// The objects of the NameServers; none when somebody else runs them.
    #[must_use]
    pub fn name_server_objects(&self, owner: &OwnerReference) -> Vec<Object> {
        if self.cluster.spec.own_name_servers() == 0 {
            return Vec::new();
        }
        let mut objects = vec![
            service::name_server(self, owner),
            service::name_server_headless(self, owner),
            name_server::config_map(self, owner),
            name_server::stateful_set(self, owner),
        ];
        objects.extend(pdb::name_server(self, owner));
        objects.extend(network::name_server(self, owner));
        objects
    }

    /// The `BrokerGroup` of group `index`; `drain` says that it is to be emptied and then removed.
    #[must_use]
    pub fn broker_group(&self, index: i32, drain: bool, owner: &OwnerReference) -> Object {
        group::broker_group(self, index, drain, owner)
    }

    /// The Services of group `index`. Their addresses must be known before the rest is built.
    #[must_use]
    pub fn group_services(&self, index: i32, owner: &OwnerReference) -> Vec<Object> {
        let mut services = vec![
            service::broker_headless(self, index, owner),
            service::master(self, index, owner),
        ];
        if self.cluster.spec.members_per_group() > 1 {
            services.push(service::replicas(self, index, owner));
        }
        for ordinal in 0..self.cluster.spec.members_per_group() {
            services.push(service::broker_pod(self, index, ordinal, owner));
        }
        services
    }

    /// What group `index` runs.
    #[must_use]
    pub fn group_workload(
        &self,
        index: i32,
        owner: &OwnerReference,
        facts: &GroupFacts,
    ) -> Vec<Object> {
        let mut objects = vec![
            broker::config_map(self, index, owner, facts),
            broker::stateful_set(self, index, owner, facts),
        ];
        objects.extend(pdb::broker(self, index, owner));
        objects
    }

    fn metadata(
        &self,
        name: String,
        labels: BTreeMap<String, String>,
        owner: &OwnerReference,
    ) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.cluster.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    /// The image of every pod of this cluster.
    #[must_use]
    pub fn image(&self) -> String {
        self.cluster
            .spec
            .image_reference(&self.site.image_repository)
    }
}

#[cfg(test)]
mod tests;
