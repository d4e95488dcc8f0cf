//! Servers that `compare` starts, and their end.
//!
//! Invariant: a started process does not outlive its handle.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::control::resolve;
use crate::{CompareArgs, FlushMode, floor};

const READY_MAX: Duration = Duration::from_mins(1);
const STOP_MAX: Duration = Duration::from_secs(15);

/// See the module.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// A floor broker ends when this is dropped, even if we are killed.
    _stdin: Option<ChildStdin>,
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts a floor broker from this program; its address is on its first line.
    pub(crate) fn floor(args: &CompareArgs) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("cannot find this program")?;
        // What stood before `compare` leads to the other sub-commands too: `rocketmq bench`.
        let before = std::env::args().skip(1).take_while(|arg| arg != "compare");
        let flush = match args.floor_flush {
            FlushMode::Async => "async",
            FlushMode::Sync => "sync",
        };
        let mut child = Command::new(program)
            .args(before)
            .args([
                "floor",
                "--addr",
                "127.0.0.1:0",
                "--until-stdin-ends",
                "--flush",
                flush,
            ])
            .arg("--size")
            .arg(args.message.size.to_string())
            .arg("--file")
            .arg(&args.floor_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the floor broker")?;
        let stdin = child.stdin.take();
        let stdout = child
            .stdout
            .take()
            .context("the floor broker has no output")?;
        let server = Self {
            child,
            _stdin: stdin,
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let addr = line
            .trim()
            .strip_prefix(floor::READY)
            .context("the floor broker did not start")?;
        let addr = resolve(addr.trim())?;
        Ok((server, addr))
    }

    /// Starts a broker with a shell command and waits until its port takes connections.
    pub(crate) fn command(command: &str, addr: SocketAddr) -> Result<Self> {
        ensure!(
            TcpStream::connect(addr).is_err(),
            "something listens on {addr} already"
        );
        let child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec {command}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {command}"))?;
        let mut server = Self {
            child,
            _stdin: None,
        };
        let start = Instant::now();
        while TcpStream::connect_timeout(&addr, Duration::from_secs(1)).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("the broker ended with {status} before it listened on {addr}");
            }
            ensure!(
                start.elapsed() < READY_MAX,
                "the broker does not listen on {addr}"
            );
            rest(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while start.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            rest(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rest(time: Duration) {
    std::thread::park_timeout(time);
}
