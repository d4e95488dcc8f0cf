//! Labels, annotations, finalizers and field managers that the operator reads and writes.
//!
//! **Invariant:** every name that more than one module or a user spells stands here once.

/// Label: name of the `RocketMQCluster`.
pub const LABEL_CLUSTER: &str = "rocketmq.rs/cluster";
/// Label: index of the broker group.
pub const LABEL_GROUP: &str = "rocketmq.rs/group";
/// Label of a broker's pod: `master`, `replica`, `joining` or `unhealthy`.
pub const LABEL_ROLE: &str = "rocketmq.rs/role";
/// Label of a broker's pod: whether it is in the set of members in sync.
pub const LABEL_IN_SYNC: &str = "rocketmq.rs/in-sync";
/// Label of a broker's pod: whether consumers may read from it.
pub const LABEL_READABLE: &str = "rocketmq.rs/readable";
/// Kubernetes' own label for the part of an application.
pub const LABEL_COMPONENT: &str = "app.kubernetes.io/component";

/// Annotation of a pod: the epoch that its role label belongs to.
pub const ANNOTATION_ROLE_EPOCH: &str = "rocketmq.rs/role-epoch";
/// Annotation of the cluster: a new value restarts every pod in order.
pub const ANNOTATION_RESTART: &str = "rocketmq.rs/restart";
/// Annotation of the cluster: `true` does what `operation.paused` does.
pub const ANNOTATION_PAUSE: &str = "rocketmq.rs/pause";
/// Annotation of the cluster: `true` lets a halted roll go on.
pub const ANNOTATION_RESUME_ROLLOUT: &str = "rocketmq.rs/resume-rollout";
/// Annotation of the cluster: names a group whose draining is not waited for.
pub const ANNOTATION_SKIP_DRAIN_CHECK: &str = "rocketmq.rs/skip-drain-check";
/// Annotation of a pod: `pvc` replaces its lost or unusable disk by an empty one.
pub const ANNOTATION_REPLACE: &str = "rocketmq.rs/replace";
/// Annotation of the cluster: its own name lets a protected deletion go on.
pub const ANNOTATION_ALLOW_DELETION: &str = "rocketmq.rs/allow-deletion";
/// Annotation of objects: hash of what was applied, to see drift without a write.
pub const ANNOTATION_APPLIED_HASH: &str = "rocketmq.rs/applied-hash";
/// Annotation of a pod template: hash of the configuration keys that need a restart.
pub const ANNOTATION_CONFIG_HASH: &str = "rocketmq.rs/config-hash";

/// Finalizer of the cluster: deletion protection and the disks' policy.
pub const FINALIZER_CLUSTER: &str = "rocketmq.rs/cluster-cleanup";
/// Finalizer of a Topic or ConsumerGroup: what brokers have goes first.
pub const FINALIZER_BROKER_OBJECT: &str = "rocketmq.rs/broker-cleanup";

/// Field manager of objects.
pub const MANAGER_OBJECTS: &str = "rmq-operator";
/// Field manager of status.
pub const MANAGER_STATUS: &str = "rmq-operator-status";
/// Field manager of role labels.
pub const MANAGER_ROUTING: &str = "rmq-operator-routing";
