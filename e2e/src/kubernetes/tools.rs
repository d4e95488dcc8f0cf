//! What `e2e/node/build.sh` makes: the node image, kubectl and helm.
//!
//! **Invariant:** nothing is made twice from the same inputs; what takes long is said before it
//! begins.

use super::command;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the workspace.
pub(super) fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Makes one thing and gives the last line that the script says of it.
fn build(what: &str) -> anyhow::Result<String> {
    let output = Command::new("sh")
        .arg(workspace().join("e2e/node/build.sh"))
        .arg(what)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start sh")?;
    anyhow::ensure!(
        output.status.success(),
        "e2e/node/build.sh {what} ended with {}; what it said stands above",
        output.status
    );
    let text = String::from_utf8(output.stdout).context("a path that is no text")?;
    let last = text.trim().lines().last().map(str::to_owned);
    last.with_context(|| format!("e2e/node/build.sh {what} said nothing"))
}

/// Helm: the one of `E2E_HELM`, else built from its Go module.
pub(super) fn helm() -> anyhow::Result<PathBuf> {
    match std::env::var_os("E2E_HELM") {
        Some(helm) => Ok(PathBuf::from(helm)),
        None => build("helm").map(PathBuf::from),
    }
}

/// The runtime for a daemon whose root lacks a capability.
pub(super) fn bounded_runtime() -> anyhow::Result<PathBuf> {
    build("bound").map(PathBuf::from)
}

/// The node image's name and the kubectl of its version.
pub(super) fn node_image() -> anyhow::Result<(String, PathBuf)> {
    let line = build("image")?;
    let (image, kubectl) = line
        .split_once(' ')
        .with_context(|| format!("e2e/node/build.sh image said {line:?}"))?;
    Ok((image.to_owned(), PathBuf::from(kubectl)))
}

/// The kubectl of this computer.
pub(super) fn own_kubectl() -> anyhow::Result<PathBuf> {
    let mut version = Command::new("kubectl");
    version.args(["version", "--client"]);
    command::output(version, None)
        .context("kubectl is needed for a cluster that is there already")?;
    Ok(PathBuf::from("kubectl"))
}

/// The archive of the product's image: the one of `E2E_IMAGE_ARCHIVE`, else `cargo xtask image`'s.
pub(super) fn image_archive() -> anyhow::Result<PathBuf> {
    let archive = std::env::var_os("E2E_IMAGE_ARCHIVE").map_or_else(
        || workspace().join("target/image/rocketmq.tar"),
        PathBuf::from,
    );
    anyhow::ensure!(
        archive.exists(),
        "{} is missing: cargo xtask image makes it",
        archive.display()
    );
    Ok(archive)
}
