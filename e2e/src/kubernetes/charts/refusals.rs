//! Values that charts must refuse, with the words that must stand in the refusal.
//!
//! **Invariant:** each row is refused by helm before anything could be sent to a cluster, and its
//! refusal names the value.

use super::Charts;

/// A chart, its `--set`, and what the refusal must name.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("operator", "replica=2", &["replica"]),
    ("operator", "replicas=two", &["replicas", "integer"]),
    ("operator", "replicas=-1", &["replicas", "minimum"]),
    ("operator", "replicas=9", &["replicas", "maximum"]),
    ("operator", "watch.mode=some", &["watch", "mode"]),
    (
        "operator",
        "watch.mode=namespaces",
        &["watch.namespaces", "at least one"],
    ),
    (
        "operator",
        "watch.namespaces={a}",
        &["watch.namespaces", "watch.mode"],
    ),
    (
        "operator",
        "watch.mode=namespaces,watch.namespaces={A_b}",
        &["watch", "namespaces", "pattern"],
    ),
    ("operator", "image.tag=latest", &["image", "tag"]),
    ("operator", "image.repository=", &["image", "repository"]),
    ("operator", "image.digest=sha256:123", &["image", "digest"]),
    ("operator", "image.pullPolicy=Sometimes", &["pullPolicy"]),
    ("operator", "log.format=xml", &["log", "format"]),
    ("operator", "extraArgs={verbose}", &["extraArgs"]),
    ("operator", "podLabels.a=1", &["podLabels", "string"]),
    (
        "operator",
        "resources.limit.memory=1Gi",
        &["resources", "limit"],
    ),
    ("operator-crds", "keep=maybe", &["keep", "boolean"]),
    ("operator-crds", "kept=true", &["kept"]),
    ("cluster", "spec.version=null", &["version"]),
    ("cluster", "spec.brokers.group=2", &["brokers", "group"]),
    ("cluster", "spec.brokers.groups=0", &["groups", "minimum"]),
    (
        "cluster",
        "spec.brokers.groups=many",
        &["groups", "integer"],
    ),
    (
        "cluster",
        "spec.nameServer.replicas=10",
        &["nameServer", "replicas", "maximum"],
    ),
    ("cluster", "spec.brokers.flush=sync", &["flush"]),
    (
        "cluster",
        "spec.brokers.config.fileReservedTime=72",
        &["fileReservedTime", "string"],
    ),
    ("cluster", "spec.clusterName=", &["clusterName"]),
    (
        "cluster",
        "topics.orders.queues=3",
        &["topics", "orders", "queues"],
    ),
    (
        "cluster",
        "topics.orders.cluster=x",
        &["topics", "orders", "cluster"],
    ),
    (
        "cluster",
        "topics.orders.writeQueues=0",
        &["writeQueues", "minimum"],
    ),
    ("cluster", "cluster.version=0.1.0", &["cluster"]),
    (
        "cluster",
        "name=a-name-that-is-much-longer-than-forty-characters",
        &["name", "40"],
    ),
];

/// Tries each.
pub(super) fn all(charts: &Charts) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for (chart, set, wanted) in WRONG {
        match charts.refusal(chart, &["--set", set]) {
            Err(error) => problems.push(format!("{error:#}")),
            Ok(said) => {
                let lacks = wanted.iter().filter(|words| !said.contains(**words));
                let lacks: Vec<_> = lacks.collect();
                if !lacks.is_empty() {
                    problems.push(format!("{chart} {set}: no word of {lacks:?} in: {said}"));
                }
            }
        }
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}
