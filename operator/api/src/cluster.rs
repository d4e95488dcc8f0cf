//! `RocketMQCluster`: the kind a user applies.
//!
//! **Invariant:** a field stands here only when it is honoured, or when `rocketmq up` says in a
//! plain line that it is not. Unknown fields are refused. Rules that need the old object are CEL
//! rules beside their field; all others also stand in `validate.rs`.

use crate::defaults;
use crate::quantity::ByteQuantity;
use crate::status::RocketMQClusterStatus;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a RocketMQ cluster shall be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[kube(
    group = "rocketmq.rs",
    version = "v1alpha1",
    kind = "RocketMQCluster",
    doc = "A RocketMQ cluster: NameServers and broker groups.",
    namespaced,
    status = "RocketMQClusterStatus",
    derive = "PartialEq",
    shortname = "rmq",
    category = "rocketmq",
    scale(
        spec_replicas_path = ".spec.brokers.groups",
        status_replicas_path = ".status.groups.ready"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Groups", type_ = "string", json_path = ".status.groups.summary"),
    printcolumn(name = "Writable", type_ = "integer", json_path = ".status.groups.writable"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version.current"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "NameServers",
        type_ = "string",
        json_path = ".status.endpoints.nameServer",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 40")
        .message("metadata.name must be at most 40 characters: names of pods are made from it"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be lower-case letters, digits and '-', beginning with a letter")
)]
#[x_kube(
    validation = Rule::new(
        "has(self.clusterName) == has(oldSelf.clusterName) && \
         (!has(self.clusterName) || self.clusterName == oldSelf.clusterName)"
    ).message("clusterName is immutable")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RocketMQClusterSpec {
    /// Version of the programs to run, such as `0.1.0`.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.-]+)?$")
    )]
    pub version: String,

    /// Name under which clients and tools know the cluster; `metadata.name` when absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 127), regex(pattern = r"^[%|a-zA-Z0-9_.-]+$"))]
    pub cluster_name: Option<String>,

    /// The NameServers: where clients ask which broker has a topic.
    #[serde(default = "defaults::name_server")]
    pub name_server: NameServerSpec,

    /// The broker groups: where messages are.
    #[serde(default = "defaults::brokers")]
    pub brokers: BrokersSpec,

    /// The controllers, which decide who is master of a group. Without this section no group has
    /// automated failover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSpec>,

    /// The gRPC gateway. Without this section there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySpec>,
}

/// The NameServers.
#[derive(JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameServerSpec {
    /// How many NameServers run.
    #[serde(default = "defaults::name_server_replicas")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,

    /// Keys of `namesrv.conf`; unknown keys are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub config: BTreeMap<String, String>,
}

/// The broker groups.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrokersSpec {
    /// How many broker groups there are. May shrink by one at a time: a group drains first.
    #[serde(default = "defaults::broker_groups")]
    #[schemars(range(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self >= oldSelf - 1")
        .message("groups may shrink by one at a time"))]
    pub groups: i32,

    /// Group `g` has the broker name `<namePrefix>-<g>`. Immutable.
    #[serde(default = "defaults::broker_name_prefix")]
    #[schemars(
        length(min = 1, max = 16),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("self == oldSelf").message("namePrefix is immutable"))]
    pub name_prefix: String,

    /// Replicas of each group besides its master.
    #[serde(default = "defaults::replicas_per_group")]
    #[schemars(range(min = 0, max = 8))]
    pub replicas_per_group: i32,

    /// The disk of each broker.
    #[serde(default = "defaults::storage")]
    pub storage: StorageSpec,

    /// When a send is answered: after the write (`Async`) or after the flush to disk (`Sync`).
    #[serde(default)]
    pub flush: Flush,

    /// Keys of `broker.conf`; unknown keys are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub config: BTreeMap<String, String>,
}

/// The disk of each broker.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageSpec {
    /// Its size. May only grow.
    #[serde(default = "defaults::storage_size")]
    #[x_kube(validation = Rule::new("quantity(self).compareTo(quantity(oldSelf)) >= 0")
        .message("storage.size may only grow"))]
    pub size: ByteQuantity,
}

/// When a send is answered.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Flush {
    /// After the write to the page cache; the disk follows within half a second.
    #[default]
    Async,
    /// After the flush to disk.
    Sync,
}

/// The controllers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerSpec {
    /// How many controllers run: 1, 3 or 5.
    #[serde(default = "defaults::controller_replicas")]
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("controller.replicas must be odd"))]
    pub replicas: i32,
}

/// The gRPC gateway.
#[derive(JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxySpec {
    /// How many proxies run.
    #[serde(default = "defaults::proxy_replicas")]
    #[schemars(range(min = 1, max = 64))]
    pub replicas: i32,
}

impl RocketMQCluster {
    /// The cluster's name as clients and tools know it.
    #[must_use]
    pub fn cluster_name(&self) -> &str {
        self.spec
            .cluster_name
            .as_deref()
            .or(self.metadata.name.as_deref())
            .unwrap_or_default()
    }
}

impl BrokersSpec {
    /// The broker name of group `index`, as it stands in routes.
    #[must_use]
    pub fn broker_name(&self, index: i32) -> String {
        format!("{}-{index}", self.name_prefix)
    }
}
