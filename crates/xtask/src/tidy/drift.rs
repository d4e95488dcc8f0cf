//! Generated files that no longer are what their generator makes.
//!
//! **Invariant:** compares, never writes; the finding has the command that writes.

use super::Finding;
use crate::{charts, workspace};
use anyhow::Context as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CRDS: &str = "crds";
const GENERATE: &str = "cargo run --quiet --package rocketmq -- crd";
/// Builds the program with the features that the tests are built with (a test beside it brings those
/// of the tests in): what is compiled here is not compiled once more for them.
const BUILD: &[&str] = &[
    "build",
    "--quiet",
    "--workspace",
    "--bin",
    "rocketmq",
    "--test",
    "program",
];

/// Compares what charts have of `crds/`.
pub(super) fn charts() -> anyhow::Result<Vec<Finding>> {
    let problem = format!("is not what crds/ says: run `{}`", charts::GENERATE);
    let stale = charts::stale()?.into_iter();
    Ok(stale
        .map(|path| Finding::new(&path, 0, problem.clone()))
        .collect())
}

/// Compares the files of `crds/`, one after the other, with what `rocketmq crd` prints.
pub(super) fn check() -> anyhow::Result<Vec<Finding>> {
    let folder = workspace::root().join(CRDS);
    let committed = joined(&folder)?;
    run("cargo", BUILD)?;
    let program = workspace::target().join("debug/rocketmq");
    let output = run(program, &["crd"])?;
    if committed == output.stdout {
        return Ok(Vec::new());
    }
    let problem = format!("is not what the types say: run `{GENERATE} --dir {CRDS}`");
    Ok(vec![Finding::new(Path::new(CRDS), 0, problem)])
}

fn run(program: impl AsRef<OsStr>, args: &[&str]) -> anyhow::Result<Output> {
    let shown = format!("{} {}", program.as_ref().display(), args.join(" "));
    let output = Command::new(program)
        .args(args)
        .current_dir(workspace::root())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(
        output.status.success(),
        "`{shown}` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}

/// The YAML files of `folder` in the order of their names, as one text.
fn joined(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let entries = folder
        .read_dir()
        .with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut text = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        if index > 0 {
            text.extend_from_slice(b"---\n");
        }
        text.extend(std::fs::read(path)?);
    }
    Ok(text)
}
