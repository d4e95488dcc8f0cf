//! One request as handlers see it, and what they give back.
//!
//! **Invariant:** a handler answers with a command or a [`Refusal`]; whether anybody wants to hear
//! it is decided by whoever called the handler.

use std::sync::Arc;

use rmq_net::Connection;
use rmq_protocol::{
    header::{DecodeHeader, FieldError},
    json::JsonError,
    remoting::{Command, Header, response_code},
};

use super::core::Core;
use crate::route::ConnectionToken;

/// Longest piece of a peer's text that a remark repeats.
const ECHO_CHARS_MAX: usize = 255;

pub(super) type Handled = Result<Command, Refusal>;
pub(super) type Handler = fn(&Core, &Call<'_>) -> Handled;

/// A request and where it came from.
pub(super) struct Call<'a> {
    pub(super) conn: &'a Arc<Connection>,
    pub(super) header: &'a Header<'a>,
    pub(super) body: &'a [u8],
}

impl<'a> Call<'a> {
    /// The typed header.
    pub(super) fn fields<T: DecodeHeader<'a>>(&self) -> Result<T, Refusal> {
        Ok(T::decode(&self.header.ext)?)
    }

    pub(super) fn success(&self) -> Command {
        Command::success(self.header.opaque)
    }

    pub(super) fn token(&self) -> ConnectionToken {
        token_of(self.conn)
    }

    /// The answer as a command, whatever the outcome.
    pub(super) fn finish(&self, handled: Handled) -> Command {
        handled.unwrap_or_else(|refusal| {
            tracing::debug!(
                peer = %self.conn.peer_addr(),
                code = self.header.code,
                remark = %refusal.remark,
                "request refused",
            );
            Command::response(self.header.opaque, refusal.code).with_remark(refusal.remark)
        })
    }
}

pub(super) fn token_of(conn: &Connection) -> ConnectionToken {
    ConnectionToken(conn.id().0)
}

/// Why a request was not done.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) remark: String,
}

impl Refusal {
    pub(super) fn new(code: i32, remark: impl Into<String>) -> Self {
        Self {
            code,
            remark: remark.into(),
        }
    }

    /// Code 1: the caller's fault, or ours, as the remark says.
    pub(super) fn error(remark: impl Into<String>) -> Self {
        Self::new(response_code::SYSTEM_ERROR, remark)
    }

    /// A field whose text is of the right type and still wrong.
    pub(super) fn field(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::error(format!("the custom field <{field}> is refused: {problem}"))
    }

    pub(super) fn body(error: &JsonError) -> Self {
        Self::error(format!("the body cannot be read: {error}"))
    }

    pub(super) fn unsupported(code: i32) -> Self {
        let remark = format!(" request type {code} not supported");
        Self::new(response_code::REQUEST_CODE_NOT_SUPPORTED, remark)
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::error(error.to_string())
    }
}

/// A peer's text, cut to what a remark should hold.
pub(super) fn echo(text: &str) -> &str {
    text.char_indices()
        .nth(ECHO_CHARS_MAX)
        .map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}
