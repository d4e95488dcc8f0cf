//! `rocketmq controller`: a controller from Java's `controller.conf`.
//!
//! **Invariant:** arguments win over the file; what is wrong with either is said before anything is
//! opened.

use crate::observe::HealthSource;
use crate::role::{self, Place, RoleArgs, Running};
use anyhow::Context as _;
use rmq_controller::{Controller, ControllerOptions, Probe};
use rmq_net::IoThreads;
use rmq_types::SystemClock;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9978);
/// Requests are handed on at once: one thread reads them all.
const IO_THREADS: usize = 1;

/// `rocketmq controller`
#[derive(Debug, clap::Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    role: RoleArgs,
}

pub(crate) fn run(args: &ControllerArgs) -> anyhow::Result<()> {
    let args = &args.role;
    let mut options = ControllerOptions::new(&args.data_dir("DledgerController")?);
    let mut notes = Vec::new();
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {}", path.display()))?;
        let parsed = options
            .parse(&text)
            .with_context(|| path.display().to_string())?;
        (options, notes) = (parsed.options, parsed.notes);
    }
    if let Some(data) = &args.data {
        options.store_path.clone_from(data);
    }
    options.listen = args.listen;
    if args.print_config {
        return std::io::stdout()
            .write_all(options.to_properties().as_bytes())
            .context("cannot write to standard output");
    }
    let data = options.store_path.clone();
    let place = Place {
        role: "controller",
        http: args.http.unwrap_or(HTTP),
        data: &data,
        starting: Arc::new(|| "starting".to_owned()),
    };
    role::run(args, &place, async || {
        for note in notes {
            tracing::warn!("{note}");
        }
        let io = IoThreads::start(IO_THREADS, "controller-io").context("cannot start threads")?;
        let controller = Controller::start(&io, options, Arc::new(SystemClock))?;
        Ok(Server {
            controller,
            _io: io,
        })
    })
}

struct Server {
    controller: Controller,
    // Dropped last: connections run on it.
    _io: IoThreads,
}

impl Running for Server {
    fn addr(&self) -> SocketAddr {
        self.controller.local_addr()
    }

    fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(Health(self.controller.probe()))
    }

    async fn shutdown(self) -> anyhow::Result<()> {
        self.controller.shutdown().await;
        Ok(())
    }
}

struct Health(Probe);

impl HealthSource for Health {
    fn live(&self) -> Result<(), String> {
        self.0.live()
    }

    fn ready(&self) -> Result<(), String> {
        self.0.ready()
    }

    fn metrics(&self, out: &mut String) {
        let figures = self.0.figures();
        let mut gauge = |name: &str, value: u64| {
            let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
        };
        gauge("rocketmq_controller_leads", u64::from(figures.leads));
        gauge("rocketmq_controller_votes", u64::from(figures.votes));
        gauge("rocketmq_controller_broker_groups", figures.groups as u64);
        gauge("rocketmq_controller_applied_index", figures.applied);
    }
}
