//! Splitting a byte stream into frames.
//!
//! ```text
//! 0        4            5                8          8+H          4+L
//! | L: i32 | serializer | H: 24-bit uint | header H | body L-4-H |
//! ```
//! `L` counts everything behind itself. `serializer` is 0 for JSON, 1 for ROCKETMQ binary
//! (`NettyDecoder`, `RemotingCommand.decode`).

use rmq_types::limits::HEADER_BYTES_MAX;

/// Length word and serializer/header-length word.
pub const FRAME_PREFIX_BYTES: usize = 8;

/// How a header is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serializer {
    /// Type 0.
    #[default]
    Json,
    /// Type 1, `ROCKETMQ`.
    Binary,
}

impl Serializer {
    /// The byte in the frame.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Json => 0,
            Self::Binary => 1,
        }
    }
}

/// Why a stream cannot be split any further. The connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length word is below the 4 bytes of the second word, or negative.
    #[error("frame length {0} is less than its fixed part")]
    TooShort(i32),
    /// The length word is beyond the limit.
    #[error("frame length {length} is beyond the limit {max}")]
    TooLong {
        /// What the peer claims.
        length: u32,
        /// What is taken.
        max: usize,
    },
    /// The header does not fit into its frame, or is beyond its own limit.
    #[error("header length {header} does not fit into frame length {frame}")]
    HeaderTooLong {
        /// Claimed length of the header.
        header: usize,
        /// Length of the frame.
        frame: usize,
    },
    /// A serializer that nobody defined.
    #[error("unknown serializer {0}")]
    UnknownSerializer(u8),
}

/// One frame, its parts borrowed from the read buffer.
#[derive(Clone, Copy, Debug)]
pub struct RawFrame<'a> {
    /// How the header is written.
    pub serializer: Serializer,
    /// Header bytes.
    pub header: &'a [u8],
    /// Body bytes.
    pub body: &'a [u8],
}

/// What [`split_frame`] found.
#[derive(Clone, Copy, Debug)]
pub enum Split<'a> {
    /// Not all bytes are there: at least `needed` in total make the next step possible.
    Incomplete {
        /// Bytes wanted, counted from the start of the buffer.
        needed: usize,
    },
    /// A whole frame.
    Frame {
        /// Its parts.
        frame: RawFrame<'a>,
        /// Bytes of the buffer that it took.
        consumed: usize,
    },
}

/// Reads the first frame of `buf`. Both length words are checked as soon as they are there.
pub fn split_frame(buf: &[u8], frame_bytes_max: usize) -> Result<Split<'_>, FrameError> {
    let Some((length_word, rest)) = buf.split_first_chunk::<4>() else {
        return Ok(Split::Incomplete {
            needed: FRAME_PREFIX_BYTES,
        });
    };
    let length = i32::from_be_bytes(*length_word);
    if (0..4).contains(&length) {
        return Err(FrameError::TooShort(length));
    }
    let unsigned = u32::from_be_bytes(*length_word);
    let length = unsigned as usize;
    if length > frame_bytes_max {
        return Err(FrameError::TooLong {
            length: unsigned,
            max: frame_bytes_max,
        });
    }
    let Some((mark, _)) = rest.split_first_chunk::<4>() else {
        return Ok(Split::Incomplete {
            needed: FRAME_PREFIX_BYTES,
        });
    };
    let serializer = match mark[0] {
        0 => Serializer::Json,
        1 => Serializer::Binary,
        other => return Err(FrameError::UnknownSerializer(other)),
    };
    let header_length = u32::from_be_bytes([0, mark[1], mark[2], mark[3]]) as usize;
    if header_length > length - 4 || header_length > HEADER_BYTES_MAX {
        return Err(FrameError::HeaderTooLong {
            header: header_length,
            frame: length,
        });
    }
    let Some(payload) = rest.get(4..length) else {
        return Ok(Split::Incomplete { needed: 4 + length });
    };
    let (header, body) = payload.split_at(header_length);
    Ok(Split::Frame {
        frame: RawFrame {
            serializer,
            header,
            body,
        },
        consumed: 4 + length,
    })
}
