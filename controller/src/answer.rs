//! Requests as handlers get them, and how answers are made.
//!
//! **Invariant:** every request that wants an answer gets exactly one; a refusal carries the code of
//! the Java controller and says what is wrong.

use std::sync::Arc;

use bytes::Bytes;
use rmq_controller_fsm::{AckPolicy, GroupView, Refusal as Refused};
use rmq_net::Connection;
use rmq_protocol::{
    body::SyncStateSet,
    header::{DecodeHeader, FieldError},
    json::JsonError,
    remoting::{Command, ExtFields, response_code},
};
use rmq_raft::ProposeError;
use rmq_types::{BrokerId, BrokerName, ClusterName, Moment, NameError};

/// A request off its io thread.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) conn: Arc<Connection>,
    pub(crate) code: i32,
    pub(crate) opaque: i32,
    pub(crate) ext: ExtFields<'static>,
    pub(crate) body: Bytes,
    /// When it was read.
    pub(crate) received: Moment,
}

/// The answer, or why it was refused.
pub(crate) type Handled = Result<Command, Refusal>;

impl Call {
    /// The typed header.
    pub(crate) fn fields<'a, T: DecodeHeader<'a>>(&'a self) -> Result<T, Refusal> {
        Ok(T::decode(&self.ext)?)
    }

    pub(crate) fn success(&self) -> Command {
        Command::success(self.opaque)
    }

    pub(crate) fn finish(&self, handled: Handled) -> Command {
        handled.unwrap_or_else(|refusal| {
            tracing::debug!(
                peer = %self.conn.peer_addr(), code = self.code, remark = refusal.remark,
                "request refused"
            );
            Command::response(self.opaque, refusal.code).with_remark(refusal.remark)
        })
    }
}

/// Why a request was not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i32,
    pub(crate) remark: String,
}

impl Refusal {
    pub(crate) fn new(code: i32, remark: impl Into<String>) -> Self {
        Self {
            code,
            remark: remark.into(),
        }
    }

    pub(crate) fn invalid(remark: impl Into<String>) -> Self {
        Self::new(response_code::CONTROLLER_INVALID_REQUEST, remark)
    }

    pub(crate) fn busy(error: &impl std::fmt::Display) -> Self {
        Self::new(response_code::SYSTEM_BUSY, error.to_string())
    }

    pub(crate) fn not_leader(leader: Option<&str>) -> Self {
        let remark = leader.map_or_else(
            || "this controller does not lead, and nobody is known to".to_owned(),
            |leader| format!("this controller does not lead; the leader is {leader}"),
        );
        Self::new(response_code::CONTROLLER_NOT_LEADER, remark)
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self::invalid(format!("the body cannot be read: {error}"))
    }
}

impl From<NameError> for Refusal {
    fn from(error: NameError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<&Refused> for Refusal {
    fn from(refused: &Refused) -> Self {
        Self::new(refused.code(), refused.to_string())
    }
}

impl From<ProposeError> for Refusal {
    fn from(error: ProposeError) -> Self {
        let code = match error {
            ProposeError::NotLeader => response_code::CONTROLLER_NOT_LEADER,
            ProposeError::Unknown => response_code::SYSTEM_ERROR,
            ProposeError::Busy => response_code::SYSTEM_BUSY,
        };
        Self::new(code, error.to_string())
    }
}

/// Cluster and group of a header.
pub(crate) fn names(cluster: &str, group: &str) -> Result<(ClusterName, BrokerName), Refusal> {
    Ok((ClusterName::parse(cluster)?, BrokerName::parse(group)?))
}

/// A broker id of the wire.
pub(crate) fn broker_id(id: i64) -> Result<BrokerId, Refusal> {
    let id = u64::try_from(id).map_err(|_| Refusal::invalid(format!("{id} is no broker id")))?;
    Ok(BrokerId::new(id))
}

/// An id as the wire has it.
pub(crate) fn wire_id(id: BrokerId) -> i64 {
    // Ids are counted up from 1.
    id.get() as i64
}

/// The set of a group as a body.
pub(crate) fn set_of(view: &GroupView) -> SyncStateSet {
    SyncStateSet {
        sync_state_set: view.set.iter().map(|id| wire_id(*id)).collect(),
        sync_state_set_epoch: view.set_epoch.get(),
    }
}

/// Members that acknowledge, as the wire has it.
pub(crate) fn acks_of(ack: AckPolicy) -> i32 {
    match ack {
        AckPolicy::Async => 1,
        AckPolicy::Quorum(acks) => i32::try_from(acks).unwrap_or(i32::MAX),
        AckPolicy::AllInSync => -1,
    }
}
