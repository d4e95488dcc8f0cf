//! Generated files that no longer are what their generator makes.
//!
//! **Invariant:** compares, never writes; the finding has the command that writes.

use super::Finding;
use crate::workspace;
use anyhow::Context as _;
use std::path::Path;
use std::process::Command;

const CRDS: &str = "crds/rocketmqclusters.yaml";
const GENERATE: &str = "cargo run --quiet --package rocketmq -- crd";

/// Compares `crds/` with what `rocketmq crd` prints, once there is such a file.
pub(super) fn check() -> anyhow::Result<Vec<Finding>> {
    let path = Path::new(CRDS);
    let committed = workspace::root().join(path);
    if !committed.exists() {
        return Ok(Vec::new());
    }
    let mut words = GENERATE.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program)
        .args(words)
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "`{GENERATE}` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    if std::fs::read(&committed)? == output.stdout {
        return Ok(Vec::new());
    }
    let problem = format!("is not what the types say: run `{GENERATE} > {CRDS}`");
    Ok(vec![Finding::new(path, 0, problem)])
}
