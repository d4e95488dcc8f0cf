//! Which process listens at an address, as Linux tells it under `/proc`.
//!
//! **Invariant:** only a help for people: an answer that cannot be had is `None`, never an error,
//! and nothing is decided by it. Other users' processes are not visible; other systems have no
//! such files.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// `TCP_LISTEN` in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// Longest command that is shown.
const COMMAND_CHARS_MAX: usize = 60;

/// A process that has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub pid: u32,
    /// Its program and the first of its arguments.
    pub command: String,
    /// The `rocketmq up` that started it.
    pub up: Option<u32>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.command)
    }
}

/// Who listens at `addr`, or at every address with that port.
pub(crate) fn holder_of(addr: SocketAddr) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inode = tables.iter().find_map(|table| {
        let text = std::fs::read_to_string(table).ok()?;
        text.lines()
            .skip(1)
            .find_map(|line| listener(line, addr).map(str::to_owned))
    })?;
    let pid = owner_of(&format!("socket:[{inode}]"))?;
    Some(Holder {
        pid,
        command: command(pid)?,
        up: up_of(pid),
    })
}

/// The inode of a line's socket if it listens where `addr` would.
fn listener(line: &str, addr: SocketAddr) -> Option<&str> {
    let mut cells = line.split_whitespace();
    let local = cells.nth(1)?;
    let state = cells.nth(1)?;
    let inode = cells.nth(5)?;
    let (ip, port) = local.split_once(':')?;
    let ip = address(ip)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let meets = ip == addr.ip() || ip.is_unspecified() || addr.ip().is_unspecified();
    (state == LISTENING && port == addr.port() && meets).then_some(inode)
}

/// `0100007F`: words of the computer's own byte order, which is little-endian wherever this runs.
fn address(hex: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for at in (0..hex.len()).step_by(8) {
        let word = u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_le_bytes());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    Some(Ipv6Addr::from(sixteen).to_canonical())
}

fn owner_of(socket: &str) -> Option<u32> {
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(files) = std::fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let has = |file: std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket)
        };
        if files.flatten().any(has) {
            return Some(pid);
        }
    }
    None
}

/// Program and arguments.
fn words(pid: u32) -> Option<Vec<String>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).filter(|w| !w.is_empty());
    Some(
        words
            .map(|w| String::from_utf8_lossy(w).into_owned())
            .collect(),
    )
}

fn command(pid: u32) -> Option<String> {
    let mut words = words(pid)?.into_iter();
    let program = words.next()?;
    let program = Path::new(&program)
        .file_name()?
        .to_string_lossy()
        .into_owned();
    let mut text = program;
    for word in words {
        if text.chars().count() + word.chars().count() >= COMMAND_CHARS_MAX {
            text.push_str(" …");
            break;
        }
        text = format!("{text} {word}");
    }
    Some(text.chars().filter(|c| !c.is_control()).collect())
}

fn up_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    let parent = parent.trim().parse().ok()?;
    let is_up = words(parent)?.get(1).is_some_and(|word| word == "up");
    is_up.then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "   0: 0100007F:2694 00000000:0000 0A 00000000:00000000 00:00000000 \
                        00000000     0        0 4242 1 0000000000000000 100 0 0 10 0";

    #[test]
    fn a_listening_socket_is_found_by_port_and_an_address_that_meets_it() {
        let at = |text: &str| listener(LINE, text.parse().unwrap());
        assert_eq!(at("127.0.0.1:9876"), Some("4242"));
        assert_eq!(at("0.0.0.0:9876"), Some("4242"));
        assert_eq!(at("127.0.0.2:9876"), None);
        assert_eq!(at("127.0.0.1:9877"), None);
        let connected = LINE.replace(" 0A ", " 01 ");
        assert_eq!(
            listener(&connected, "127.0.0.1:9876".parse().unwrap()),
            None
        );
    }

    #[test]
    fn addresses_are_read_in_both_families_and_broken_lines_are_nobody() {
        assert_eq!(address("0100007F"), Some("127.0.0.1".parse().unwrap()));
        let mapped = "0000000000000000FFFF00000100007F";
        assert_eq!(address(mapped), Some("127.0.0.1".parse().unwrap()));
        let loopback = "00000000000000000000000001000000";
        assert_eq!(address(loopback), Some("::1".parse().unwrap()));
        assert_eq!(address("01"), None);
        for line in ["", "0: x", "0: 01:zz 0:0 0A"] {
            assert_eq!(listener(line, "127.0.0.1:1".parse().unwrap()), None);
        }
    }
}
