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
mod version;

pub use command::{Command, next_opaque};
pub use ext::ExtFields;
pub use frame::{FRAME_PREFIX_BYTES, FrameError, RawFrame, Serializer, Split, split_frame};
pub use header::{FLAG_ONEWAY, FLAG_RESPONSE, Header, HeaderError};
pub use language::Language;
pub use response::ResponseWriter;
pub use version::{VERSION, VERSION_MAX_RECONSUME, VERSION_STANDARD_JSON, version_name};

#[cfg(test)]
mod tests;
