//! The broker groups of a cluster, their disks, copies and placement.
//!
//! **Invariant:** fields that need a controller (replicas, acknowledgement, reading from replicas)
//! are taken and kept; until there is one each group runs its master alone and the status says so.

use super::pod::{PodTemplate, ResourcesSpec};
use super::policy::RetainPolicy;
use crate::defaults;
use crate::duration::DurationText;
use crate::quantity::ByteQuantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The broker groups.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[x_kube(
    validation = Rule::new("self.replication.minInSync <= self.replicasPerGroup + 1")
        .message(crate::rules::MIN_IN_SYNC),
    validation = Rule::new(
        "!has(self.resources) || \
         [has(self.resources.limits) && has(self.resources.limits.memory) \
            ? self.resources.limits.memory : '128Mi', \
          has(self.resources.requests) && has(self.resources.requests.memory) \
            ? self.resources.requests.memory : '128Mi']\
         .all(m, quantity(m).compareTo(quantity('128Mi')) >= 0)"
    ).message(crate::rules::BROKER_MEMORY)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrokersSpec {
    /// How many broker groups there are. May shrink by one at a time: a group drains first.
    #[serde(default = "defaults::broker_groups")]
    #[schemars(range(min = 1, max = 128))]
    pub groups: i32,

    /// Group `g` has the broker name `<namePrefix>-<g>`. Immutable.
    #[serde(default = "defaults::broker_name_prefix")]
    #[schemars(
        length(min = 1, max = 16),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("self == oldSelf").message("namePrefix is immutable"))]
    pub name_prefix: String,

    /// Replicas of each group besides its master. They need a controller.
    #[serde(default = "defaults::replicas_per_group")]
    #[schemars(range(min = 0, max = 8))]
    pub replicas_per_group: i32,

    /// When a send to a group with replicas is answered.
    #[serde(default)]
    pub replication: ReplicationSpec,

    /// Whether consumers read from replicas.
    #[serde(default)]
    pub read_from_replica: ReadFromReplicaSpec,

    /// The disk of each broker.
    #[serde(default)]
    pub storage: StorageSpec,

    /// When a send is answered: after the write (`Async`) or after the flush to disk (`Sync`).
    #[serde(default)]
    pub flush: Flush,

    /// Keys of `broker.conf`; unknown keys are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub config: BTreeMap<String, String>,

    /// What is different in some groups; a group may be named once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub group_overrides: Vec<GroupOverride>,

    /// On which nodes brokers run.
    #[serde(default)]
    pub placement: PlacementSpec,

    /// What a broker asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSpec>,

    /// Additions to the pods of brokers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,

    /// How long a broker may take to stop in order.
    #[serde(default = "defaults::termination_grace")]
    #[x_kube(validation = Rule::new(
        "duration(self) >= duration('5s') && duration(self) <= duration('1h')"
    ).message(crate::rules::GRACE_BOUNDS))]
    pub termination_grace_period: DurationText,
}

/// The disk of each broker.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[x_kube(
    validation = Rule::new(
        "has(self.class) == has(oldSelf.class) && (!has(self.class) || self.class == oldSelf.class)"
    ).message("storage.class is immutable"),
    validation = Rule::new(
        "!has(self.autoExpand) || \
         quantity(self.autoExpand.limit).compareTo(quantity(self.size)) >= 0"
    ).message(crate::rules::EXPAND_LIMIT)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageSpec {
    /// Name of a StorageClass; the default one when absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class: Option<String>,
    /// Its size. May only grow.
    #[serde(default = "defaults::storage_size")]
    #[x_kube(
        validation = Rule::new("quantity(self).compareTo(quantity(oldSelf)) >= 0")
            .message("storage.size may only grow"),
        validation = Rule::new("quantity(self).compareTo(quantity('0')) > 0")
            .message(crate::rules::SIZE_NOT_ZERO)
    )]
    pub size: ByteQuantity,
    /// What becomes of the disk of a broker that is removed.
    #[serde(default)]
    pub retain_policy: RetainPolicy,
    /// Growing by itself. Without this section disks grow when `size` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_expand: Option<AutoExpandSpec>,
}

/// A disk that grows by itself.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AutoExpandSpec {
    /// Percent of the disk in use at which it grows.
    #[serde(default = "defaults::expand_threshold")]
    #[schemars(range(min = 50, max = 95))]
    pub threshold_percent: i32,
    /// By how much it grows at a time.
    #[serde(default = "defaults::expand_step")]
    pub step: ByteQuantity,
    /// Up to which size.
    pub limit: ByteQuantity,
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

/// When a send to a group with replicas is answered.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplicationSpec {
    /// Who must have the message.
    pub ack: AckPolicy,
    /// Fewest members in sync, the master counted, with which the group takes sends.
    #[schemars(range(min = 1, max = 9))]
    pub min_in_sync: i32,
    /// A replica this far behind leaves the set of members in sync.
    pub max_lag_time: DurationText,
}

impl Default for ReplicationSpec {
    fn default() -> Self {
        Self {
            ack: AckPolicy::Quorum,
            min_in_sync: 1,
            max_lag_time: DurationText::seconds(15),
        }
    }
}

/// Who must have a message before its send is answered.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum AckPolicy {
    /// The master.
    Async,
    /// `minInSync` members.
    #[default]
    Quorum,
    /// Every member in sync.
    AllInSync,
}

/// Whether consumers read from replicas.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReadFromReplicaSpec {
    /// When.
    pub mode: ReadMode,
    /// A replica further behind is not read from.
    pub max_lag: ByteQuantity,
}

impl Default for ReadFromReplicaSpec {
    fn default() -> Self {
        Self {
            mode: ReadMode::OnSlowConsume,
            max_lag: ByteQuantity::parse(defaults::READ_LAG_MAX)
                .expect("the default is a quantity: tested in defaults"),
        }
    }
}

/// When consumers read from replicas.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ReadMode {
    /// Never.
    Off,
    /// When what they read is no longer in the master's memory.
    #[default]
    OnSlowConsume,
    /// Whenever a replica is near enough.
    PreferReplica,
}

/// What is different in some groups.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupOverride {
    /// Which groups, counted from 0.
    #[schemars(length(min = 1, max = 128), inner(range(min = 0, max = 127)))]
    pub groups: Vec<i32>,
    /// What a broker of these groups asks for and may use, instead of `brokers.resources`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSpec>,
    /// Size of its disk, instead of `brokers.storage.size`. May only grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_size: Option<ByteQuantity>,
    /// Zone in which it runs (`topology.kubernetes.io/zone`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub zone: Option<String>,
    /// Keys of `broker.conf` besides and instead of `brokers.config`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub config: BTreeMap<String, String>,
}

/// On which nodes brokers run.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PlacementSpec {
    /// Whether two members of a group may share a node.
    pub anti_affinity: AntiAffinity,
    /// What counts as one node.
    #[schemars(length(min = 1, max = 317))]
    pub topology_key: String,
    /// Whether members are spread over zones as far as there are some.
    pub spread_zones: bool,
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            anti_affinity: AntiAffinity::Required,
            topology_key: defaults::TOPOLOGY_KEY.to_owned(),
            spread_zones: true,
        }
    }
}

/// Whether two members of a group may share a node.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum AntiAffinity {
    /// Never; a pod without a node of its own waits.
    #[default]
    Required,
    /// If there is no other.
    Preferred,
}

impl BrokersSpec {
    /// The broker name of group `index`, as it stands in routes.
    #[must_use]
    pub fn broker_name(&self, index: i32) -> String {
        format!("{}-{index}", self.name_prefix)
    }

    /// What is different in group `index`.
    #[must_use]
    pub fn group_override(&self, index: i32) -> Option<&GroupOverride> {
        self.group_overrides
            .iter()
            .find(|o| o.groups.contains(&index))
    }

    /// Size of the disks of group `index`.
    #[must_use]
    pub fn storage_size(&self, index: i32) -> &ByteQuantity {
        self.group_override(index)
            .and_then(|o| o.storage_size.as_ref())
            .unwrap_or(&self.storage.size)
    }

    /// What a broker of group `index` asks for and may use.
    #[must_use]
    pub fn resources_of(&self, index: i32) -> Option<&ResourcesSpec> {
        self.group_override(index)
            .and_then(|o| o.resources.as_ref())
            .or(self.resources.as_ref())
    }

    /// The keys of `broker.conf` that group `index` is given by the user.
    #[must_use]
    pub fn config_of(&self, index: i32) -> BTreeMap<String, String> {
        let mut config = self.config.clone();
        if let Some(o) = self.group_override(index) {
            config.extend(o.config.clone());
        }
        config
    }
}
