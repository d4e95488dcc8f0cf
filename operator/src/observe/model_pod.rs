//! A pod as the plan sees it, and why one cannot run.
//!
//! **Invariant:** a pod is stuck for a named reason within 30 seconds or not at all: states that
//! every start goes through count only after that time.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use rmq_operator_api::keys::{ANNOTATION_ROLE_EPOCH, LABEL_IN_SYNC, LABEL_READABLE, LABEL_ROLE};
use rmq_operator_api::{ConditionReason, MemberRole};
use rmq_types::Timestamp;

/// How long a state that every start goes through is not called stuck.
pub const STUCK_AFTER_MILLIS: i64 = 30_000;
/// How long a started container may be unready before that is called a fault.
pub const UNREADY_AFTER_MILLIS: i64 = 600_000;
/// Restarts of a container from which a waiting one is called a crash loop.
const CRASH_RESTARTS: i32 = 2;

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSeen {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Its number in its set.
    pub ordinal: i32,
    /// Revision of its template.
    pub revision: Option<String>,
    /// Version of the program it runs (label).
    pub version: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Since when it is ready.
    pub ready_since: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its node.
    pub node: Option<String>,
    /// How often its containers were started again.
    pub restarts: i32,
    /// Why it cannot run.
    pub stuck: Option<Stuck>,
    /// Its role labels.
    pub labels: RoleLabels,
    /// Whether its disk shall be replaced (annotation).
    pub replace_asked: bool,
    /// The restart token of the cluster when it was made (annotation).
    pub restart_token: Option<String>,
}

/// The labels that Services of a group select by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleLabels {
    /// `rocketmq.rs/role`.
    pub role: Option<String>,
    /// `rocketmq.rs/in-sync`.
    pub in_sync: bool,
    /// `rocketmq.rs/readable`.
    pub readable: bool,
    /// The epoch that they belong to.
    pub epoch: i64,
}

/// Why a pod cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// In one word.
    pub reason: StuckReason,
    /// In Kubernetes' words, shortened.
    pub message: String,
}

/// Why a pod cannot run, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StuckReason {
    /// Its container ends again and again.
    CrashLoop,
    /// Its container was killed for its memory.
    OomKilled,
    /// No node takes it.
    Unschedulable,
    /// Its image cannot be had.
    ImagePull,
    /// Its container cannot be made as described.
    ConfigError,
    /// Its disk is held by another node or cannot be mounted.
    VolumeAttach,
    /// Its disk is gone.
    VolumeLost,
    /// Its node does not answer.
    NodeLost,
    /// It runs and does not become ready.
    NotReady,
}

impl StuckReason {
    /// As a reason of the condition `Degraded`.
    #[must_use]
    pub const fn condition(self) -> ConditionReason {
        match self {
            Self::CrashLoop => ConditionReason::PodCrashLoop,
            Self::OomKilled => ConditionReason::OOMKilled,
            Self::Unschedulable => ConditionReason::Unschedulable,
            Self::ImagePull => ConditionReason::ImagePullFailed,
            Self::ConfigError => ConditionReason::ContainerConfigError,
            Self::VolumeAttach => ConditionReason::VolumeAttachConflict,
            Self::VolumeLost => ConditionReason::VolumeLost,
            Self::NodeLost => ConditionReason::NodeLost,
            Self::NotReady => ConditionReason::NotReady,
        }
    }
}

impl PodSeen {
    /// Ready, and not about to go.
    #[must_use]
    pub const fn is_healthy(&self) -> bool {
        self.ready && !self.deleting
    }

    /// Whether its template is not the newest; unknown revisions are not.
    #[must_use]
    pub fn is_outdated(&self, newest: Option<&str>) -> bool {
        matches!((self.revision.as_deref(), newest), (Some(has), Some(newest)) if has != newest)
    }

    /// From the object. `warnings` are reason and message of its recent Warning events; the ordinal
    /// is the number at the end of its name.
    #[must_use]
    pub fn of(pod: &Pod, warnings: &[(String, String)], now: Timestamp) -> Self {
        let meta = &pod.metadata;
        let label = |key: &str| meta.labels.as_ref().and_then(|all| all.get(key)).cloned();
        let annotation = |key: &str| {
            let all = meta.annotations.as_ref();
            all.and_then(|all| all.get(key)).cloned()
        };
        let name = meta.name.clone().unwrap_or_default();
        let ready = condition(pod, "Ready");
        let is_ready = ready.is_some_and(|c| c.status == "True");
        let created_at = meta
            .creation_timestamp
            .as_ref()
            .map_or(now, |time| millis(&time.0));
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            ordinal: name
                .rsplit('-')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or_default(),
            name,
            revision: label("controller-revision-hash"),
            version: label("app.kubernetes.io/version"),
            ready: is_ready,
            ready_since: ready
                .filter(|_| is_ready)
                .and_then(|c| c.last_transition_time.as_ref())
                .map(|time| millis(&time.0)),
            created_at,
            deleting: meta.deletion_timestamp.is_some(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            restarts: containers(pod).map(|c| c.restart_count).sum(),
            stuck: if is_ready {
                None
            } else {
                stuck(pod, warnings, now.since(created_at))
            },
            labels: RoleLabels {
                role: label(LABEL_ROLE),
                in_sync: label(LABEL_IN_SYNC).as_deref() == Some("true"),
                readable: label(LABEL_READABLE).as_deref() == Some("true"),
                epoch: annotation(ANNOTATION_ROLE_EPOCH)
                    .and_then(|epoch| epoch.parse().ok())
                    .unwrap_or_default(),
            },
            replace_asked: annotation(rmq_operator_api::keys::ANNOTATION_REPLACE).as_deref()
                == Some("pvc"),
            restart_token: annotation(rmq_operator_api::keys::ANNOTATION_RESTART),
        }
    }
}

/// The word of a role label.
#[must_use]
pub const fn role_label(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Master => "master",
        MemberRole::Replica => "replica",
        MemberRole::Joining => "joining",
        MemberRole::Unknown => "unhealthy",
    }
}

fn millis(time: &k8s_openapi::jiff::Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millisecond())
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let status = pod.status.as_ref()?;
    status.conditions.as_ref()?.iter().find(|c| c.type_ == kind)
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|s| s.init_container_statuses.as_ref());
    let main = status.and_then(|s| s.container_statuses.as_ref());
    init.into_iter().flatten().chain(main.into_iter().flatten())
}

fn stuck(pod: &Pod, warnings: &[(String, String)], age: i64) -> Option<Stuck> {
    let found = |reason: StuckReason, message: &str| {
        let message = message.chars().take(256).collect();
        Some(Stuck { reason, message })
    };
    if let Some(status) = &pod.status
        && status.reason.as_deref() == Some("NodeLost")
    {
        return found(StuckReason::NodeLost, "its node does not answer");
    }
    for container in containers(pod) {
        if let Some(stuck) = container_stuck(container) {
            return Some(stuck);
        }
    }
    if age < STUCK_AFTER_MILLIS {
        return None;
    }
    if let Some(scheduled) = condition(pod, "PodScheduled").filter(|c| c.status == "False") {
        let message = scheduled.message.as_deref().unwrap_or("no node takes it");
        let lost = message.contains("persistentvolumeclaim") && message.contains("not found");
        let reason = if lost {
            StuckReason::VolumeLost
        } else {
            StuckReason::Unschedulable
        };
        return found(reason, message);
    }
    if let Some((_, message)) = warnings.iter().find(|(reason, _)| {
        matches!(
            reason.as_str(),
            "FailedAttachVolume" | "FailedMount" | "FailedMapVolume"
        )
    }) {
        return found(StuckReason::VolumeAttach, message);
    }
    if condition(pod, "Ready").and_then(|c| c.reason.as_deref()) == Some("NodeStatusUnknown")
        || condition(pod, "Ready").is_some_and(|c| c.status == "Unknown")
    {
        return found(StuckReason::NodeLost, "its node does not answer");
    }
    if age >= UNREADY_AFTER_MILLIS {
        return found(StuckReason::NotReady, "it runs and does not become ready");
    }
    None
}

fn container_stuck(container: &ContainerStatus) -> Option<Stuck> {
    let last_end = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    let oom = last_end.is_some_and(|end| end.reason.as_deref() == Some("OOMKilled"));
    let state = container.state.as_ref()?;
    if let Some(end) = &state.terminated {
        let reason = match end.reason.as_deref() {
            Some("OOMKilled") => StuckReason::OomKilled,
            _ if container.restart_count >= CRASH_RESTARTS => StuckReason::CrashLoop,
            _ => return None,
        };
        let message = format!("its container ended with {}", end.exit_code);
        return Some(Stuck { reason, message });
    }
    let waiting = state.waiting.as_ref()?;
    let said = waiting.message.as_deref().unwrap_or_default();
    let reason = match waiting.reason.as_deref().unwrap_or_default() {
        "CrashLoopBackOff" if oom => StuckReason::OomKilled,
        "CrashLoopBackOff" => StuckReason::CrashLoop,
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => {
            StuckReason::ImagePull
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            StuckReason::ConfigError
        }
        _ => return None,
    };
    let message = match (reason, last_end) {
        (StuckReason::OomKilled, _) => "its container was killed for its memory".to_owned(),
        (StuckReason::CrashLoop, Some(end)) => {
            format!("its container ended with {}", end.exit_code)
        }
        _ => said.chars().take(256).collect(),
    };
    Some(Stuck { reason, message })
}

#[cfg(test)]
mod tests;
