//! Processor time and memory of a process, from `/proc`.
//!
//! Invariant: reads only; where a figure cannot be read there is none, never a made-up zero.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;

/// What a process used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User and system time of all its threads, in microseconds.
    pub(crate) cpu_micros: u64,
    /// Resident memory in kibibytes.
    pub(crate) rss_kib: u64,
    /// The part of it that no file stands behind.
    pub(crate) anon_kib: u64,
}

/// Usage now; `None` if the process is gone or there is no `/proc`.
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Usage {
        cpu_micros: cpu_micros(&stat)?,
        rss_kib: status_kib(&status, "VmRSS:")?,
        anon_kib: status_kib(&status, "RssAnon:").unwrap_or(0),
    })
}

/// Fields 14 and 15, counted behind the name in brackets; Linux shows 100 ticks a second.
fn cpu_micros(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * 10_000)
}

fn status_kib(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The process that listens on a port of this computer.
pub(crate) fn listener_of(addr: SocketAddr) -> Option<u32> {
    if !(addr.ip().is_loopback() || addr.ip().is_unspecified()) {
        return None;
    }
    let mut inodes = HashSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        inodes.extend(
            text.lines()
                .filter_map(|line| listening_inode(line, addr.port())),
        );
    }
    if inodes.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?;
    let mut pids: Vec<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| holds_socket(*pid, &inodes))
        .collect();
    pids.sort_unstable();
    pids.first().copied()
}

/// Inode of a line of `/proc/net/tcp` in state LISTEN (0A) on `port`.
fn listening_inode(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let listens = *fields.get(3)? == "0A" && u16::from_str_radix(local_port, 16).ok()? == port;
    listens.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
}

fn holds_socket(pid: u32, inodes: &HashSet<String>) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .any(|target| {
            target
                .to_str()
                .is_some_and(|target| inodes.contains(target))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 0 0 0 25 17 0 0 20 0 9 0 1 2 3";
        assert_eq!(cpu_micros(stat), Some(420_000));
    }

    #[test]
    fn this_process_has_memory_and_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(listener_of(addr), Some(std::process::id()));
        assert!(usage(std::process::id()).unwrap().rss_kib > 0);
        assert_eq!(usage(u32::MAX), None);
    }
}
