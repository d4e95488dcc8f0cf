//! The program as tests run it: every process ends with its test, whatever the test does.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The program with these arguments.
pub(crate) fn rocketmq(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocketmq"));
    command
        .args(args)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    rocketmq(args).output().unwrap()
}

/// Runs it, wants a failure with exit code 1 and exactly one line, and gives the line.
#[track_caller]
pub(crate) fn refusal(args: &[&str]) -> String {
    refusal_of(&mut rocketmq(args))
}

#[track_caller]
pub(crate) fn refusal_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "",
        "nothing belongs on stdout"
    );
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(lines.len(), 1, "one clear line, not: {text}");
    lines[0].trim_start_matches("error: ").to_owned()
}

/// A running process that is killed when the test ends.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = rocketmq(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// The next line of standard output; everything on standard error if there is none.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut text = String::new();
            let _ = self.stderr.read_to_string(&mut text);
            panic!("it ended without a line: {text}");
        }
        line
    }

    /// The next line as JSON.
    #[track_caller]
    pub(crate) fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Reads standard error up to a line that holds `text`, and gives that line.
    #[track_caller]
    pub(crate) fn said(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.stderr.read_line(&mut line).unwrap();
            assert!(count > 0, "it ended without saying {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Asks it to stop and waits; the rest of standard output must be empty.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        signal(self.child.id(), Signal::TERM);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        self.child.wait().unwrap()
    }

    /// Ends it without asking.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pid(raw: u32) -> Pid {
    Pid::from_raw(i32::try_from(raw).unwrap()).unwrap()
}

pub(crate) fn signal(process: u32, signal: Signal) {
    kill_process(pid(process), signal).unwrap();
}

/// Whether it runs; one that has ended and waits for its parent does not.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    test_kill_process(pid(process)).is_ok() && state != Some('Z')
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never came true: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Code and body of an answer of a health page.
pub(crate) fn get(addr: &str, path: &str) -> Option<(u16, String)> {
    let addr: SocketAddr = addr.parse().unwrap();
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n\r\n").as_bytes())
        .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A file with this text.
pub(crate) fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
