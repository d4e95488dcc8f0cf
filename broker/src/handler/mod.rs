//! One file per kind of request. A handler reads its typed header, uses [`Core`] and answers.
//!
//! Hot requests (send, pull) write into the outgoing buffer themselves; all others return an
//! [`Answer`]. Requests that may wait for a disk or a peer run on [`crate::work::Workers`].
//!
//! [`Core`]: crate::core::Core

mod admin;
pub(crate) mod client;
pub(crate) mod offset;
pub(crate) mod pop;
pub(crate) mod pull;
pub(crate) mod queue_lock;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod send_back;
mod table;

pub(crate) use table::{Handler, Kind, handler_of};

use std::{sync::Arc, time::Instant};

use rmq_net::Connection;
use rmq_protocol::{
    header::{DecodeHeader, FieldError},
    remoting::Header,
};

use crate::metrics::{Answered, Outcome};

/// One request as a handler sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// The connection it came on.
    pub(crate) conn: &'a Arc<Connection>,
    /// Its header.
    pub(crate) header: &'a Header<'a>,
    /// Its body.
    pub(crate) body: &'a [u8],
    /// When it was read from its connection.
    pub(crate) since: Instant,
}

impl<'a> Call<'a> {
    /// How it was answered at once: nothing held it up.
    pub(crate) fn answered(&self, response: i32) -> Answered {
        Answered {
            request: self.header.code,
            response,
            held: false,
            outcome: Outcome::of(self.header.is_oneway()),
        }
    }

    /// The typed header.
    pub(crate) fn decode<T: DecodeHeader<'a>>(&self) -> Result<T, FieldError> {
        T::decode(&self.header.ext)
    }
}
