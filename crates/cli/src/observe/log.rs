//! Logs: text for people, JSON for machines, on standard error; `RUST_LOG` chooses the level.
//!
//! **Invariant:** set up once per process, before anything is logged. Bodies and secrets are never
//! logged anywhere.

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object on each line.
    Json,
}

/// Starts logging. A wrong `RUST_LOG` is an error: silence would be the worse surprise.
pub(crate) fn init(format: LogFormat) -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.trim().is_empty() => {
            EnvFilter::try_new(&text).with_context(|| format!("RUST_LOG={text} is no filter"))?
        }
        _ => EnvFilter::new("info"),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let done = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    done.map_err(|error| anyhow!("cannot start logging: {error}"))
}
