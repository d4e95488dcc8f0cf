//! `rocketmq namesrv`: a NameServer from Java's `namesrv.conf`, or our own YAML.
//!
//! **Invariant:** arguments win over the file; nothing else in the environment counts.

use crate::observe::HealthSource;
use crate::role::{self, Place, RoleArgs, Running};
use anyhow::Context as _;
use rmq_namesrv::NameServer;
use rmq_namesrv::config::{Form, NamesrvOptions};
use rmq_net::IoThreads;
use rmq_types::SystemClock;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9976);
/// Route queries are short: more threads than this only wait for the table.
const IO_THREADS_MAX: usize = 4;

/// `rocketmq namesrv`
#[derive(Debug, clap::Args)]
pub(crate) struct NamesrvArgs {
    #[command(flatten)]
    role: RoleArgs,
}

pub(crate) fn run(args: &NamesrvArgs) -> anyhow::Result<()> {
    let args = &args.role;
    let data = args.data_dir("namesrv")?;
    let mut options = NamesrvOptions::new(&data);
    let mut notes = Vec::new();
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {}", path.display()))?;
        let parsed = options
            .parse_as(Form::of(path), &text)
            .with_context(|| path.display().to_string())?;
        (options, notes) = (parsed.options, parsed.notes);
    }
    if args.data.is_some() {
        options.kv_path = NamesrvOptions::new(&data).kv_path;
    }
    if let Some(listen) = args.listen {
        (options.bind_address, options.listen_port) = (listen.ip(), listen.port());
    }
    if args.print_config {
        return std::io::stdout()
            .write_all(options.to_properties().as_bytes())
            .context("cannot write to standard output");
    }
    let place = Place {
        role: "namesrv",
        http: args.http.unwrap_or(HTTP),
        data: &data,
        starting: Arc::new(|| "starting".to_owned()),
    };
    role::run(args, &place, async || {
        for note in notes {
            tracing::warn!("{note}");
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let io = IoThreads::start(threads.min(IO_THREADS_MAX), "namesrv-io")
            .context("cannot start threads")?;
        let server = NameServer::start(&io, options, Arc::new(SystemClock))?;
        Ok(Server {
            addr: server.local_addr(),
            server: Shared::new(server),
            _io: io,
        })
    })
}

/// The server, until it is taken out to be stopped.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<NameServer>>>);

impl Shared {
    fn new(server: NameServer) -> Self {
        Self(Arc::new(Mutex::new(Some(server))))
    }

    fn ask<T>(&self, question: impl FnOnce(&NameServer) -> T) -> Result<T, String> {
        let server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        server
            .as_ref()
            .map(question)
            .ok_or_else(|| "stopping".to_owned())
    }
}

struct Server {
    addr: SocketAddr,
    server: Shared,
    // Dropped last: connections run on it.
    _io: IoThreads,
}

impl Running for Server {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(self.server.clone())
    }

    async fn shutdown(self) -> anyhow::Result<()> {
        let server = self
            .server
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(server) = server {
            server.shutdown().await;
        }
        Ok(())
    }
}

impl HealthSource for Shared {
    fn live(&self) -> Result<(), String> {
        // Also takes the route table's lock: a stuck table does not answer. A server that is being
        // stopped is at work.
        match self.ask(|server| (server.metrics(), server.is_live())) {
            Ok((_, false)) => Err("the housekeeping thread has ended".to_owned()),
            Ok((_, true)) | Err(_) => Ok(()),
        }
    }

    fn ready(&self) -> Result<(), String> {
        if self.ask(NameServer::is_ready)? {
            Ok(())
        } else {
            Err("waits for brokers to register (needWaitForService)".to_owned())
        }
    }

    fn metrics(&self, out: &mut String) {
        let Ok((figures, port)) = self.ask(|server| (server.metrics(), server.listener_stats()))
        else {
            return;
        };
        let mut gauge = |name: &str, value: usize| {
            let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
        };
        gauge("rocketmq_namesrv_clusters", figures.clusters);
        gauge("rocketmq_namesrv_broker_groups", figures.broker_groups);
        gauge("rocketmq_namesrv_brokers", figures.brokers);
        gauge("rocketmq_namesrv_topics", figures.topics);
        gauge("rocketmq_namesrv_connections", port.open);
        let mut counter = |name: &str, value: u64| {
            let _ = writeln!(out, "# TYPE {name} counter\n{name} {value}");
        };
        counter(
            "rocketmq_namesrv_route_queries_total",
            figures.route_queries,
        );
        counter("rocketmq_namesrv_route_misses_total", figures.route_misses);
        counter(
            "rocketmq_namesrv_requests_unsupported_total",
            figures.requests_unsupported,
        );
        counter("rocketmq_namesrv_connections_accepted_total", port.accepted);
        counter("rocketmq_namesrv_connections_refused_total", port.refused);
        counter("rocketmq_namesrv_connections_broken_total", port.broken);
        let name = "rocketmq_namesrv_requests_total";
        let _ = writeln!(out, "# TYPE {name} counter");
        for (code, count) in figures.requests {
            let _ = writeln!(out, "{name}{{request_code=\"{code}\"}} {count}");
        }
    }
}
