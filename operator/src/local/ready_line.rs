//! The one line a role prints on its standard output once it listens (`--ready-line`).
//!
//! **Invariant:** one JSON object on one line, written once. The parent learns from it what port 0
//! became; whether the role is *ready* is asked at its health address, not here.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Longest line the parent reads.
pub(crate) const LINE_BYTES_MAX: u64 = 4096;

/// Where a role listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyLine {
    /// `namesrv` or `broker`.
    pub role: String,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where `/metrics`, `/livez`, `/readyz` and `/startupz` are.
    pub health: SocketAddr,
    /// The process.
    pub pid: u32,
}

impl ReadyLine {
    /// The line, with its end.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{}\n", serde_json::to_string(self)?))
    }

    /// Reads a line.
    pub fn from_line(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let line = ReadyLine {
            role: "broker".to_owned(),
            address: "127.0.0.1:10911".parse().unwrap(),
            health: "[::1]:10910".parse().unwrap(),
            pid: 7,
        };
        let text = line.to_line().unwrap();
        assert_eq!(text.lines().count(), 1);
        assert_eq!(ReadyLine::from_line(&text).unwrap(), line);
        assert!(ReadyLine::from_line("thread 'main' panicked").is_err());
    }
}
