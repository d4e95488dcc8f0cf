//! `rocketmq crd`: the definitions that a cluster needs before the first manifest.

use anyhow::Context as _;
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;

/// Options of `rocketmq crd`.
#[derive(Debug, Args)]
pub(crate) struct CrdArgs {
    /// Write one file for each kind into this folder instead of printing
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Prints them as YAML, or writes their files.
pub(crate) fn run(args: &CrdArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        let yaml = rmq_operator_api::crd::yaml().context("cannot write the definitions as YAML")?;
        return std::io::stdout()
            .write_all(yaml.as_bytes())
            .context("cannot write to standard output");
    };
    let files = rmq_operator_api::crd::files().context("cannot write the definitions as YAML")?;
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
