//! How a cluster is changed, watched and taken down.
//!
//! **Invariant:** every default is the careful choice: one group at a time, a canary, drained
//! before removed, data kept, deletion protected.

use crate::defaults;
use crate::duration::DurationText;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How pods are replaced when their template changes.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateStrategySpec {
    /// Who replaces pods.
    #[serde(rename = "type")]
    pub kind: UpdateType,
    /// How many broker groups may be disturbed at the same time.
    #[schemars(range(min = 1, max = 128))]
    pub max_unavailable_groups: i32,
    /// What the first pod must show before the others follow.
    pub canary: CanarySpec,
    /// Whether a roll stops when an updated pod does not become healthy.
    pub auto_pause_on_degraded: bool,
    /// How a master is updated. Without replicas it is always in place.
    pub master_update: MasterUpdate,
}

impl Default for UpdateStrategySpec {
    fn default() -> Self {
        Self {
            kind: UpdateType::RoleAware,
            max_unavailable_groups: 1,
            canary: CanarySpec::default(),
            auto_pause_on_degraded: true,
            master_update: MasterUpdate::Switchover,
        }
    }
}

/// Who replaces outdated pods.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum UpdateType {
    /// The operator: replicas first, masters last, one pod of a group at a time.
    #[default]
    RoleAware,
    /// The operator, once the annotation `rocketmq.rs/restart` of the cluster changes.
    Supervised,
    /// You, by deleting pods.
    OnDelete,
}

/// What the first updated pod must show.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CanarySpec {
    /// How long it must be healthy.
    pub soak: DurationText,
}

impl Default for CanarySpec {
    fn default() -> Self {
        Self {
            soak: DurationText::seconds(defaults::CANARY_SOAK_SECONDS),
        }
    }
}

/// How a master is updated.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum MasterUpdate {
    /// An updated replica becomes master first.
    #[default]
    Switchover,
    /// It restarts as it is; the group takes no sends meanwhile.
    InPlace,
}

/// What must hold before a removed group's pod and registration go.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScaleInSpec {
    /// What is waited for.
    pub policy: ScaleInPolicy,
    /// After this long the status says that draining is late. It never removes by itself.
    pub timeout: DurationText,
}

impl Default for ScaleInSpec {
    fn default() -> Self {
        Self {
            policy: ScaleInPolicy::WaitConsumed,
            timeout: DurationText::parse(defaults::SCALE_IN_TIMEOUT)
                .expect("the default is a length of time: tested in defaults"),
        }
    }
}

/// What is waited for before a group is removed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ScaleInPolicy {
    /// Every consumer group has consumed every message, delayed and retried ones too.
    #[default]
    WaitConsumed,
    /// The last message is older than the retention (`fileReservedTime`).
    WaitRetention,
    /// Nothing: what was not consumed stays on the kept disk and reaches nobody.
    Force,
}

/// PodDisruptionBudgets.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PdbSpec {
    /// Whether they are made.
    pub enabled: bool,
}

impl Default for PdbSpec {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// NetworkPolicies.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NetworkPolicySpec {
    /// Whether they are made: the ports of peers and of administration for those who need them.
    pub enabled: bool,
    /// Who may reach the ports of clients; everyone when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow_from: Vec<PeerSpec>,
}

impl Default for NetworkPolicySpec {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_from: Vec::new(),
        }
    }
}

/// Someone on the network.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(validation = Rule::new(
    "has(self.cidr) != (has(self.namespaces) || has(self.pods))"
).message(crate::rules::ONE_PEER))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PeerSpec {
    /// Labels of its namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub namespaces: BTreeMap<String, String>,
    /// Labels of its pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub pods: BTreeMap<String, String>,
    /// Its addresses, such as `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-fA-F.:]{2,45}/[0-9]{1,3}$"))]
    pub cidr: Option<String>,
}

impl PeerSpec {
    /// Whether it says who is meant, in one way.
    #[must_use]
    pub fn is_one_peer(&self) -> bool {
        self.cidr.is_some() == (self.namespaces.is_empty() && self.pods.is_empty())
    }
}

/// What Prometheus finds.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MonitoringSpec {
    /// Whether a PodMonitor is made, if the cluster has that kind.
    pub pod_monitor: bool,
    /// Labels of the PodMonitor, by which a Prometheus chooses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,
}

/// Whether the cluster runs and is looked after.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OperationModeSpec {
    /// The operator looks and reports, and writes nothing but the status.
    pub paused: bool,
    /// All pods are stopped; disks, Services and objects stay.
    pub hibernated: bool,
}

/// What deleting the object does.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeletionPolicySpec {
    /// Whether a deletion waits until this is false, or until the annotation
    /// `rocketmq.rs/allow-deletion` holds the cluster's name.
    pub protect: bool,
    /// What becomes of the disks.
    pub pvc: RetainPolicy,
}

impl Default for DeletionPolicySpec {
    fn default() -> Self {
        Self {
            protect: true,
            pvc: RetainPolicy::Retain,
        }
    }
}

/// What becomes of a disk that is no longer used.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum RetainPolicy {
    /// It is kept, with everything on it.
    #[default]
    Retain,
    /// It is deleted.
    Delete,
}
