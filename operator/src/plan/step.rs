//! What can be done to a cluster, one thing at a time.
//!
//! **Invariant:** a step names everything it touches, with the UID of whatever it deletes, and can be
//! taken twice or by two operators at once without harm.

use rmq_types::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// A part of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Objects of no part.
    Shared,
    /// The NameServers.
    NameServers,
    /// A broker group.
    Group(i32),
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("shared objects"),
            Self::NameServers => f.write_str("NameServers"),
            Self::Group(index) => write!(f, "group {index}"),
        }
    }
}

/// Why a pod is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestartReason {
    /// It cannot run and has an old template.
    StuckWithOldTemplate,
    /// Its template is not the newest.
    TemplateChanged,
}

impl RestartReason {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StuckWithOldTemplate => "it cannot run and its template is not the newest",
            Self::TemplateChanged => "its template is not the newest",
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put our finalizer on the cluster.
    AddFinalizer,
    /// Take our finalizer from the cluster: nothing of it is left to clean up.
    RemoveFinalizer,
    /// Apply every object of a part that is missing or differs.
    Apply {
        /// The part.
        component: Component,
    },
    /// Send live keys to a NameServer and read them back.
    PushNameServerConfig {
        /// Its address.
        address: String,
        /// Keys and values.
        keys: BTreeMap<String, String>,
    },
    /// Send live keys to a broker and read them back.
    PushBrokerConfig {
        /// The group.
        group: i32,
        /// The pod's ordinal.
        ordinal: i32,
        /// Keys and values.
        keys: BTreeMap<String, String>,
    },
    /// Copy topics and consumer groups by protocol, and compare digests.
    CopyMetadata {
        /// Where they are.
        from: i32,
        /// Where they are missing.
        to: i32,
    },
    /// Let clients send to a group.
    OpenGroup {
        /// The group.
        group: i32,
        /// Ordinal of its master.
        ordinal: i32,
    },
    /// Let clients send to a group no more.
    CloseGroup {
        /// The group.
        group: i32,
        /// Ordinal of its master.
        ordinal: i32,
    },
    /// Write role labels of a pod.
    LabelPod {
        /// The group.
        group: i32,
        /// The pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// `rocketmq.rs/role`.
        role: &'static str,
        /// `rocketmq.rs/in-sync`.
        in_sync: bool,
        /// `rocketmq.rs/readable`.
        readable: bool,
        /// `rocketmq.rs/role-epoch`.
        epoch: i64,
    },
    /// Delete a pod, which its set then makes anew.
    RestartPod {
        /// The part.
        component: Component,
        /// The pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// Its ordinal.
        ordinal: i32,
        /// Why.
        why: RestartReason,
    },
    /// Ask for a larger disk.
    GrowVolume {
        /// The group.
        group: i32,
        /// The pod's ordinal.
        ordinal: i32,
        /// The claim.
        claim: String,
        /// Its new size, bytes.
        bytes: u64,
    },
    /// Delete a set and leave its pods, so that it is made anew with another claim template.
    RecreateSet {
        /// The group.
        group: i32,
        /// The set's UID.
        uid: String,
    },
    /// Delete a lost disk and its pod, so that the set makes both anew, empty.
    ReplaceVolume {
        /// The group.
        group: i32,
        /// The pod's ordinal.
        ordinal: i32,
        /// The claim and its UID, unless it is gone already.
        claim: Option<(String, String)>,
        /// The pod and its UID, unless it is gone already.
        pod: Option<(String, String)>,
    },
    /// Write into the group's status that it is drained, before anything of it goes.
    MarkDrained {
        /// The group.
        group: i32,
    },
    /// Delete the set of a drained group; its pods end in order and unregister.
    StopGroup {
        /// The group.
        group: i32,
        /// The set's UID.
        uid: String,
    },
    /// Take a broker that is gone from NameServers that still list it.
    Unregister {
        /// The group.
        group: i32,
        /// Its name in routes.
        broker_name: String,
        /// NameServers.
        from: Vec<String>,
    },
    /// Delete a disk, as the policy says.
    DeleteVolume {
        /// The group.
        group: i32,
        /// The claim.
        claim: String,
        /// Its UID.
        uid: String,
    },
    /// Delete every object that is left of a removed group.
    RemoveGroup {
        /// The group.
        group: i32,
    },
}

impl Step {
    /// Whether it takes something from service or cannot be undone.
    #[must_use]
    pub const fn is_disruptive(&self) -> bool {
        matches!(
            self,
            Self::RestartPod { .. }
                | Self::ReplaceVolume { .. }
                | Self::StopGroup { .. }
                | Self::Unregister { .. }
                | Self::DeleteVolume { .. }
                | Self::RemoveGroup { .. }
                | Self::RecreateSet { .. }
                | Self::CloseGroup { .. }
        )
    }

    /// Whether it rests on what may have changed since the plan was made, so that the guard has to
    /// see a fresh look right before: what cannot be undone, and the opening of a group.
    #[must_use]
    pub const fn needs_fresh_look(&self) -> bool {
        self.is_disruptive() || matches!(self, Self::OpenGroup { .. })
    }

    /// The part that it touches.
    #[must_use]
    pub const fn component(&self) -> Component {
        match self {
            Self::AddFinalizer | Self::RemoveFinalizer => Component::Shared,
            Self::Apply { component } | Self::RestartPod { component, .. } => *component,
            Self::PushNameServerConfig { .. } => Component::NameServers,
            Self::CopyMetadata { to, .. } => Component::Group(*to),
            Self::PushBrokerConfig { group, .. }
            | Self::OpenGroup { group, .. }
            | Self::CloseGroup { group, .. }
            | Self::LabelPod { group, .. }
            | Self::GrowVolume { group, .. }
            | Self::RecreateSet { group, .. }
            | Self::ReplaceVolume { group, .. }
            | Self::MarkDrained { group }
            | Self::StopGroup { group, .. }
            | Self::Unregister { group, .. }
            | Self::DeleteVolume { group, .. }
            | Self::RemoveGroup { group, .. } => Component::Group(*group),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => f.write_str("put the finalizer on the cluster"),
            Self::RemoveFinalizer => f.write_str("take the finalizer from the cluster"),
            Self::Apply { component } => write!(f, "apply objects of {component}"),
            Self::PushNameServerConfig { address, keys } => {
                write!(f, "send {} to NameServer {address}", names(keys))
            }
            Self::PushBrokerConfig {
                group,
                ordinal,
                keys,
            } => write!(
                f,
                "send {} to broker {ordinal} of group {group}",
                names(keys)
            ),
            Self::CopyMetadata { from, to } => {
                write!(
                    f,
                    "copy topics and consumer groups from group {from} to group {to}"
                )
            }
            Self::OpenGroup { group, .. } => write!(f, "let clients send to group {group}"),
            Self::CloseGroup { group, .. } => {
                write!(f, "let clients send to group {group} no more")
            }
            Self::LabelPod { pod, role, .. } => write!(f, "label pod {pod} as {role}"),
            Self::RestartPod { pod, why, .. } => {
                write!(f, "restart pod {pod}: {}", why.as_str())
            }
            Self::GrowVolume { claim, bytes, .. } => {
                write!(f, "grow volume {claim} to {bytes} bytes")
            }
            Self::RecreateSet { group, .. } => {
                write!(
                    f,
                    "make the StatefulSet of group {group} anew for the larger volumes"
                )
            }
            Self::ReplaceVolume { group, ordinal, .. } => write!(
                f,
                "replace the lost volume of member {ordinal} of group {group} by an empty one"
            ),
            Self::MarkDrained { group } => write!(f, "note that group {group} is drained"),
            Self::StopGroup { group, .. } => write!(f, "stop group {group}, which is drained"),
            Self::Unregister {
                broker_name, from, ..
            } => {
                write!(f, "unregister {broker_name} at {}", from.join(", "))
            }
            Self::DeleteVolume { claim, .. } => write!(f, "delete volume {claim}"),
            Self::RemoveGroup { group } => write!(f, "remove what is left of group {group}"),
        }
    }
}

fn names(keys: &BTreeMap<String, String>) -> String {
    keys.keys().cloned().collect::<Vec<_>>().join(", ")
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The part.
    pub component: Component,
    /// The pod, if one is meant.
    pub pod: Option<String>,
    /// Which kind of wait.
    pub kind: WaitKind,
    /// Why, in one sentence.
    pub reason: String,
    /// When it is late, if that is known from the cluster.
    pub deadline: Option<Timestamp>,
}

/// Which kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// Pods start for the first time.
    Provisioning,
    /// A roll waits for a pod or for time to pass.
    Rollout,
    /// A roll was stopped.
    RolloutHalted,
    /// Somebody has to approve.
    Approval,
    /// A group drains.
    Drain,
    /// A group is not opened yet.
    Opening,
    /// A disk grows.
    Volume,
    /// NameServers come or go.
    Scaling,
    /// Configuration cannot be sent.
    Config,
    /// A deletion is protected.
    Deletion,
    /// The guard forbade a step.
    Refused,
}

impl WaitKind {
    /// After how many milliseconds a wait of this kind is late: a condition and an event say so.
    /// No wait is without an end.
    #[must_use]
    pub const fn late_after_millis(self) -> i64 {
        const MINUTE: i64 = 60_000;
        match self {
            Self::Provisioning | Self::Opening | Self::Scaling | Self::Config => 10 * MINUTE,
            Self::Refused | Self::Rollout | Self::Volume => 30 * MINUTE,
            Self::RolloutHalted | Self::Approval | Self::Deletion | Self::Drain => 24 * 60 * MINUTE,
        }
    }
}
