//! `rocketmq operator`: the operator of a Kubernetes cluster.
//!
//! **Invariant:** the keys of configuration files that the operator knows are those of the broker
//! and NameServer in this program. What cannot be had from the API server at the start ends the
//! process with one line.

use crate::observe::{HealthSource, LogFormat, Observer, init_log};
use crate::role::StopSignal;
use anyhow::Context as _;
use kube::{Client, Config};
use rmq_broker::config::{Change, Loaded, Settings};
use rmq_namesrv::config::{NamesrvOptions, UpdateError};
use rmq_operator::build::{KeyClass, KeyTable, Site};
use rmq_operator::run::{Operator, OperatorOptions, OperatorProbe};
use rmq_protocol::java_properties;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// `rocketmq operator`
#[derive(Debug, clap::Args)]
pub(crate) struct OperatorArgs {
    /// Namespaces to watch, separated by commas; all of them when not given
    #[arg(
        long,
        env = "WATCH_NAMESPACES",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    watch_namespaces: Vec<String>,
    /// The operator's own namespace, where its Lease is
    #[arg(
        long,
        env = "POD_NAMESPACE",
        value_name = "NAME",
        default_value = "default"
    )]
    namespace: String,
    /// Who this operator is among several; the name of its pod
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Registry and name of the image of brokers and NameServers, without tag
    #[arg(
        long,
        env = "IMAGE_REPOSITORY",
        value_name = "NAME",
        default_value = "rocketmq"
    )]
    image_repository: String,
    /// Name of the Lease by which one of several operators leads
    #[arg(
        long,
        env = "LEASE_NAME",
        value_name = "NAME",
        default_value = "rocketmq-operator"
    )]
    lease: String,
    /// Lead at once, without a Lease: for one operator alone
    #[arg(long)]
    no_lease: bool,
    /// Objects of one kind that are looked at at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    /// Address and port of /metrics, /livez, /readyz and /startupz
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:5557")]
    http: SocketAddr,
    /// Form of the log on standard error; RUST_LOG chooses what is in it
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

pub(crate) fn run(args: OperatorArgs) -> anyhow::Result<()> {
    init_log(args.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("operator")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(Box::pin(serve(args)));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn serve(args: OperatorArgs) -> anyhow::Result<()> {
    let mut stop = StopSignal::listen(false)?;
    let starting = Arc::new(|| "starting".to_owned());
    let observer = Observer::bind(args.http, "operator", starting).await?;
    let config = Config::infer()
        .await
        .context("no Kubernetes cluster: neither a pod's own account nor a kubeconfig")?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).context("cannot speak to the API server")?;
    let options = options(args)?;
    tracing::info!(
        version = options.version,
        identity = options.identity,
        server,
        namespaces = if options.namespaces.is_empty() { "all".to_owned() } else { options.namespaces.join(",") },
        health = %observer.local_addr(),
        "operator"
    );
    let operator = Operator::new(client, options)?;
    observer.attach(Arc::new(Health(operator.probe())));
    let (sender, receiver) = watch::channel(false);
    let mut running = std::pin::pin!(operator.run(receiver));
    let reason = tokio::select! {
        biased;
        reason = stop.wait() => reason,
        result = &mut running => return result.map_err(Into::into),
    };
    tracing::info!(reason, "stopping");
    observer.stopping();
    let _ = sender.send(true);
    tokio::select! {
        biased;
        result = &mut running => result?,
        _ = stop.insist() => anyhow::bail!("stopped at once, at the second signal"),
    }
    tracing::info!("stopped");
    Ok(())
}

fn options(args: OperatorArgs) -> anyhow::Result<OperatorOptions> {
    let identity = match args.identity {
        Some(identity) => identity,
        None => rustix::system::uname()
            .nodename()
            .to_str()
            .context("the host's name is no text: give --identity")?
            .to_owned(),
    };
    Ok(OperatorOptions {
        site: Site {
            image_repository: args.image_repository,
            operator_namespace: args.namespace,
            keys: keys(),
        },
        namespaces: args
            .watch_namespaces
            .into_iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        identity,
        lease: (!args.no_lease).then_some(args.lease),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        concurrency: args.concurrency,
    })
}

/// The keys of the broker and NameServer of this program, and what a change of one takes.
fn keys() -> KeyTable {
    let broker = Settings::KEYS
        .iter()
        .map(|key| {
            let class = match key.change {
                Change::Live => KeyClass::Live,
                Change::Restart => KeyClass::Restart,
            };
            (key.name.to_owned(), class)
        })
        .collect();
    let defaults = Settings::default().entries();
    let defaults = defaults
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    KeyTable::new(broker, name_server_keys(), defaults.collect())
        .with_checks(check_broker, check_name_server)
}

/// A NameServer says itself which of its keys it takes while it runs.
fn name_server_keys() -> BTreeMap<String, KeyClass> {
    let options = NamesrvOptions::new(Path::new("/"));
    let all = java_properties::parse_map(options.to_properties().as_bytes()).unwrap_or_default();
    all.into_iter()
        .map(|(key, value)| {
            let line = java_properties::write([(key.as_str(), value)]);
            let class = match options.updated(line.as_bytes()) {
                Err(UpdateError::NotLive { .. } | UpdateError::BlackListed { .. }) => {
                    KeyClass::Restart
                }
                _ => KeyClass::Live,
            };
            (key, class)
        })
        .collect()
}

fn check_broker(key: &str, value: &str) -> Result<(), String> {
    Loaded::default()
        .set(key, value)
        .map_err(|error| error.to_string())
}

fn check_name_server(key: &str, value: &str) -> Result<(), String> {
    let line = java_properties::write([(key, value.to_owned())]);
    NamesrvOptions::new(Path::new("/"))
        .parse(&line)
        .map(drop)
        .map_err(|error| error.to_string())
}

struct Health(OperatorProbe);

impl HealthSource for Health {
    fn live(&self) -> Result<(), String> {
        // A loop that ends takes the process with it.
        Ok(())
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

    #[test]
    fn keys_have_the_class_that_the_programs_give_them() {
        let keys = keys();
        assert_eq!(keys.broker("fileReservedTime"), Some(KeyClass::Live));
        assert_eq!(keys.broker("maxHashSlotNum"), Some(KeyClass::Restart));
        assert_eq!(keys.broker("sendMessageThreadPoolNums"), None);
        assert_eq!(keys.name_server("orderMessageEnable"), Some(KeyClass::Live));
        assert_eq!(keys.name_server("listenPort"), Some(KeyClass::Restart));
    }

    #[test]
    fn a_wrong_value_is_told_as_the_programs_tell_it() {
        let keys = keys();
        assert_eq!(keys.check_broker("fileReservedTime", "48"), Ok(()));
        assert!(keys.check_broker("fileReservedTime", "x").is_err());
        assert_eq!(keys.check_name_server("orderMessageEnable", "true"), Ok(()));
        assert!(
            keys.check_name_server("orderMessageEnabled", "true")
                .is_err()
        );
    }
}
