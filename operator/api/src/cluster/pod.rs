//! What every pod of a role may be given: image, resources and an overlay of its template.
//!
//! **Invariant:** the overlay adds to the pod that the operator builds and cannot take away what
//! makes it safe (non-root, read-only root, no capabilities, no API token). The node's own network
//! and folders are given only with `allowHostAccess`, which an admission policy can look for.

use crate::cpu::CpuQuantity;
use crate::quantity::ByteQuantity;
use crate::rules;
use k8s_openapi::api::core::v1::{Affinity, EnvVar, Toleration, TopologySpreadConstraint};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, transform::RecursiveTransform, transform::Transform as _};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The container image; what is not given follows from the operator and `version`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(validation = Rule::new("!(has(self.tag) && has(self.digest))")
    .message(rules::TAG_OR_DIGEST))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageSpec {
    /// Registry and name, such as `registry.example.com/rocketmq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[a-z0-9]([-a-z0-9._/:]*[a-z0-9])?$")
    )]
    pub repository: Option<String>,
    /// Tag; `version` when neither tag nor digest is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"))]
    pub tag: Option<String>,
    /// Digest, `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// When a node asks the registry.
    #[serde(default)]
    pub pull_policy: PullPolicy,
    /// Names of Secrets with the registry's credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub pull_secrets: Vec<String>,
}

/// When a node asks the registry for an image.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum PullPolicy {
    /// When the node has none.
    #[default]
    IfNotPresent,
    /// At every start of a pod.
    Always,
    /// Never.
    Never,
}

impl PullPolicy {
    /// As Kubernetes spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IfNotPresent => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// What a container asks for and what it may use at most.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(validation = Rule::new(
    "!has(self.requests) || !has(self.requests.memory) || !has(self.limits) || \
     !has(self.limits.memory) || \
     quantity(self.limits.memory).compareTo(quantity(self.requests.memory)) >= 0"
).message(rules::MEMORY_LIMIT))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourcesSpec {
    /// What the scheduler sets aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceAmounts>,
    /// What is never exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceAmounts>,
}

/// Amounts of each resource.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceAmounts {
    /// Processor, such as `2` or `500m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuQuantity>,
    /// Memory, such as `2Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteQuantity>,
    /// Disk of the node, such as `1Gi`.
    #[serde(
        default,
        rename = "ephemeral-storage",
        skip_serializing_if = "Option::is_none"
    )]
    pub ephemeral_storage: Option<ByteQuantity>,
}

impl ResourcesSpec {
    /// The smallest memory named, limit or request.
    #[must_use]
    pub fn least_memory(&self) -> Option<u64> {
        [&self.requests, &self.limits]
            .into_iter()
            .flatten()
            .filter_map(|amounts| amounts.memory.as_ref().map(ByteQuantity::bytes))
            .min()
    }
}

/// Additions to the pods of a role.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[x_kube(
    validation = Rule::new("!self.hostNetwork || self.allowHostAccess")
        .message(rules::HOST_NETWORK),
    validation = Rule::new(
        "self.allowHostAccess || !has(self.volumes) || self.volumes.all(v, !has(v.hostPath))"
    ).message(rules::HOST_PATH)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodTemplate {
    /// More labels. Labels of the operator win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,
    /// More annotations. Annotations of the operator win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints the pods bear, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), transform = without_descriptions)]
    pub tolerations: Vec<Toleration>,
    /// As in a Pod; it replaces what follows from `placement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_descriptions)]
    pub affinity: Option<Affinity>,
    /// As in a Pod; they replace what follows from `placement`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), transform = without_descriptions)]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Name of a PriorityClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,
    /// Name of a RuntimeClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub runtime_class_name: Option<String>,
    /// Name of the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub scheduler_name: Option<String>,
    /// A ServiceAccount of your own; the operator's has no right at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// More environment of the container, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), transform = without_descriptions)]
    pub env: Vec<EnvVar>,
    /// More volumes of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub volumes: Vec<ExtraVolume>,
    /// User, group and owner of files. Kept from 1: nothing runs as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whether the pods use the network of their node. Needs `allowHostAccess`.
    #[serde(default)]
    pub host_network: bool,
    /// Whether `hostNetwork` and `hostPath` volumes are meant.
    #[serde(default)]
    pub allow_host_access: bool,
}

/// As which user the processes run.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Identity {
    /// User.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub user: i64,
    /// Group, also the owner of files on volumes.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub group: i64,
}

/// One more volume and where it stands.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(validation = Rule::new(
    "[has(self.configMap), has(self.secret), has(self.emptyDirSize), has(self.hostPath)]\
     .filter(given, given).size() == 1"
).message(rules::ONE_VOLUME_SOURCE))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtraVolume {
    /// Its name in the pod.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Where it stands in the container.
    #[schemars(length(min = 2, max = 255), regex(pattern = r"^/[^:]*$"))]
    pub mount_path: String,
    /// Whether it can be written.
    #[serde(default = "yes")]
    pub read_only: bool,
    /// Name of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub config_map: Option<String>,
    /// Name of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret: Option<String>,
    /// Size of an empty folder that lives as long as the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir_size: Option<ByteQuantity>,
    /// A folder of the node. Needs `allowHostAccess`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub host_path: Option<String>,
}

impl ExtraVolume {
    /// Whether exactly one source is given.
    #[must_use]
    pub fn has_one_source(&self) -> bool {
        [
            self.config_map.is_some(),
            self.secret.is_some(),
            self.empty_dir_size.is_some(),
            self.host_path.is_some(),
        ]
        .into_iter()
        .filter(|given| *given)
        .count()
            == 1
    }
}

impl PodTemplate {
    /// What is wrong in it, apart from single fields.
    #[must_use]
    pub fn problems(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        if self.host_network && !self.allow_host_access {
            found.push(rules::HOST_NETWORK);
        }
        if !self.allow_host_access && self.volumes.iter().any(|v| v.host_path.is_some()) {
            found.push(rules::HOST_PATH);
        }
        if self.volumes.iter().any(|v| !v.has_one_source()) {
            found.push(rules::ONE_VOLUME_SOURCE);
        }
        found
    }
}

fn yes() -> bool {
    true
}

/// Kubernetes' own types bring their whole documentation; `kubectl explain pod` has it already, and
/// a definition above 256 KiB cannot be applied from a client.
fn without_descriptions(schema: &mut Schema) {
    let own = schema.get("description").cloned();
    RecursiveTransform(|schema: &mut Schema| {
        schema.remove("description");
    })
    .transform(schema);
    if let Some(own) = own {
        schema.insert("description".to_owned(), own);
    }
}
