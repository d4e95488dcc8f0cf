//! Controller requests (1001–1013), the role notice to brokers (1008) and the heartbeat (904) with
//! what brokers of this project add to it.
//!
//! Fields that begin with `rmq` are ours: Java brokers and controllers ignore them, and their
//! absence says that the other side is Java. Bodies are in `body`: `SyncStateSet`,
//! `ElectMasterResponse`, `BrokerReplicasInfo`, `EpochEntryCache`.

use std::borrow::Cow;

use super::field::headers;

/// Controller to broker, one-way, ours: send a heartbeat at once, with this round.
pub const REPORT_NOW: i32 = 10_901;
/// Operator or administrator to master, ours: refuse writes for a while, with expiry.
pub const FENCE_WRITES: i32 = 10_902;

headers! {
    /// `CONTROLLER_ALTER_SYNC_STATE_SET` (1001); body `SyncStateSet`.
    pub struct AlterSyncStateSet<'a> {
        broker_name: Cow<'a, str> = "brokerName",
        master_broker_id: i64 = "masterBrokerId",
        master_epoch: i32 = "masterEpoch",
        invoke_time: i64 = "invokeTime" or 0,
        /// Ours: the set is the present one, and only its epoch is to move on.
        renew: Option<bool> = "rmqRenew",
    }

    /// Answer to [`AlterSyncStateSet`]; body `SyncStateSet`.
    pub struct AlterSyncStateSetResponse {
        new_sync_state_set_epoch: i32 = "newSyncStateSetEpoch" or 0,
    }

    /// `CONTROLLER_ELECT_MASTER` (1002).
    pub struct ElectMaster<'a> {
        cluster_name: Cow<'a, str> = "clusterName" or Cow::Borrowed(""),
        broker_name: Cow<'a, str> = "brokerName" or Cow::Borrowed(""),
        /// −1: whoever fits.
        broker_id: i64 = "brokerId" or -1,
        /// This id and no other.
        designate_elect: bool = "designateElect",
        invoke_time: i64 = "invokeTime" or 0,
        /// Ours: elect only if this epoch is in force.
        expected_master_epoch: Option<i32> = "rmqExpectedMasterEpoch",
        /// Ours: acknowledged messages may be lost.
        acknowledge_data_loss: Option<bool> = "rmqAcknowledgeDataLoss",
    }

    /// Answer to [`ElectMaster`] (body `ElectMasterResponse`).
    pub struct ElectMasterResponse<'a> {
        master_broker_id: Option<i64> = "masterBrokerId",
        master_address: Option<Cow<'a, str>> = "masterAddress",
        master_epoch: Option<i32> = "masterEpoch",
        sync_state_set_epoch: Option<i32> = "syncStateSetEpoch",
    }

    /// `CONTROLLER_REGISTER_BROKER` (1003).
    pub struct RegisterBrokerToController<'a> {
        cluster_name: Cow<'a, str> = "clusterName",
        broker_name: Cow<'a, str> = "brokerName",
        broker_id: i64 = "brokerId",
        broker_address: Cow<'a, str> = "brokerAddress",
        invoke_time: i64 = "invokeTime" or 0,
    }

    /// Answer to [`RegisterBrokerToController`] (body `SyncStateSet`). The master's fields are there
    /// only if it is alive.
    pub struct RegisterBrokerToControllerResponse<'a> {
        cluster_name: Option<Cow<'a, str>> = "clusterName",
        broker_name: Option<Cow<'a, str>> = "brokerName",
        master_broker_id: Option<i64> = "masterBrokerId",
        master_address: Option<Cow<'a, str>> = "masterAddress",
        master_epoch: Option<i32> = "masterEpoch",
        sync_state_set_epoch: Option<i32> = "syncStateSetEpoch",
    }

    /// `CONTROLLER_GET_REPLICA_INFO` (1004).
    pub struct GetReplicaInfo<'a> {
        broker_name: Cow<'a, str> = "brokerName",
    }

    /// Answer to [`GetReplicaInfo`] (body `SyncStateSet`).
    pub struct GetReplicaInfoResponse<'a> {
        master_broker_id: Option<i64> = "masterBrokerId",
        master_address: Option<Cow<'a, str>> = "masterAddress",
        master_epoch: Option<i32> = "masterEpoch",
    }

    /// Answer to `CONTROLLER_GET_METADATA_INFO` (1005), which has no header.
    pub struct GetControllerMetadataResponse<'a> {
        group: Option<Cow<'a, str>> = "group",
        controller_leader_id: Option<Cow<'a, str>> = "controllerLeaderId",
        controller_leader_address: Option<Cow<'a, str>> = "controllerLeaderAddress",
        is_leader: bool = "isLeader",
        /// `n0:host:port;n1:host:port`.
        peers: Option<Cow<'a, str>> = "peers",
    }

    /// `NOTIFY_BROKER_ROLE_CHANGED` (1008), controller to broker, one-way; body `SyncStateSet`.
    pub struct NotifyBrokerRoleChanged<'a> {
        master_address: Option<Cow<'a, str>> = "masterAddress",
        master_epoch: Option<i32> = "masterEpoch",
        sync_state_set_epoch: Option<i32> = "syncStateSetEpoch",
        master_broker_id: Option<i64> = "masterBrokerId",
    }

    /// `CLEAN_BROKER_DATA` (1011).
    pub struct CleanControllerBrokerData<'a> {
        cluster_name: Option<Cow<'a, str>> = "clusterName",
        broker_name: Cow<'a, str> = "brokerName",
        /// Ids with `;` between; see [`broker_ids_to_clean`].
        broker_controller_ids_to_clean: Option<Cow<'a, str>> = "brokerControllerIdsToClean",
        is_clean_living_broker: bool = "isCleanLivingBroker",
        invoke_time: i64 = "invokeTime" or 0,
    }

    /// `CONTROLLER_GET_NEXT_BROKER_ID` (1012).
    pub struct GetNextBrokerId<'a> {
        cluster_name: Cow<'a, str> = "clusterName",
        broker_name: Cow<'a, str> = "brokerName",
    }

    /// Answer to [`GetNextBrokerId`].
    pub struct GetNextBrokerIdResponse<'a> {
        cluster_name: Option<Cow<'a, str>> = "clusterName",
        broker_name: Option<Cow<'a, str>> = "brokerName",
        next_broker_id: Option<i64> = "nextBrokerId",
    }

    /// `CONTROLLER_APPLY_BROKER_ID` (1013).
    pub struct ApplyBrokerId<'a> {
        cluster_name: Cow<'a, str> = "clusterName",
        broker_name: Cow<'a, str> = "brokerName",
        applied_broker_id: i64 = "appliedBrokerId",
        /// `address;millis`.
        register_check_code: Cow<'a, str> = "registerCheckCode",
    }

    /// Answer to [`ApplyBrokerId`].
    pub struct ApplyBrokerIdResponse<'a> {
        cluster_name: Option<Cow<'a, str>> = "clusterName",
        broker_name: Option<Cow<'a, str>> = "brokerName",
    }

    /// `BROKER_HEARTBEAT` (904) to a controller. Java's fields are those of [`super::BrokerHeartbeat`].
    pub struct ControllerHeartbeat<'a> {
        cluster_name: Option<Cow<'a, str>> = "clusterName",
        broker_addr: Option<Cow<'a, str>> = "brokerAddr",
        broker_name: Option<Cow<'a, str>> = "brokerName",
        broker_id: Option<i64> = "brokerId",
        epoch: Option<i32> = "epoch",
        max_offset: Option<i64> = "maxOffset",
        confirm_offset: Option<i64> = "confirmOffset",
        heartbeat_timeout_mills: Option<i64> = "heartbeatTimeoutMills",
        election_priority: Option<i32> = "electionPriority",
        /// Another number after each start of the process; its presence says that the sender fences
        /// itself before it closes the connection.
        incarnation: Option<i64> = "rmqIncarnation",
        /// Counts the heartbeats of an incarnation.
        sequence: Option<i64> = "rmqSequence",
        /// The last round seen in an answer or in [`REPORT_NOW`].
        round: Option<i64> = "rmqRound",
        /// No writes are taken, and none will be before a later heartbeat is confirmed.
        fenced: Option<bool> = "rmqFenced",
        /// The master epoch whose set holds everything, with the next field.
        settled_master_epoch: Option<i32> = "rmqSettledMasterEpoch",
        /// The epoch of that set.
        settled_set_epoch: Option<i32> = "rmqSettledSetEpoch",
        /// The sender is said to be master of this epoch and was started anew since.
        declined_master_epoch: Option<i32> = "rmqDeclinedMasterEpoch",
        /// Bytes that were acknowledged may be missing.
        may_lack: Option<bool> = "rmqMayLack",
    }

    /// Answer to [`ControllerHeartbeat`] (body `SyncStateSet`); a Java controller answers nothing of
    /// it.
    pub struct ControllerHeartbeatResponse<'a> {
        /// The sender is master and may take writes for a lease from its sending of the request.
        lease: Option<bool> = "rmqLease",
        /// How long, in milliseconds.
        lease_millis: Option<i64> = "rmqLeaseMillis",
        /// To be repeated.
        round: Option<i64> = "rmqRound",
        /// The master's election may have lost messages, which somebody acknowledged.
        unclean: Option<bool> = "rmqUnclean",
        /// Members that acknowledge a message at least, the master included; −1 for the whole set.
        acks: Option<i32> = "rmqAcks",
        master_broker_id: Option<i64> = "masterBrokerId",
        master_address: Option<Cow<'a, str>> = "masterAddress",
        master_epoch: Option<i32> = "masterEpoch",
        sync_state_set_epoch: Option<i32> = "syncStateSetEpoch",
    }

    /// [`REPORT_NOW`].
    pub struct ReportNow<'a> {
        broker_name: Cow<'a, str> = "brokerName",
        round: i64 = "rmqRound",
    }

    /// [`FENCE_WRITES`].
    pub struct FenceWrites<'a> {
        /// Names the operation; the same one may renew or lift its fence.
        operation: Cow<'a, str> = "operation",
        /// The epoch that is to be fenced.
        master_epoch: i32 = "masterEpoch",
        /// How long, in milliseconds from the receipt; 0 lifts the fence.
        millis: i64 = "millis",
    }

    /// Answer to [`FenceWrites`].
    pub struct FenceWritesResponse {
        /// End of the log after the last write that was taken.
        fenced_offset: i64 = "fencedOffset",
    }
}

/// The ids of `brokerControllerIdsToClean`; `None` for text that is no list of ids.
#[must_use]
pub fn broker_ids_to_clean(text: &str) -> Option<Vec<i64>> {
    let parts = text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| part.parse().ok().filter(|id| *id >= 0))
        .collect()
}
