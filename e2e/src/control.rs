//! The restart commands that suites run in the middle of a test.
//!
//! **Invariant:** the server belongs to the runner; a suite's command only asks over a socket and
//! gets one line back when it is done. One request is served at a time.

use crate::process::End;
use crate::target::Target;
use anyhow::Context as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(110);

/// Serves restart requests for a target.
#[derive(Debug)]
pub struct Control {
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Control {
    /// Starts serving; the thread ends with the process.
    pub fn serve(target: Arc<Mutex<Option<Target>>>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let socket = folder.path().join("control");
        let listener = UnixListener::bind(&socket).context("cannot open the control socket")?;
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    if let Err(error) = answer(stream, &target) {
                        eprintln!("control: {error:#}");
                    }
                }
            })
            .context("cannot start a thread")?;
        Ok(Self {
            socket,
            _folder: folder,
        })
    }

    /// The commands as the suites find them in their environment.
    pub fn environment(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let command = |how: &str| {
            let (own, socket) = (own.display(), self.socket.display());
            format!("'{own}' restart --socket '{socket}' {how}")
        };
        Ok(vec![
            ("RESTART_BROKER_CMD", command("orderly")),
            ("KILL_BROKER_CMD", command("kill")),
        ])
    }
}

fn answer(mut stream: UnixStream, target: &Mutex<Option<Target>>) -> anyhow::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let how = match line.trim() {
        "orderly" => End::Orderly,
        "kill" => End::Kill,
        other => anyhow::bail!("unknown request {other}"),
    };
    let result = target
        .lock()
        .map_err(|_| anyhow::anyhow!("a restart failed before"))
        .and_then(|mut target| {
            let target = target.as_mut().context("the server is stopped")?;
            target.restart_broker(how)
        });
    match result {
        Ok(()) => writeln!(stream, "ok")?,
        Err(error) => writeln!(stream, "{}", format!("{error:#}").replace('\n', " | "))?,
    }
    Ok(())
}

/// Asks a runner to restart its broker; returns when it is up again.
pub fn send_command(socket: &Path, how: &str) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(socket).context("the runner is gone")?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{how}")?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    anyhow::ensure!(line.trim() == "ok", "{}", line.trim());
    Ok(())
}
