//! Specs that a real API server refuses with our words.
//!
//! **Invariant:** the table is the one of the types' own tests, so that both judges judge the same.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::namespace::Namespace;
use super::super::tools;
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

const TABLE: &str = "operator/api/tests/invalid-specs.yaml";

#[derive(Debug, Deserialize)]
struct Case {
    says: String,
    kind: Option<String>,
    name: Option<String>,
    was: Option<Value>,
    spec: Value,
    message: String,
}

pub(super) fn check(cluster: &KubeCluster) -> Found {
    let text = std::fs::read_to_string(tools::workspace().join(TABLE)).context(TABLE)?;
    let cases: Vec<Case> = serde_saphyr::from_str(&text).context(TABLE)?;
    let namespace = Namespace::new(cluster, "refused")?;
    let mut problems = Vec::new();
    for case in &cases {
        if let Err(error) = refused(cluster, namespace.name(), case) {
            problems.push(format!("{}: {error:#}", case.says));
        }
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(format!("({} specs)", cases.len()))
}

fn refused(cluster: &KubeCluster, namespace: &str, case: &Case) -> anyhow::Result<()> {
    if let Some(was) = &case.was {
        let said = cluster.try_kubectl(
            &["create", "-f", "-"],
            Some(&manifest(namespace, case, was)),
        )?;
        anyhow::ensure!(said.ok, "what was there before is refused: {}", said.err);
    }
    let text = manifest(namespace, case, &case.spec);
    // An edit is tried on the object that is there; of a new one nothing is kept.
    let words: &[&str] = if case.was.is_some() {
        &["replace", "-f", "-"]
    } else {
        &["create", "--dry-run=server", "-f", "-"]
    };
    let said = cluster.try_kubectl(words, Some(&text))?;
    if case.was.is_some() {
        cluster.try_kubectl(&["delete", "--wait=false", "-f", "-"], Some(&text))?;
    }
    anyhow::ensure!(!said.ok, "accepted");
    anyhow::ensure!(
        said.err.contains(&case.message),
        "refused without {:?}: {}",
        case.message,
        said.err.trim()
    );
    Ok(())
}

/// The object, paused: the operator makes nothing of what is there only to be edited.
fn manifest(namespace: &str, case: &Case, spec: &Value) -> String {
    let kind = case.kind.as_deref().unwrap_or("RocketMQCluster");
    json!({
        "apiVersion": "rocketmq.rs/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": case.name.as_deref().unwrap_or("a"),
            "namespace": namespace,
            "annotations": { "rocketmq.rs/pause": "true" },
        },
        "spec": spec,
    })
    .to_string()
}
