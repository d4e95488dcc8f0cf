//! `rocketmq proxy`: a gateway for 5.x clients from Java's `rmq-proxy.json`, or our own YAML.
//!
//! **Invariant:** arguments win over the file. What is wrong with the configuration is said before
//! anything is opened.

use crate::observe::HealthSource;
use crate::role::{self, Place, RoleArgs, Running};
use anyhow::Context as _;
use rmq_proxy::{Options, Probe, Proxy};
use rmq_types::SystemClock;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Where the Java gateway has its metrics.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5557);

/// `rocketmq proxy`
#[derive(Debug, clap::Args)]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// NameServers, separated by semicolons: host:9876;host:9876
    #[arg(short = 'n', long, alias = "namesrv", value_name = "ADDRS")]
    namesrv_addr: Option<String>,
}

pub(crate) fn run(args: &ProxyArgs) -> anyhow::Result<()> {
    let options = configure(args)?;
    let role = &args.role;
    if role.print_config {
        return std::io::stdout()
            .write_all(options.show().as_bytes())
            .context("cannot write to standard output");
    }
    options.check()?;
    // Nothing but the lock that keeps a second gateway of the same folder out.
    let data = role.data_dir("proxy")?;
    let place = Place {
        role: "proxy",
        http: role.http.unwrap_or(HTTP),
        data: &data,
        starting: Arc::new(|| "opening the port".to_owned()),
    };
    role::run(role, &place, async || {
        let proxy = Box::pin(Proxy::start(options, Arc::new(SystemClock))).await?;
        Ok(Server(proxy))
    })
}

fn configure(args: &ProxyArgs) -> anyhow::Result<Options> {
    let role = &args.role;
    let text = match &role.config {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {}", path.display()))?,
        None => String::new(),
    };
    let mut options = Options::parse(&text).with_context(|| match &role.config {
        Some(path) => path.display().to_string(),
        None => "arguments".to_owned(),
    })?;
    if let Some(list) = &args.namesrv_addr {
        let addresses = rmq_admin::parse_addresses(list)?;
        options.name_servers = addresses;
    }
    if let Some(listen) = role.listen {
        options.listen = listen;
    }
    Ok(options)
}

struct Server(Proxy);

impl Running for Server {
    fn addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(Health(self.0.probe()))
    }

    async fn shutdown(self) -> anyhow::Result<()> {
        self.0.shutdown().await;
        Ok(())
    }
}

struct Health(Probe);

impl HealthSource for Health {
    fn live(&self) -> Result<(), String> {
        Ok(())
    }

    fn ready(&self) -> Result<(), String> {
        self.0.ready()
    }

    fn metrics(&self, out: &mut String) {
        self.0.metrics(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: ProxyArgs,
    }

    fn options(config: &str, more: &[&str]) -> anyhow::Result<Options> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("rmq-proxy.json");
        std::fs::write(&file, config)?;
        let mut line = vec!["proxy", "-c", file.to_str().unwrap()];
        line.extend(more);
        configure(&Command::parse_from(line).args)
    }

    #[test]
    fn arguments_win_over_the_file() {
        let file = r#"{"namesrvAddr":"10.0.0.1:9876","grpcServerPort":18081}"#;
        let plain = options(file, &[]).unwrap();
        assert_eq!(plain.name_servers, ["10.0.0.1:9876"]);
        assert_eq!(plain.listen.port(), 18_081);
        let more = [
            "--namesrv",
            "127.0.0.1:1;127.0.0.1:2",
            "--listen",
            "127.0.0.1:9",
        ];
        let both = options(file, &more).unwrap();
        assert_eq!(both.name_servers, ["127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(both.listen.to_string(), "127.0.0.1:9");
    }

    #[test]
    fn a_file_that_is_wrong_is_named_with_its_key() {
        let error = options("grpcServerPorts: 1\n", &[]).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("rmq-proxy.json") && text.contains("grpcServerPorts"),
            "{text}"
        );
    }
}
