//! `RocketMQCluster`: the kind a user applies.
//!
//! **Invariant:** a field stands here only when it is honoured, or when `rocketmq up` and the status
//! say in a plain line that it is not. Unknown fields are refused. Rules that need the old object are
//! CEL rules beside their field; all others also stand in `validate.rs`.

pub mod brokers;
pub mod listener;
pub mod pod;
pub mod policy;

use crate::defaults;
use crate::status::RocketMQClusterStatus;
use brokers::BrokersSpec;
use kube::{CustomResource, KubeSchema};
use listener::ListenerSpec;
use pod::{ImageSpec, PodTemplate, ResourcesSpec};
use policy::{
    DeletionPolicySpec, MonitoringSpec, NetworkPolicySpec, OperationModeSpec, PdbSpec, ScaleInSpec,
    UpdateStrategySpec,
};
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
        status_replicas_path = ".status.groups.ready",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Groups", type_ = "string", json_path = ".status.groups.summary"),
    printcolumn(name = "Writable", type_ = "integer", json_path = ".status.groups.writable"),
    printcolumn(name = "Ctrl-Leader", type_ = "string", json_path = ".status.controllers.leader"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version.current"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "NameServers",
        type_ = "string",
        json_path = ".status.endpoints.nameServer",
        priority = 1
    ),
    printcolumn(
        name = "Last-Failover",
        type_ = "date",
        json_path = ".status.lastFailover.writableAt",
        priority = 1
    ),
    printcolumn(
        name = "Rollout",
        type_ = "string",
        json_path = ".status.rollout.summary",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 40")
        .message("metadata.name must be at most 40 characters: names of pods are made from it"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be lower-case letters, digits and '-', beginning with a letter"),
    validation = Rule::new("self.metadata.name.size() + self.spec.brokers.namePrefix.size() <= 47")
        .message(crate::rules::NAMES_TOGETHER)
)]
#[x_kube(
    validation = Rule::new(
        "has(self.clusterName) == has(oldSelf.clusterName) && \
         (!has(self.clusterName) || self.clusterName == oldSelf.clusterName)"
    ).message("clusterName is immutable"),
    validation = Rule::new(
        "self.scaleIn.policy == 'Force' || self.brokers.groups >= oldSelf.brokers.groups - 1"
    ).message(crate::rules::SHRINK_BY_ONE),
    validation = Rule::new("!has(self.listeners) || self.listeners.size() <= 1")
        .message(crate::rules::ONE_LISTENER)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RocketMQClusterSpec {
    /// Version of the programs to run, such as `0.1.0`.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.-]+)?$")
    )]
    pub version: String,

    /// The container image; what is not given follows from the operator and `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSpec>,

    /// Name under which clients and tools know the cluster; `metadata.name` when absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 127), regex(pattern = r"^[%|a-zA-Z0-9_.-]+$"))]
    pub cluster_name: Option<String>,

    /// The NameServers: where clients ask which broker has a topic.
    #[serde(default)]
    #[x_kube(validation = Rule::new(
        "!has(self.resources) || \
         [has(self.resources.limits) && has(self.resources.limits.memory) \
            ? self.resources.limits.memory : '32Mi', \
          has(self.resources.requests) && has(self.resources.requests.memory) \
            ? self.resources.requests.memory : '32Mi']\
         .all(m, quantity(m).compareTo(quantity('32Mi')) >= 0)"
    ).message(crate::rules::NAME_SERVER_MEMORY))]
    pub name_server: NameServerSpec,

    /// The broker groups: where messages are.
    #[serde(default)]
    pub brokers: BrokersSpec,

    /// The controllers, which decide who is master of a group. Without this section no group has
    /// automated failover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSpec>,

    /// The gRPC gateway. Without this section there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySpec>,

    /// Where clients reach the brokers; inside the cluster when absent. At most one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub listeners: Vec<ListenerSpec>,

    /// How pods are replaced when their template changes.
    #[serde(default)]
    #[x_kube(validation = Rule::new("duration(self.canary.soak) <= duration('24h')")
        .message(crate::rules::SOAK_TOO_LONG))]
    pub update_strategy: UpdateStrategySpec,

    /// What must hold before a removed group goes.
    #[serde(default)]
    #[x_kube(validation = Rule::new("duration(self.timeout) >= duration('1m')")
        .message(crate::rules::SCALE_IN_TIMEOUT))]
    pub scale_in: ScaleInSpec,

    /// PodDisruptionBudgets.
    #[serde(default)]
    pub pdb: PdbSpec,

    /// NetworkPolicies.
    #[serde(default)]
    pub network_policy: NetworkPolicySpec,

    /// What Prometheus finds.
    #[serde(default)]
    pub monitoring: MonitoringSpec,

    /// Whether the cluster runs and is looked after.
    #[serde(default)]
    pub operation: OperationModeSpec,

    /// What deleting the object does.
    #[serde(default)]
    pub deletion_policy: DeletionPolicySpec,
}

/// The NameServers.
#[derive(JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NameServerSpec {
    /// How many NameServers run.
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,

    /// NameServers that somebody else runs, each `host:port`. With these none is run here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 9),
        inner(
            length(min = 3, max = 261),
            regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$")
        )
    )]
    pub external_ref: Vec<String>,

    /// Keys of `namesrv.conf`; unknown keys are refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub config: BTreeMap<String, String>,

    /// What a NameServer asks for and may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSpec>,

    /// Additions to the pods of NameServers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// The controllers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerSpec {
    /// How many controllers run: 1, 3 or 5.
    #[serde(default = "defaults::controller_replicas")]
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message(crate::rules::CONTROLLERS_ODD))]
    pub replicas: i32,
}

/// The gRPC gateway.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
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

impl RocketMQClusterSpec {
    /// The image reference; `repository` is the operator's own default.
    #[must_use]
    pub fn image_reference(&self, repository: &str) -> String {
        let image = self.image.clone().unwrap_or_default();
        let repository = image.repository.as_deref().unwrap_or(repository);
        match (image.digest, image.tag) {
            (Some(digest), _) => format!("{repository}@{digest}"),
            (None, Some(tag)) => format!("{repository}:{tag}"),
            (None, None) => format!("{repository}:{}", self.version.replace('+', "-")),
        }
    }

    /// How many NameServers run here.
    #[must_use]
    pub fn own_name_servers(&self) -> i32 {
        if self.name_server.external_ref.is_empty() {
            self.name_server.replicas
        } else {
            0
        }
    }

    /// Members of each group that can run today: a replica needs a controller, and there is none
    /// yet.
    #[must_use]
    pub const fn members_per_group(&self) -> i32 {
        1
    }
}
