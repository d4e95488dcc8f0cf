//! Which cluster to talk to, how long to wait, and in which form to answer.

use std::time::Duration;

use anyhow::Context as _;
use rmq_admin::{AdminClient, AdminOptions, parse_addresses};

use super::output::Output;

const NAMESRV_VARIABLE: &str = "NAMESRV_ADDR";
const NAMESRV_DEFAULT: &str = "127.0.0.1:9876";

/// Arguments of every verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every verb")]
pub(super) struct ConnectArgs {
    /// NameServers as host:port, several separated by ';'
    /// [default: the variable NAMESRV_ADDR, or 127.0.0.1:9876]
    #[arg(short = 'n', long, global = true, value_name = "ADDRESSES")]
    namesrv: Option<String>,
    /// Seconds to wait for one answer
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    timeout: u64,
    /// A table for people, or JSON lines for scripts
    #[arg(short = 'o', long, global = true, value_enum, default_value_t = Output::Table)]
    output: Output,
}

impl ConnectArgs {
    pub(super) fn client(&self) -> anyhow::Result<AdminClient> {
        let variable = || {
            std::env::var(NAMESRV_VARIABLE)
                .ok()
                .filter(|text| !text.is_empty())
        };
        let (text, origin) = match (&self.namesrv, variable()) {
            (Some(text), _) => (text.clone(), "--namesrv"),
            (None, Some(text)) => (text, NAMESRV_VARIABLE),
            (None, None) => (NAMESRV_DEFAULT.to_owned(), "the default"),
        };
        let addresses = parse_addresses(&text).context(origin)?;
        let timeout = Duration::from_secs(self.timeout);
        Ok(AdminClient::new(
            &addresses,
            AdminOptions {
                timeout,
                ..AdminOptions::default()
            },
        ))
    }

    pub(super) fn output(&self) -> Output {
        self.output
    }
}
