//! Which crate may depend on which.
//!
//! **Invariant:** an arrow points to a lower layer. An edge inside a layer exists only if it stands
//! in [`SAME_LAYER`]; the pure layers know neither files, sockets, threads nor clocks.

use super::Finding;
use crate::workspace;
use anyhow::Context as _;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Layer of each crate: 0 values, 1 pure, 2 adapters, 3 shells, 4 the one binary.
const LAYERS: &[(&str, u8)] = &[
    ("rmq-types", 0),
    ("rmq-protocol", 1),
    ("rmq-pop", 1),
    ("rmq-replica", 1),
    ("rmq-controller-fsm", 1),
    ("rmq-operator-api", 1),
    ("rmq-net", 2),
    ("rmq-store", 2),
    ("rmq-namesrv", 2),
    ("rmq-admin", 2),
    ("rmq-raft", 2),
    ("rmq-broker", 3),
    ("rmq-proxy", 3),
    ("rmq-controller", 3),
    ("rmq-operator", 3),
    ("rmq-bench", 3),
    ("rocketmq", 4),
];
/// Not part of the product: they may use any crate, and no crate may use them.
const DEVELOPMENT: &[&str] = &["xtask", "rmq-e2e", "rmq-sim"];
const SAME_LAYER: &[(&str, &str)] = &[
    ("rmq-admin", "rmq-net"),
    ("rmq-namesrv", "rmq-net"),
    ("rmq-raft", "rmq-net"),
];
/// Edges that the layers would allow and the design does not.
const FORBIDDEN: &[(&str, &str)] = &[
    ("rmq-operator", "rmq-store"),
    ("rmq-operator", "rmq-pop"),
    ("rmq-operator", "rmq-replica"),
    ("rmq-operator", "rmq-controller-fsm"),
];
/// What the pure layers (0 and 1) may not use.
const IMPURE: &[&str] = &[
    "tokio",
    "mio",
    "socket2",
    "rustix",
    "libc",
    "memmap2",
    "rand",
    "getrandom",
    "tempfile",
    "crossbeam",
    "parking_lot",
    "reqwest",
    "hyper",
    "axum",
];

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Every crate of the workspace.
pub(super) fn packages() -> anyhow::Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

/// Findings about edges.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let path = relative(&package.manifest_path);
    let name = package.name.as_str();
    if DEVELOPMENT.contains(&name) {
        return Vec::new();
    }
    let Some(layer) = layer(name) else {
        let problem = format!(
            "{name} has no layer: give it one in crates/xtask/src/tidy/layers.rs and in ARCHITECTURE.md"
        );
        return vec![Finding::new(&path, 0, problem)];
    };
    // Tests may use what they like.
    let edges = package
        .dependencies
        .iter()
        .filter(|edge| edge.kind.as_deref() != Some("dev"));
    edges
        .filter_map(|edge| problem(name, layer, edge))
        .map(|problem| Finding::new(&path, 0, problem))
        .collect()
}

fn problem(from: &str, layer_from: u8, edge: &Dependency) -> Option<String> {
    let to = edge.name.as_str();
    if edge.path.is_none() {
        return (layer_from <= 1 && IMPURE.contains(&to)).then(|| {
            format!("{from} is pure (layer {layer_from}) and may not use {to}: take what it gives as an argument")
        });
    }
    if DEVELOPMENT.contains(&to) {
        return Some(format!(
            "{from} may not use {to}: that crate is for development only"
        ));
    }
    if FORBIDDEN.contains(&(from, to)) {
        return Some(format!(
            "{from} may not use {to}: it talks to it over the network, through rmq-admin"
        ));
    }
    let layer_to = layer(to)?;
    let allowed = layer_to < layer_from || SAME_LAYER.contains(&(from, to));
    (!allowed).then(|| {
        format!(
            "{from} (layer {layer_from}) may not use {to} (layer {layer_to}): move what both need \
             to a lower layer, or argue for the edge in ARCHITECTURE.md and list it in \
             crates/xtask/src/tidy/layers.rs"
        )
    })
}

fn layer(name: &str) -> Option<u8> {
    let found = LAYERS.iter().find(|(listed, _)| *listed == name);
    found.map(|(_, layer)| *layer)
}

fn relative(path: &Path) -> PathBuf {
    let root = workspace::root();
    path.strip_prefix(&root).unwrap_or(path).to_owned()
}

/// The layer of the crate that a file belongs to; 3 for the crates of development.
pub(super) fn layer_of_file(packages: &[Package], file: &Path) -> u8 {
    let owner = packages
        .iter()
        .filter_map(|package| {
            let manifest = relative(&package.manifest_path);
            let folder = manifest.parent()?.to_owned();
            file.starts_with(&folder)
                .then(|| (folder.components().count(), package.name.as_str()))
        })
        .max();
    owner.and_then(|(_, name)| layer(name)).unwrap_or(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(name: &str, own: bool) -> Dependency {
        Dependency {
            name: name.to_owned(),
            kind: None,
            path: own.then(PathBuf::new),
        }
    }

    #[test]
    fn arrows_point_down_unless_they_are_listed() {
        assert_eq!(problem("rmq-broker", 3, &edge("rmq-store", true)), None);
        assert_eq!(problem("rmq-admin", 2, &edge("rmq-net", true)), None);
        assert!(problem("rmq-store", 2, &edge("rmq-net", true)).is_some());
        assert!(problem("rmq-types", 0, &edge("rmq-protocol", true)).is_some());
        assert!(problem("rmq-operator", 3, &edge("rmq-store", true)).is_some());
        assert!(problem("rmq-broker", 3, &edge("xtask", true)).is_some());
    }

    #[test]
    fn pure_layers_may_not_use_a_runtime() {
        assert!(problem("rmq-protocol", 1, &edge("tokio", false)).is_some());
        assert_eq!(problem("rmq-protocol", 1, &edge("bytes", false)), None);
        assert_eq!(problem("rmq-net", 2, &edge("tokio", false)), None);
    }
}
