//! The JSON bodies of requests and answers, one struct per Java class, fields named as in Java.
//!
//! Every struct reads a missing or `null` field as Java's default and ignores keys it does not
//! know; a constant that Java does not have is an error. Fields are declared in alphabetical order,
//! which is the order Java writes.
//!
//! **Invariant:** `to_json` cannot fail; numeric map keys are written in quotes (every client reads
//! them) and object keys bare, as Java's tools need them. COMPAT.md says where and why.

mod connection;
mod group;
mod heartbeat;
mod inspect;
mod lists;
mod object_key;
mod offsets;
mod queue;
mod register;
mod replicas;
mod route;
mod static_topic;
mod stats;
#[cfg(test)]
mod tests;
mod topic;
mod version;

/// `to_json` and `from_json` of bodies that strict JSON with quoted keys can hold.
macro_rules! json_body {
    ($($name:ident),+ $(,)?) => {$(
        impl $name {
            /// The body's bytes.
            #[must_use]
            pub fn to_json(&self) -> Vec<u8> {
                $crate::json::to_vec(self)
            }

            /// Reads the body from what Java or another client wrote.
            pub fn from_json(body: &[u8]) -> Result<Self, $crate::json::JsonError> {
                $crate::json::object_from_slice(body)
            }
        }
    )+};
}
/// As [`json_body`], with the form for the broker's own files.
macro_rules! json_file {
    ($($name:ident),+ $(,)?) => {$(
        $crate::body::json_body!($name);
        impl $name {
            /// The text of the file in the broker's `config` folder, with line breaks.
            #[must_use]
            pub fn to_json_pretty(&self) -> Vec<u8> {
                $crate::json::to_vec_pretty(self)
            }
        }
    )+};
}
use {json_body, json_file};

pub use connection::{
    Connection, ConsumerConnection, ProducerConnection, ProducerInfo, ProducerTable,
};
pub use group::{
    CustomizedRetryPolicy, ExponentialRetryPolicy, GroupConfigList, GroupForbidden,
    GroupRetryPolicy, GroupRetryPolicyType, SimpleSubscription, SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
};
pub use heartbeat::{
    CheckClientRequest, ConsumeFromWhere, ConsumeType, ConsumerData, HeartbeatData, MessageModel,
    ProducerData, SubscriptionData,
};
pub use inspect::{
    ConsumeMessageDirectlyResult, ConsumeQueueData, ConsumeResult, ConsumeStatus,
    ConsumerRunningInfo, PopProcessQueueInfo, ProcessQueueInfo, QueryConsumeQueueResponse,
    QuerySubscriptionResponse,
};
pub use lists::{ConsumerIdList, GroupList, KvConfigFile, KvTable, TopicList};
pub use offsets::{
    ConsumerOffsets, ConsumerStatusBody, CorrectionOffsets, DelayOffsets, QueueOffsetForC,
    ResetOffsetBody, ResetOffsetBodyForC,
};
pub use queue::{
    LockBatchRequest, LockBatchResponse, MessageQueue, MessageQueueAssignment, MessageRequestMode,
    MessageRequestModes, QueryAssignmentRequest, QueryAssignmentResponse, SetMessageRequestMode,
};
pub use register::{RegisterBodyError, RegisterBrokerBody};
pub use replicas::{
    BrokerReplicasInfo, ElectMasterResponse, EpochEntry, EpochEntryCache, HaClientInfo,
    HaConnectionInfo, HaRuntimeInfo, ReplicaIdentity, ReplicasInfo, SyncStateSet,
};
pub use route::{
    BrokerData, BrokerMemberGroup, BrokerMemberGroupResponse, ClusterInfo, QueueData,
    TopicRouteData,
};
pub use static_topic::{
    LogicQueueMappingItem, TopicConfigAndQueueMapping, TopicQueueMappingDetail,
    TopicQueueMappingFile, TopicQueueMappingInfo,
};
pub use stats::{
    BrokerStatsData, BrokerStatsItem, ConsumeStats, ConsumeStatsList, ConsumeTimeSpan,
    OffsetWrapper, QueueTimeSpan, TopicOffset, TopicStatsTable,
};
pub use topic::{
    TopicConfig, TopicConfigFile, TopicConfigList, TopicConfigWrapper, TopicFilterType,
};
pub use version::DataVersion;
