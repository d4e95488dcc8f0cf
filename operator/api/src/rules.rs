//! Texts of rules that stand twice: as a CEL rule of the schema and in `validate`.
//!
//! **Invariant:** admission and the operator refuse with the same words.

/// `metadata.name` with `brokers.namePrefix`.
pub const NAMES_TOGETHER: &str = "metadata.name and brokers.namePrefix must be at most 47 characters \
                                  together: names of StatefulSets are made from both";
/// `controller.replicas`.
pub const CONTROLLERS_ODD: &str = "controller.replicas must be odd";
/// `brokers.replication.minInSync`.
pub const MIN_IN_SYNC: &str =
    "replication.minInSync must be at most replicasPerGroup + 1: a group has no more members";
/// `brokers.storage.autoExpand.limit`.
pub const EXPAND_LIMIT: &str = "autoExpand.limit must be at least storage.size";
/// `brokers.storage.size`.
pub const SIZE_NOT_ZERO: &str = "storage.size must be more than nothing";
/// `resources`.
pub const MEMORY_LIMIT: &str = "resources.limits.memory must be at least resources.requests.memory";
/// `resources` of a broker.
pub const BROKER_MEMORY: &str =
    "memory of a broker must be at least 128Mi: with less it is killed at its start";
/// `resources` of a NameServer.
pub const NAME_SERVER_MEMORY: &str =
    "memory of a NameServer must be at least 32Mi: with less it is killed at its start";
/// `image`.
pub const TAG_OR_DIGEST: &str = "give image.tag or image.digest, not both";
/// `podTemplate.hostNetwork`.
pub const HOST_NETWORK: &str = "hostNetwork needs podTemplate.allowHostAccess: true";
/// `podTemplate.volumes`.
pub const HOST_PATH: &str = "a hostPath volume needs podTemplate.allowHostAccess: true";
/// `podTemplate.volumes[]`.
pub const ONE_VOLUME_SOURCE: &str =
    "give exactly one of configMap, secret, emptyDirSize and hostPath";
/// `listeners`.
pub const ONE_LISTENER: &str =
    "give one listener: a broker registers one address, which every client gets";
/// `listeners[].port` of a NodePort.
pub const NODE_PORT_RANGE: &str = "port of a NodePort listener must be from 30000 to 32767";
/// `listeners[].advertised`.
pub const TEMPLATE_GIVEN: &str =
    "advertised.template must be given with from: Template, and only then";
/// `listeners[].advertised`.
pub const ANNOTATION_GIVEN: &str =
    "advertised.annotation must be given with from: Annotation, and only then";
/// `networkPolicy.allowFrom[]`.
pub const ONE_PEER: &str = "give cidr or labels (namespaces, pods), not both and not neither";
/// `brokers.groups`.
pub const SHRINK_BY_ONE: &str =
    "groups may shrink by one at a time: a group drains first (scaleIn.policy Force lifts this)";
/// `scaleIn`.
pub const SCALE_IN_TIMEOUT: &str = "scaleIn.timeout must be at least 1m";
/// `updateStrategy.canary`.
pub const SOAK_TOO_LONG: &str = "updateStrategy.canary.soak must be at most 24h";
/// `brokers.terminationGracePeriod`.
pub const GRACE_BOUNDS: &str = "terminationGracePeriod must be from 5s to 1h";
/// Topic: `readQueues`.
pub const READ_QUEUES: &str =
    "readQueues must be at least writeQueues: what is written to a queue must be read from it";
/// Topic: `type` with retries.
pub const NOT_A_SYSTEM_NAME: &str =
    "the name belongs to the system: names with %RETRY%, %DLQ% or rmq_sys_ are made by brokers";
/// Operation: what each type needs.
pub const SWITCHOVER_NEEDS_GROUP: &str = "a Switchover needs group";
/// Operation: what each type needs.
pub const DRAIN_NEEDS_GROUP: &str = "a DrainGroup needs group";
/// Operation: what each type needs.
pub const REPLACE_NEEDS_POD: &str = "a ReplaceReplica needs pod";
/// Operation: what each type needs.
pub const FORCE_ELECT_NEEDS: &str =
    "a ForceElect needs group, pod and acknowledgeDataLoss: true: messages may be lost";
/// Operation.
pub const OPERATION_IMMUTABLE: &str = "an Operation cannot be changed: delete it and make another";
