//! Free ports on loopback.
//!
//! **Invariant:** a broker's port is free together with the two it brings along: the fast channel
//! two below and the replication port one above. Another process may still be quicker; then the
//! server says so and the test fails with that message.

use anyhow::Context as _;
use std::net::{Ipv4Addr, TcpListener};

const ATTEMPTS: usize = 100;

/// A port that nothing listens on.
pub(crate) fn free() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// A port that is free together with its neighbours.
pub(crate) fn free_for_broker() -> anyhow::Result<u16> {
    for _ in 0..ATTEMPTS {
        let port = free()?;
        let taken = |other: Option<u16>| {
            other.is_none_or(|other| TcpListener::bind((Ipv4Addr::LOCALHOST, other)).is_err())
        };
        let others = [
            port.checked_sub(2),
            port.checked_sub(1),
            port.checked_add(1),
        ];
        if !others.into_iter().any(taken) {
            return Ok(port);
        }
    }
    anyhow::bail!("no three free ports in a row after {ATTEMPTS} attempts")
}
