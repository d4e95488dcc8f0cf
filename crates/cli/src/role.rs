//! What every role has in common: arguments, start, health page, orderly stop.
//!
//! **Invariant:** the health page is open before the role reads its data; the ready line is written
//! after it listens; a stop goes through the role's own shutdown, and a second signal that means it
//! ends the process at once.

mod stop;

pub(crate) use stop::StopSignal;

use crate::observe::{HealthSource, LogFormat, Observer, Starting, init_log};
use anyhow::Context as _;
use rmq_operator::local::{ProcessLock, ReadyLine};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What every role takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RoleArgs {
    /// Configuration file: Java's properties, or our own form if its name ends in .yaml
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the data
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port for clients; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address and port of /metrics, /livez, /readyz and /startupz; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// Form of the log on standard error; RUST_LOG chooses what is in it
    #[arg(long, value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
    /// Print the configuration in force and end
    #[arg(short = 'p', long)]
    pub(crate) print_config: bool,
    /// Print one JSON line with the addresses once clients are served
    #[arg(long)]
    pub(crate) ready_line: bool,
    /// Stop when standard input closes, as if asked to
    #[arg(long, hide = true)]
    pub(crate) stop_with_stdin: bool,
}

impl RoleArgs {
    /// The data folder: as given, or `name` in the home directory, where Java has it.
    pub(crate) fn data_dir(&self, name: &str) -> anyhow::Result<PathBuf> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Ok(home
            .context("there is no home directory: give the data folder with --data")?
            .join(name))
    }
}

/// A role that serves.
pub(crate) trait Running {
    /// Where clients connect.
    fn addr(&self) -> SocketAddr;
    /// Who answers for its health.
    fn health(&self) -> Arc<dyn HealthSource>;
    /// Stops in order.
    async fn shutdown(self) -> anyhow::Result<()>;
}

/// Where a role runs.
pub(crate) struct Place<'a> {
    /// `namesrv` or `broker`.
    pub(crate) role: &'static str,
    /// Address of the health page.
    pub(crate) http: SocketAddr,
    /// Folder of its data.
    pub(crate) data: &'a Path,
    /// How far its start has come.
    pub(crate) starting: Starting,
}

/// Runs a role until it is asked to stop.
pub(crate) fn run<R, S>(args: &RoleArgs, place: &Place<'_>, start: S) -> anyhow::Result<()>
where
    R: Running,
    S: AsyncFnOnce() -> anyhow::Result<R>,
{
    init_log(args.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("control")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(Box::pin(live(args, place, start)));
    // Whatever a role left running on blocking threads does not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn live<R, S>(args: &RoleArgs, place: &Place<'_>, start: S) -> anyhow::Result<()>
where
    R: Running,
    S: AsyncFnOnce() -> anyhow::Result<R>,
{
    let mut stop = StopSignal::listen(args.stop_with_stdin)?;
    let observer = Observer::bind(place.http, place.role, Arc::clone(&place.starting)).await?;
    let _lock = ProcessLock::take(place.data)?;
    let role = tokio::select! {
        biased;
        reason = stop.wait() => {
            tracing::info!(reason, "stopped before the start was complete");
            return Ok(());
        }
        started = Box::pin(start()) => started?,
    };
    observer.attach(role.health());
    if args.ready_line {
        announce(place.role, role.addr(), observer.local_addr())?;
    }
    tracing::info!(
        role = place.role, address = %role.addr(), health = %observer.local_addr(), "serving"
    );
    let reason = stop.wait().await;
    tracing::info!(reason, "stopping");
    observer.stopping();
    tokio::select! {
        biased;
        result = Box::pin(role.shutdown()) => result?,
        _ = stop.insist() => anyhow::bail!("stopped at once, at the second signal"),
    }
    tracing::info!("stopped");
    Ok(())
}

fn announce(role: &str, address: SocketAddr, health: SocketAddr) -> anyhow::Result<()> {
    let line = ReadyLine {
        role: role.to_owned(),
        address,
        health,
        pid: std::process::id(),
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(line.to_line()?.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write the ready line")
}
