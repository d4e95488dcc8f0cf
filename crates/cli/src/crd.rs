//! `rocketmq crd`: the definitions that a cluster needs before the first manifest.

use anyhow::Context as _;
use std::io::Write as _;

/// Prints them as YAML.
pub(crate) fn run() -> anyhow::Result<()> {
    let yaml = rmq_operator_api::crd::yaml().context("cannot write the definitions as YAML")?;
    std::io::stdout()
        .write_all(yaml.as_bytes())
        .context("cannot write to standard output")
}
