//! `rocketmq broker`: a broker from Java's `broker.conf`.
//!
//! **Invariant:** arguments win over the file. What is wrong with the configuration is said before
//! anything is opened.

use crate::observe::HealthSource;
use crate::role::{self, Place, RoleArgs, Running};
use anyhow::Context as _;
use rmq_broker::config::{Loaded, Settings, load, parse_properties};
use rmq_broker::{Broker, Probe, Starting};
use rmq_types::SystemClock;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// `rocketmq broker`
#[derive(Debug, clap::Args)]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// NameServers, separated by semicolons: host:9876;host:9876
    #[arg(short = 'n', long, value_name = "ADDRS")]
    namesrv_addr: Option<String>,
}

pub(crate) fn run(args: &BrokerArgs) -> anyhow::Result<()> {
    let (settings, without_effect) = configure(args)?;
    let role = &args.role;
    if role.print_config {
        let text = rmq_protocol::java_properties::write(settings.entries());
        return std::io::stdout()
            .write_all(text.as_bytes())
            .context("cannot write to standard output");
    }
    let http = match role.http {
        Some(http) => http,
        None => SocketAddr::new(
            ip(
                "metricsPromExporterHost",
                &settings.metrics_prom_exporter_host,
            )?,
            settings.metrics_prom_exporter_port.get() as u16,
        ),
    };
    let data = PathBuf::from(&settings.store_path_root_dir);
    let starting = Arc::new(Starting::default());
    let place = Place {
        role: "broker",
        http,
        data: &data,
        starting: Arc::new({
            let starting = Arc::clone(&starting);
            move || starting.to_string()
        }),
    };
    role::run(role, &place, async || {
        for key in without_effect {
            tracing::warn!(key, "the key has no effect here");
        }
        let broker = Box::pin(Broker::start(settings, Arc::new(SystemClock), starting)).await?;
        Ok(Server(broker))
    })
}

/// The settings in force, and keys of the file that mean something to the Java broker only.
fn configure(args: &BrokerArgs) -> anyhow::Result<(Settings, Vec<String>)> {
    let role = &args.role;
    let mut loaded = match &role.config {
        Some(path) => load(path).with_context(|| path.display().to_string())?,
        None => Loaded::default(),
    };
    let mut set = |key: &str, value: &str| {
        let text = rmq_protocol::java_properties::write([(key, value.to_owned())]);
        parse_properties(&mut loaded, &text)
    };
    if let Some(name_servers) = &args.namesrv_addr {
        set("namesrvAddr", name_servers)?;
    }
    if let Some(listen) = role.listen {
        set("bindAddress", &listen.ip().to_string())?;
        set("listenPort", &listen.port().to_string())?;
    }
    if let Some(data) = &role.data {
        set(
            "storePathRootDir",
            data.to_str().context("--data is no text")?,
        )?;
    }
    if loaded.settings.store_path_root_dir.is_empty() {
        let data = role.data_dir("store")?;
        loaded.settings.store_path_root_dir = data.display().to_string();
    }
    Ok((loaded.settings, loaded.without_effect))
}

fn ip(key: &str, text: &str) -> anyhow::Result<IpAddr> {
    text.parse()
        .with_context(|| format!("{key}={text} is no IP address"))
}

struct Server(Broker);

impl Running for Server {
    fn addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(Health(self.0.probe()))
    }

    async fn shutdown(self) -> anyhow::Result<()> {
        Ok(self.0.shutdown().await?)
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
        out.push_str(&self.0.metrics_text());
    }
}
