//! Where brokers and NameServers are asked: the gateway's other side.
//!
//! **Invariant:** every question has a deadline, and what is kept of answers is bounded and grows
//! old. [`Upstream`] is all that differs between ways to brokers: a client over sockets, or whatever
//! a test puts there. A gateway beside a broker uses the same over loopback.

mod cache;
mod cluster;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use rmq_net::{CallError, Client};
use rmq_protocol::remoting::Command;

pub(crate) use cluster::{Cluster, REQUEST_TIMEOUT, fields, request};

/// An answer that is to come.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Command, CallError>> + Send + 'a>>;

/// A way to brokers and NameServers.
pub trait Upstream: std::fmt::Debug + Send + Sync + 'static {
    /// Sends a request to `addr` and waits for its answer, at most `within`. A one-way request is
    /// answered at once, by an empty success.
    fn call<'a>(&'a self, addr: &'a str, cmd: Command, within: Duration) -> Answer<'a>;
}

impl Upstream for Client {
    fn call<'a>(&'a self, addr: &'a str, cmd: Command, within: Duration) -> Answer<'a> {
        Box::pin(async move {
            if cmd.is_oneway() {
                let opaque = cmd.opaque;
                self.notify(addr, cmd).await?;
                return Ok(Command::success(opaque));
            }
            Client::call(self, addr, cmd, within).await
        })
    }
}
