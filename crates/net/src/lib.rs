//! Tokio listeners and clients that drive the remoting protocol.
//!
//! Owns sockets, the threads that read them, and the matching of answers to calls. Invariant: what
//! one peer can make this process hold is bounded, whatever it sends or refuses to read. It knows no
//! request code: what a request means is the [`Service`]'s business.
//!
//! The way of a request: a connection's task reads what is there into a buffer its thread owns,
//! splits every complete frame, gives them to [`Service::serve`] in one call and writes all replies
//! in one system call. No channel, timer, task hop or allocation per request stands between.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod client;
mod connection;
mod drive;
mod endpoint;
mod error;
mod inbound;
mod io;
mod listener;
mod mailbox;
mod outbound;
mod pending;
mod quiet;
mod service;

pub use client::{Client, ClientOptions};
pub use connection::{Connection, ConnectionId};
pub use error::{BindError, CallError, SendError};
pub use io::IoThreads;
pub use listener::{ListenOptions, Listener, ListenerStats, ReservedPort};
pub use service::{Outbox, Request, Service};
