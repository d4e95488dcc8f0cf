//! `rocketmq broker`: a broker from Java's `broker.conf`.
//!
//! **Invariant:** arguments win over the file. What is wrong with the configuration is said before
//! anything is opened.

use crate::observe::HealthSource;
use crate::role::{self, Place, RoleArgs, Running};
use anyhow::Context as _;
use rmq_broker::config::{KeyError, Loaded, Settings, load};
use rmq_broker::{Broker, Probe, Starting, in_force};
use rmq_types::SystemClock;
use std::fmt::Write as _;
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
    /// Address that clients are told, if it is not the one listened on (brokerIP1)
    #[arg(long, value_name = "IP")]
    advertise: Option<IpAddr>,
}

pub(crate) fn run(args: &BrokerArgs) -> anyhow::Result<()> {
    let (settings, without_effect) = configure(args)?;
    let role = &args.role;
    if role.print_config {
        let text = shown(settings, &without_effect)?;
        return std::io::stdout()
            .write_all(text.as_bytes())
            .context("cannot write to standard output");
    }
    let http = SocketAddr::new(
        ip(
            "metricsPromExporterHost",
            &settings.metrics_prom_exporter_host,
        )?,
        settings.metrics_prom_exporter_port.get() as u16,
    );
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
    let mut set = |key: &str, value: &str| -> Result<(), KeyError> { loaded.set(key, value) };
    if let Some(name_servers) = &args.namesrv_addr {
        set("namesrvAddr", name_servers)?;
    }
    if let Some(advertise) = args.advertise {
        set("brokerIP1", &advertise.to_string())?;
    }
    if let Some(listen) = role.listen {
        set("bindAddress", &listen.ip().to_string())?;
        set("listenPort", &listen.port().to_string())?;
    }
    if let Some(http) = role.http {
        set("metricsPromExporterHost", &http.ip().to_string())?;
        set("metricsPromExporterPort", &http.port().to_string())?;
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
    let file = || match &role.config {
        Some(path) => path.display().to_string(),
        None => "arguments".to_owned(),
    };
    loaded.check_places().with_context(file)?;
    Ok((loaded.settings, loaded.without_effect))
}

/// What `--print-config` prints: a file that would start the same broker.
fn shown(settings: Settings, without_effect: &[String]) -> anyhow::Result<String> {
    let settings = in_force(settings)?;
    let mut text = rmq_protocol::java_properties::write(settings.entries());
    for key in without_effect {
        // The value may be a secret.
        let _ = writeln!(text, "# {key}: has no effect here");
    }
    Ok(text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: BrokerArgs,
    }

    fn print(config: &str, more: &[&str]) -> anyhow::Result<String> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("broker.conf");
        std::fs::write(&file, config)?;
        let data = dir.path().join("store");
        let mut line = vec!["broker", "-c", file.to_str().unwrap()];
        line.extend(["--data", data.to_str().unwrap()]);
        line.extend(more);
        let (settings, without_effect) = configure(&Command::parse_from(line).args)?;
        shown(settings, &without_effect)
    }

    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|found| found == line)
    }

    #[test]
    fn what_is_printed_is_what_the_broker_would_run_with() {
        let secret = "initAuthenticationUser={\"password\":\"S3cr3tWord\"}";
        let file = format!("sendMessageThreadPoolNums=4\n{secret}\n");
        let listen = ["--listen", "127.0.0.1:4321", "--http", "127.0.0.2:99"];
        let text = print(&file, &listen).unwrap();
        for line in [
            "metricsPromExporterHost=127.0.0.2",
            "metricsPromExporterPort=99",
            "brokerIP1=127.0.0.1",
            "brokerIP2=127.0.0.1",
            "haListenPort=4322",
            "# sendMessageThreadPoolNums: has no effect here",
            "# initAuthenticationUser: has no effect here",
        ] {
            assert!(has(&text, line), "{line} in {text}");
        }
        assert!(!has(&text, "brokerName="), "{text}");
        assert!(!text.contains("S3cr3tWord"), "{text}");
        assert_eq!(
            rmq_protocol::java_properties::parse_map(text.as_bytes()).unwrap()["listenPort"],
            "4321"
        );
    }

    #[test]
    fn the_address_that_clients_are_told_can_be_given_as_an_argument() {
        let more = ["--listen", "0.0.0.0:4321", "--advertise", "10.1.2.3"];
        let text = print("brokerIP1=10.9.9.9\n", &more).unwrap();
        assert!(has(&text, "brokerIP1=10.1.2.3"), "{text}");
    }

    #[test]
    fn a_broker_whose_log_java_has_elsewhere_does_not_start() {
        let error = print("storePathCommitLog=/elsewhere/commitlog\n", &[]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("storePathCommitLog=/elsewhere"), "{text}");
        assert!(text.contains("store/commitlog"), "{text}");
    }
}
