//! What a replica sends.
//!
//! | frame | bytes | layout |
//! |---|---|---|
//! | hello (ours) | 20 + n | `52 4d 51 48` · version i16 = 1 · group bytes n i16 · broker id i64 · master epoch i32 · group |
//! | handshake | 16 | state i32 = 1 · sync from last file i16 · async learner i16 · broker id i64 |
//! | transfer | 12 | state i32 = 2 · max offset i64 |
//!
//! A transfer is both acknowledgement and sign of life. The hello goes before the handshake, only to
//! a master that is known to be of this project: a Java master would refuse it.
//!
//! **Invariant:** every length is bounded by this file's constants before bytes are waited for.

use bytes::{BufMut, BytesMut};
use rmq_types::BrokerName;

use super::{HaError, STATE_HANDSHAKE, STATE_TRANSFER, Taken, at_least, i16_at, i32_at, i64_at};

/// Bytes of a handshake.
pub const REPLICA_HANDSHAKE_BYTES: usize = 16;
/// Bytes of an acknowledgement.
pub const REPLICA_TRANSFER_BYTES: usize = 12;
/// Bytes of a hello before the group's name.
pub const HELLO_HEAD_BYTES: usize = 20;
/// `RMQH`.
const HELLO: i32 = 0x524D_5148;
const HELLO_VERSION: i16 = 1;
const GROUP_BYTES_MAX: usize = 255;

/// Who a replica is and what it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its group.
    pub group: BrokerName,
    /// Its id from the controller.
    pub broker_id: i64,
    /// The epoch whose master it means to follow.
    pub master_epoch: i32,
}

/// A frame from a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaFrame {
    /// Ours, before the handshake.
    Hello(Hello),
    /// The beginning of Java's protocol.
    Handshake {
        /// An empty replica wants to begin with the newest file.
        sync_from_last_file: bool,
        /// It never enters the SyncStateSet.
        async_learner: bool,
        /// Its id from the controller.
        broker_id: i64,
    },
    /// Everything below is in its log.
    Transfer {
        /// The end of its log.
        max_offset: i64,
    },
}

impl ReplicaFrame {
    /// Appends the frame's bytes.
    pub fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Hello(hello) => {
                let group = hello.group.as_str().as_bytes();
                out.put_i32(HELLO);
                out.put_i16(HELLO_VERSION);
                // A name has at most 255 bytes.
                out.put_i16(group.len() as i16);
                out.put_i64(hello.broker_id);
                out.put_i32(hello.master_epoch);
                out.put_slice(group);
            }
            Self::Handshake {
                sync_from_last_file,
                async_learner,
                broker_id,
            } => {
                out.put_i32(STATE_HANDSHAKE);
                out.put_i16(i16::from(*sync_from_last_file));
                out.put_i16(i16::from(*async_learner));
                out.put_i64(*broker_id);
            }
            Self::Transfer { max_offset } => {
                out.put_i32(STATE_TRANSFER);
                out.put_i64(*max_offset);
            }
        }
    }
}

/// The frame that a replica's bytes begin with.
pub fn take_from_replica(buf: &[u8]) -> Result<Taken<ReplicaFrame>, HaError> {
    let Some(state) = i32_at(buf, 0) else {
        return Ok(Taken::Incomplete { needed: 4 });
    };
    match state {
        HELLO => take_hello(buf),
        STATE_HANDSHAKE => {
            let needed = REPLICA_HANDSHAKE_BYTES;
            let fields = (i16_at(buf, 4), i16_at(buf, 6), i64_at(buf, 8));
            let (Some(last_file), Some(learner), Some(broker_id)) = fields else {
                return Ok(Taken::Incomplete { needed });
            };
            let frame = ReplicaFrame::Handshake {
                sync_from_last_file: flag("syncFromLastFile", last_file)?,
                async_learner: flag("asyncLearner", learner)?,
                broker_id: at_least("the broker id", broker_id, 0)?,
            };
            Ok(Taken::Frame(frame, needed))
        }
        STATE_TRANSFER => {
            let needed = REPLICA_TRANSFER_BYTES;
            let Some(max_offset) = i64_at(buf, 4) else {
                return Ok(Taken::Incomplete { needed });
            };
            let max_offset = at_least("the acknowledged offset", max_offset, 0)?;
            Ok(Taken::Frame(ReplicaFrame::Transfer { max_offset }, needed))
        }
        other => Err(HaError::State(other)),
    }
}

fn take_hello(buf: &[u8]) -> Result<Taken<ReplicaFrame>, HaError> {
    let Some(version) = i16_at(buf, 4) else {
        return Ok(Taken::Incomplete {
            needed: HELLO_HEAD_BYTES,
        });
    };
    if version != HELLO_VERSION {
        return Err(HaError::Range {
            field: "the version of an introduction",
            value: i64::from(version),
        });
    }
    let Some(group_bytes) = i16_at(buf, 6) else {
        return Ok(Taken::Incomplete {
            needed: HELLO_HEAD_BYTES,
        });
    };
    let length = usize::try_from(group_bytes).ok();
    let length = length.filter(|length| (1..=GROUP_BYTES_MAX).contains(length));
    let length = length.ok_or(HaError::Group)?;
    let needed = HELLO_HEAD_BYTES + length;
    let fields = (i64_at(buf, 8), i32_at(buf, 16));
    let name = buf.get(HELLO_HEAD_BYTES..needed);
    let ((Some(broker_id), Some(master_epoch)), Some(name)) = (fields, name) else {
        return Ok(Taken::Incomplete { needed });
    };
    let name = std::str::from_utf8(name).map_err(|_| HaError::Group)?;
    let hello = Hello {
        group: BrokerName::parse(name).map_err(|_| HaError::Group)?,
        broker_id: at_least("the broker id", broker_id, 0)?,
        master_epoch,
    };
    Ok(Taken::Frame(ReplicaFrame::Hello(hello), needed))
}

fn flag(field: &'static str, value: i16) -> Result<bool, HaError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(HaError::Range {
            field,
            value: i64::from(value),
        }),
    }
}
