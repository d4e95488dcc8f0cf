//! What shall be, with every default and override resolved.
//!
//! **Invariant:** a function of the manifest, its annotations and the programs' key tables.

use rmq_operator_api::keys::{
    ANNOTATION_ALLOW_DELETION, ANNOTATION_PAUSE, ANNOTATION_RESTART, ANNOTATION_RESUME_ROLLOUT,
    ANNOTATION_SKIP_DRAIN_CHECK,
};
use rmq_operator_api::{AutoExpandSpec, RetainPolicy, RocketMQCluster, ScaleInPolicy, UpdateType};
use std::collections::{BTreeMap, BTreeSet};

/// What a change of a configuration key takes. See [`crate::config_keys`].
pub type Classify<'a> = &'a dyn Fn(&str) -> crate::config_keys::KeyChange;

/// What shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Version of the programs.
    pub version: String,
    /// The NameServers.
    pub name_servers: NameServersWanted,
    /// The broker groups by index.
    pub groups: BTreeMap<i32, GroupWanted>,
    /// How pods are replaced.
    pub update: UpdateWanted,
    /// How groups are removed.
    pub scale_in: ScaleInWanted,
    /// Nothing but the status is written.
    pub paused: bool,
    /// All pods are stopped.
    pub hibernated: bool,
    /// The object is being deleted.
    pub deleting: bool,
    /// A deletion waits for a word of the user.
    pub deletion_blocked: bool,
    /// Whether disks go with the cluster.
    pub delete_volumes_with_cluster: bool,
    /// Replicas of each group that were asked for, whether or not they can run.
    pub replicas_asked: i32,
}

/// The NameServers that shall be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameServersWanted {
    /// How many run here.
    pub replicas: i32,
    /// Where brokers and clients find them, those of somebody else too. Never empty.
    pub addresses: Vec<String>,
    /// Their live keys.
    pub live_config: BTreeMap<String, String>,
}

/// A broker group that shall be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupWanted {
    /// Its name in routes.
    pub broker_name: String,
    /// Members that can run, the master counted.
    pub members: i32,
    /// Fewest members in sync with which it takes sends, within what can run.
    pub min_in_sync: i32,
    /// Its live keys.
    pub live_config: BTreeMap<String, String>,
    /// What the live keys are that were set once and are no longer asked for.
    pub live_defaults: BTreeMap<String, String>,
    /// Size of each disk.
    pub volume_bytes: u64,
    /// Growing by itself.
    pub expand: Option<ExpandWanted>,
}

/// A disk that grows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpandWanted {
    /// Thousandths of the disk in use at which it grows.
    pub threshold_permille: u32,
    /// By how much, bytes.
    pub step_bytes: u64,
    /// Up to which size, bytes.
    pub limit_bytes: u64,
}

/// How pods are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateWanted {
    /// By whom.
    pub kind: UpdateType,
    /// How many groups may be disturbed at the same time.
    pub max_unavailable_groups: usize,
    /// How long the first updated pod must be healthy, milliseconds.
    pub soak_millis: i64,
    /// Whether a roll stops when an updated pod does not become healthy.
    pub auto_pause: bool,
    /// Whether the user lets a halted roll go on.
    pub approved: bool,
    /// The restart token; pods with another one are rolled under `Supervised`.
    pub restart_token: Option<String>,
}

/// How groups are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleInWanted {
    /// What is waited for.
    pub policy: ScaleInPolicy,
    /// After which time draining is called late, milliseconds.
    pub timeout_millis: i64,
    /// Groups that are not waited for, by index.
    pub skip: BTreeSet<i32>,
    /// Whether disks of removed groups go.
    pub delete_volumes: bool,
}

impl Desired {
    /// What `cluster` asks for. `addresses` are those of its NameServers; `broker` and
    /// `name_server` say what a change of a key takes; `defaults` are the live keys' own values.
    #[must_use]
    pub fn of(
        cluster: &RocketMQCluster,
        addresses: Vec<String>,
        broker: Classify<'_>,
        name_server: Classify<'_>,
        defaults: &BTreeMap<String, String>,
    ) -> Self {
        let spec = &cluster.spec;
        let annotation = |key: &str| {
            let all = cluster.metadata.annotations.as_ref();
            all.and_then(|all| all.get(key)).map(String::as_str)
        };
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let deleting = cluster.metadata.deletion_timestamp.is_some();
        let allowed = annotation(ANNOTATION_ALLOW_DELETION) == Some(name.as_str());
        let groups = (0..spec.brokers.groups)
            .map(|index| (index, group(cluster, index, broker, defaults)))
            .collect();
        Self {
            name_servers: NameServersWanted {
                replicas: if spec.operation.hibernated {
                    0
                } else {
                    spec.own_name_servers()
                },
                addresses,
                live_config: live(&spec.name_server.config, name_server),
            },
            groups,
            update: UpdateWanted {
                kind: spec.update_strategy.kind,
                max_unavailable_groups: usize::try_from(
                    spec.update_strategy.max_unavailable_groups,
                )
                .unwrap_or(1)
                .max(1),
                soak_millis: whole_millis(spec.update_strategy.canary.soak.get()),
                auto_pause: spec.update_strategy.auto_pause_on_degraded,
                approved: annotation(ANNOTATION_RESUME_ROLLOUT) == Some("true"),
                restart_token: annotation(ANNOTATION_RESTART).map(str::to_owned),
            },
            scale_in: ScaleInWanted {
                policy: spec.scale_in.policy,
                timeout_millis: whole_millis(spec.scale_in.timeout.get()),
                skip: skipped(
                    annotation(ANNOTATION_SKIP_DRAIN_CHECK),
                    &spec.brokers.name_prefix,
                ),
                delete_volumes: spec.brokers.storage.retain_policy == RetainPolicy::Delete,
            },
            generation: cluster.metadata.generation.unwrap_or_default(),
            version: spec.version.clone(),
            paused: spec.operation.paused || annotation(ANNOTATION_PAUSE) == Some("true"),
            hibernated: spec.operation.hibernated,
            deleting,
            deletion_blocked: deleting && spec.deletion_policy.protect && !allowed,
            delete_volumes_with_cluster: spec.deletion_policy.pvc == RetainPolicy::Delete,
            replicas_asked: spec.brokers.replicas_per_group,
            name,
        }
    }

    /// The list that brokers get, in the form they take.
    #[must_use]
    pub fn name_server_list(&self) -> String {
        self.name_servers.addresses.join(";")
    }
}

fn group(
    cluster: &RocketMQCluster,
    index: i32,
    classify: Classify<'_>,
    defaults: &BTreeMap<String, String>,
) -> GroupWanted {
    let brokers = &cluster.spec.brokers;
    let members = cluster.spec.members_per_group();
    GroupWanted {
        broker_name: brokers.broker_name(index),
        members,
        min_in_sync: brokers.replication.min_in_sync.clamp(1, members.max(1)),
        live_config: live(&brokers.config_of(index), classify),
        live_defaults: defaults.clone(),
        volume_bytes: brokers.storage_size(index).bytes(),
        expand: brokers.storage.auto_expand.as_ref().map(expand),
    }
}

fn expand(spec: &AutoExpandSpec) -> ExpandWanted {
    ExpandWanted {
        threshold_permille: u32::try_from(spec.threshold_percent).unwrap_or(100) * 10,
        step_bytes: spec.step.bytes(),
        limit_bytes: spec.limit.bytes(),
    }
}

fn live(config: &BTreeMap<String, String>, classify: Classify<'_>) -> BTreeMap<String, String> {
    config
        .iter()
        .filter(|(key, _)| classify(key) == crate::config_keys::KeyChange::Live)
        .map(|(key, value)| (key.clone(), value.trim().to_owned()))
        .collect()
}

/// Broker names, separated by commas, as indexes.
fn skipped(text: Option<&str>, prefix: &str) -> BTreeSet<i32> {
    text.unwrap_or_default()
        .split(',')
        .filter_map(|name| {
            name.trim()
                .strip_prefix(prefix)?
                .strip_prefix('-')?
                .parse()
                .ok()
        })
        .collect()
}

fn whole_millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
