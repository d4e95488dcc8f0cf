//! What a master sends.
//!
//! | frame | bytes | layout |
//! |---|---|---|
//! | handshake | 20 + 12·n | state i32 = 1 · body bytes i32 · max offset i64 · last epoch i32 · n × (epoch i32 · start offset i64) |
//! | transfer | 36 + n | state i32 = 2 · body bytes n i32 · offset i64 · epoch i32 · epoch start i64 · confirm offset i64 · n bytes of the log |
//!
//! A transfer without bytes is a sign of life and brings the confirm offset. The bytes of one
//! transfer are of one epoch.
//!
//! **Invariant:** a body is waited for only when its length is inside its bound.

use bytes::{BufMut, BytesMut};

use super::{
    EPOCHS_MAX, EpochStart, HaError, STATE_HANDSHAKE, STATE_TRANSFER, Taken, at_least,
    check_epochs, i32_at, i64_at,
};

/// Bytes of a handshake before its epochs.
pub const HANDSHAKE_HEAD_BYTES: usize = 20;
/// Bytes of a transfer before its part of the log.
pub const TRANSFER_HEAD_BYTES: usize = 36;
/// Longest part of the log in one transfer. Java sends 32 KiB.
pub const TRANSFER_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
const EPOCH_BYTES: usize = 12;

/// The numbers of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferHead {
    /// Where the bytes belong in the log.
    pub offset: i64,
    /// Their epoch.
    pub epoch: i32,
    /// Where the epoch began.
    pub epoch_start: i64,
    /// What the master's set has; −1 when a Java master does not know yet.
    pub confirm_offset: i64,
}

impl TransferHead {
    /// Appends the head of a transfer of `body_bytes`, which the caller appends or sends after it.
    pub fn write(&self, body_bytes: u32, out: &mut BytesMut) {
        out.put_i32(STATE_TRANSFER);
        out.put_u32(body_bytes);
        out.put_i64(self.offset);
        out.put_i32(self.epoch);
        out.put_i64(self.epoch_start);
        out.put_i64(self.confirm_offset);
    }
}

/// A frame from a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterFrame<'a> {
    /// The answer to a handshake.
    Handshake {
        /// The end of the master's log.
        max_offset: i64,
        /// Its epoch.
        last_epoch: i32,
        /// All epochs of its log, oldest first.
        epochs: Vec<EpochStart>,
    },
    /// A part of the log.
    Transfer {
        /// Where it belongs.
        head: TransferHead,
        /// The bytes; none for a sign of life.
        body: &'a [u8],
    },
}

/// Appends a handshake.
pub fn write_handshake(
    max_offset: i64,
    last_epoch: i32,
    epochs: &[EpochStart],
    out: &mut BytesMut,
) {
    // A list longer than a replica takes loses its oldest part, which no living log needs.
    let skipped = epochs.len().saturating_sub(EPOCHS_MAX);
    let epochs = epochs.get(skipped..).unwrap_or_default();
    out.put_i32(STATE_HANDSHAKE);
    out.put_u32((epochs.len() * EPOCH_BYTES) as u32);
    out.put_i64(max_offset);
    out.put_i32(last_epoch);
    for entry in epochs {
        out.put_i32(entry.epoch);
        out.put_i64(entry.start_offset);
    }
}

/// The frame that a master's bytes begin with.
pub fn take_from_master(buf: &[u8]) -> Result<Taken<MasterFrame<'_>>, HaError> {
    let Some(state) = i32_at(buf, 0) else {
        return Ok(Taken::Incomplete { needed: 4 });
    };
    let head = match state {
        STATE_HANDSHAKE => HANDSHAKE_HEAD_BYTES,
        STATE_TRANSFER => TRANSFER_HEAD_BYTES,
        other => return Err(HaError::State(other)),
    };
    let Some(body_bytes) = i32_at(buf, 4) else {
        return Ok(Taken::Incomplete { needed: head });
    };
    let bound = if state == STATE_HANDSHAKE {
        EPOCHS_MAX * EPOCH_BYTES
    } else {
        TRANSFER_BODY_BYTES_MAX
    };
    let length = usize::try_from(body_bytes).ok().filter(|n| *n <= bound);
    let length = length.ok_or(HaError::Range {
        field: "the length of a body",
        value: i64::from(body_bytes),
    })?;
    let needed = head + length;
    let Some(body) = buf.get(head..needed) else {
        return Ok(Taken::Incomplete { needed });
    };
    let frame = if state == STATE_HANDSHAKE {
        handshake(buf, body)?
    } else {
        transfer(buf, body)?
    };
    let Some(frame) = frame else {
        return Ok(Taken::Incomplete { needed });
    };
    Ok(Taken::Frame(frame, needed))
}

fn handshake<'a>(buf: &[u8], body: &[u8]) -> Result<Option<MasterFrame<'a>>, HaError> {
    let (Some(max_offset), Some(last_epoch)) = (i64_at(buf, 8), i32_at(buf, 16)) else {
        return Ok(None);
    };
    if !body.len().is_multiple_of(EPOCH_BYTES) {
        return Err(HaError::Range {
            field: "the length of a handshake's epochs",
            value: body.len() as i64,
        });
    }
    let entries = body.chunks_exact(EPOCH_BYTES).filter_map(|entry| {
        Some(EpochStart {
            epoch: i32_at(entry, 0)?,
            start_offset: i64_at(entry, 4)?,
        })
    });
    let epochs: Vec<EpochStart> = entries.collect();
    check_epochs(&epochs)?;
    Ok(Some(MasterFrame::Handshake {
        max_offset: at_least("the master's max offset", max_offset, 0)?,
        last_epoch,
        epochs,
    }))
}

fn transfer<'a>(buf: &[u8], body: &'a [u8]) -> Result<Option<MasterFrame<'a>>, HaError> {
    let fields = (
        i64_at(buf, 8),
        i32_at(buf, 16),
        i64_at(buf, 20),
        i64_at(buf, 28),
    );
    let (Some(offset), Some(epoch), Some(epoch_start), Some(confirm)) = fields else {
        return Ok(None);
    };
    let head = TransferHead {
        offset: at_least("the offset of a transfer", offset, 0)?,
        epoch,
        epoch_start: at_least("the start of an epoch", epoch_start, 0)?,
        confirm_offset: at_least("the confirm offset", confirm, -1)?,
    };
    if head.offset.checked_add(body.len() as i64).is_none() {
        return Err(HaError::Range {
            field: "the offset of a transfer",
            value: offset,
        });
    }
    Ok(Some(MasterFrame::Transfer { head, body }))
}
