//! The remoting frame and its header, read in place and written without a tree of values.
//!
//! **Invariant:** nothing in here panics or allocates on a length that a peer claims; a frame is
//! looked at only once its bytes are there.

mod binary;
mod command;
mod ext;
mod frame;
mod header;
mod json;
mod language;
pub mod request_code;
mod response;
pub mod response_code;

pub use command::{Command, next_opaque};
pub use ext::ExtFields;
pub use frame::{FRAME_PREFIX_BYTES, FrameError, RawFrame, Serializer, Split, split_frame};
pub use header::{FLAG_ONEWAY, FLAG_RESPONSE, Header, HeaderError};
pub use language::Language;
pub use response::ResponseWriter;

/// The version our servers and clients advertise: `V5_3_3` of Java's `MQVersion`.
pub const VERSION: i32 = 479;
/// From here on a client reads standard JSON in route answers (`V4_9_4`).
pub const VERSION_STANDARD_JSON: i32 = 401;
/// From here on `maxReconsumeTimes` of a request counts (`V3_4_9`).
pub const VERSION_MAX_RECONSUME: i32 = 121;

#[cfg(test)]
mod tests;
