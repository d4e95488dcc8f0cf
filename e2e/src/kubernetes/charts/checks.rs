//! What charts render, each check a sentence.
//!
//! **Invariant:** a check looks at what Kubernetes would be sent, never at a template.

use super::{Charts, of_kind, only, refusals};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;

type Check = (&'static str, fn(&Charts) -> anyhow::Result<()>);

/// Every check.
pub(super) const ALL: &[Check] = &[
    ("helm lint finds nothing, warnings included", lint),
    (
        "the operator runs twice, without a right on its node, and is asked whether it works",
        operator_pods,
    ),
    (
        "watching its own namespace or some needs no cluster-wide right but reading StorageClasses",
        rights_of_some,
    ),
    (
        "watching every namespace needs one ClusterRole",
        rights_of_all,
    ),
    (
        "no mode lets the operator read Secrets, run commands in pods or change kinds and rights",
        rights_never_given,
    ),
    (
        "two releases in two namespaces share no object of the whole cluster",
        two_releases,
    ),
    (
        "optional parts are there when asked for and gone when not",
        options,
    ),
    (
        "every kind is in its chart and stays when the chart goes",
        kinds,
    ),
    (
        "values reach the RocketMQCluster unchanged, whatever is in them",
        values,
    ),
    (
        "topics and groups get names that Kubernetes takes",
        topic_names,
    ),
    (
        "wrong values are refused with the place and the reason",
        refusals::all,
    ),
    ("notes say what to do next", notes),
];

fn ensure_eq(found: &Value, wanted: &Value, what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(found == wanted, "{what} is {found}, not {wanted}");
    Ok(())
}

fn lint(charts: &Charts) -> anyhow::Result<()> {
    for chart in ["operator", "operator-crds", "cluster"] {
        let said = charts.helm(&["lint", "--strict", &format!("charts/{chart}")])?;
        anyhow::ensure!(said.ok, "{}{}", said.out, said.err);
    }
    Ok(())
}

fn operator_pods(charts: &Charts) -> anyhow::Result<()> {
    let objects = charts.render("operator", &[])?;
    let deployment = only(&objects, "Deployment")?;
    ensure_eq(&deployment["spec"]["replicas"], &json!(2), "replicas")?;
    let pod = &deployment["spec"]["template"]["spec"];
    let security = &pod["securityContext"];
    ensure_eq(&security["runAsNonRoot"], &json!(true), "runAsNonRoot")?;
    ensure_eq(
        &security["seccompProfile"]["type"],
        &json!("RuntimeDefault"),
        "seccomp",
    )?;
    let container = &pod["containers"][0];
    ensure_eq(
        &container["securityContext"],
        &json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        }),
        "securityContext",
    )?;
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        anyhow::ensure!(container[probe]["httpGet"].is_object(), "no {probe}");
    }
    for amount in ["requests", "limits"] {
        anyhow::ensure!(
            container["resources"][amount]["memory"].is_string(),
            "{amount}"
        );
    }
    let tag = container["image"].as_str().unwrap_or_default();
    anyhow::ensure!(tag.ends_with(":0.1.0"), "the image is {tag}");
    // A selector that matches no pod would protect nothing and say nothing.
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for (kind, path) in [
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ("Service", "/spec/selector"),
        ("Deployment", "/spec/selector/matchLabels"),
    ] {
        let selector = only(&objects, kind)?.pointer(path);
        let selector = selector.and_then(Value::as_object).context(kind)?;
        anyhow::ensure!(!selector.is_empty(), "{kind} selects everything");
        for (label, value) in selector {
            ensure_eq(&labels[label], value, &format!("{kind}: {label}"))?;
        }
    }
    Ok(())
}

/// Names of the cluster-wide objects that give rights.
fn cluster_wide(objects: &[Value]) -> BTreeSet<String> {
    let kinds = ["ClusterRole", "ClusterRoleBinding"];
    let found = kinds.iter().flat_map(|kind| of_kind(objects, kind));
    found
        .filter_map(|object| object["metadata"]["name"].as_str())
        .map(str::to_owned)
        .collect()
}

/// Namespaces in which the operator may work.
fn namespaces(objects: &[Value]) -> BTreeSet<&str> {
    of_kind(objects, "RoleBinding")
        .into_iter()
        .filter(|binding| {
            let name = binding["metadata"]["name"].as_str();
            !name.is_some_and(|name| name.ends_with("-lease"))
        })
        .filter_map(|binding| binding["metadata"]["namespace"].as_str())
        .collect()
}

fn arguments(objects: &[Value]) -> anyhow::Result<Vec<String>> {
    let deployment = only(objects, "Deployment")?;
    let words = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    let words = words.context("no arguments")?.iter();
    Ok(words.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn rights_of_some(charts: &Charts) -> anyhow::Result<()> {
    let own = charts.render("operator", &[])?;
    anyhow::ensure!(
        namespaces(&own) == BTreeSet::from(["ns"]),
        "{:?}",
        namespaces(&own)
    );
    let some = ["--set", "watch.mode=namespaces,watch.namespaces={b,a}"];
    let some = charts.render("operator", &some)?;
    anyhow::ensure!(
        namespaces(&some) == BTreeSet::from(["a", "b"]),
        "{:?}",
        namespaces(&some)
    );
    for (objects, watched) in [(&own, vec!["ns"]), (&some, vec!["a", "b"])] {
        let wide = cluster_wide(objects);
        anyhow::ensure!(
            wide.iter().all(|name| name.ends_with("-storage")),
            "{wide:?}"
        );
        let words = arguments(objects)?;
        let word = format!("--watch-namespaces={}", watched.join(","));
        anyhow::ensure!(words.contains(&word), "{words:?} lack {word}");
    }
    let none = charts.render("operator", &["--set", "rbac.readStorageClasses=false"])?;
    anyhow::ensure!(cluster_wide(&none).is_empty(), "{:?}", cluster_wide(&none));
    Ok(())
}

fn rights_of_all(charts: &Charts) -> anyhow::Result<()> {
    let all = charts.render("operator", &["--set", "watch.mode=all"])?;
    anyhow::ensure!(namespaces(&all).is_empty(), "{:?}", namespaces(&all));
    anyhow::ensure!(cluster_wide(&all).len() == 2, "{:?}", cluster_wide(&all));
    let words = arguments(&all)?;
    anyhow::ensure!(
        !words.iter().any(|word| word.starts_with("--watch")),
        "{words:?}"
    );
    Ok(())
}

fn rights_never_given(charts: &Charts) -> anyhow::Result<()> {
    let never = [
        "secrets",
        "pods/exec",
        "customresourcedefinitions",
        "roles",
        "rolebindings",
        "clusterroles",
        "*",
    ];
    for mode in ["watch.mode=own", "watch.mode=all"] {
        let objects = charts.render("operator", &["--set", mode])?;
        let roles = [of_kind(&objects, "Role"), of_kind(&objects, "ClusterRole")].concat();
        for rule in roles
            .iter()
            .filter_map(|role| role["rules"].as_array())
            .flatten()
        {
            for list in ["resources", "verbs", "apiGroups"] {
                for word in rule[list].as_array().context("a rule without words")? {
                    let word = word.as_str().unwrap_or_default();
                    anyhow::ensure!(!never.contains(&word), "{mode} gives {word}: {rule}");
                }
            }
        }
    }
    Ok(())
}

fn two_releases(charts: &Charts) -> anyhow::Result<()> {
    let mode = ["--set", "watch.mode=all"];
    let first = charts.render("operator", &mode)?;
    let words = [&mode[..], &["--namespace", "other"]].concat();
    let second = charts.render("operator", &words)?;
    let shared: Vec<_> = cluster_wide(&first)
        .intersection(&cluster_wide(&second))
        .cloned()
        .collect();
    anyhow::ensure!(shared.is_empty(), "both make {shared:?}");
    for object in &second {
        let namespace = &object["metadata"]["namespace"];
        anyhow::ensure!(
            namespace == "other"
                || object["kind"]
                    .as_str()
                    .is_some_and(|k| k.starts_with("Cluster")),
            "{} is in {namespace}",
            object["kind"]
        );
    }
    Ok(())
}

fn options(charts: &Charts) -> anyhow::Result<()> {
    for (set, kind, count) in [
        ("pdb.enabled=false", "PodDisruptionBudget", 0),
        ("networkPolicy.enabled=false", "NetworkPolicy", 0),
        ("monitoring.podMonitor.enabled=true", "PodMonitor", 1),
        ("monitoring.podMonitor.enabled=false", "PodMonitor", 0),
        ("rbac.create=false", "Role", 0),
        ("serviceAccount.create=false", "ServiceAccount", 0),
    ] {
        let objects = charts.render("operator", &["--set", set])?;
        let found = of_kind(&objects, kind).len();
        anyhow::ensure!(found == count, "{set}: {found} of kind {kind}");
    }
    let digest = format!("image.digest=sha256:{}", "0".repeat(64));
    let objects = charts.render("operator", &["--set", &digest])?;
    let pod = &only(&objects, "Deployment")?["spec"]["template"]["spec"];
    let image = pod["containers"][0]["image"].as_str().unwrap_or_default();
    anyhow::ensure!(image.contains("@sha256:"), "{image}");
    Ok(())
}

fn kinds(charts: &Charts) -> anyhow::Result<()> {
    let folder = super::super::tools::workspace().join("crds");
    let files = std::fs::read_dir(folder)?.count();
    let kept = charts.render("operator-crds", &[])?;
    anyhow::ensure!(kept.len() == files, "{} kinds, {files} files", kept.len());
    for kind in &kept {
        ensure_eq(&kind["kind"], &json!("CustomResourceDefinition"), "kind")?;
        let policy = &kind["metadata"]["annotations"]["helm.sh/resource-policy"];
        ensure_eq(policy, &json!("keep"), "helm.sh/resource-policy")?;
    }
    let all = charts.render("operator-crds", &["--set", "keep=false"])?;
    anyhow::ensure!(all.len() == files, "{} kinds", all.len());
    anyhow::ensure!(
        all.iter()
            .all(|kind| kind["metadata"]["annotations"].is_null())
    );
    Ok(())
}

fn values(charts: &Charts) -> anyhow::Result<()> {
    let spec = json!({
        "version": "0.1.0",
        "nameServer": { "replicas": 2 },
        "brokers": {
            "groups": 2,
            "config": {
                "a": "x=y # no comment",
                "b": "\"quoted\" and 'single'",
                "c": "line one\nline two\n",
                "d": "{{ .Values }} ${HOME} %s",
                "e": "0123",
                "f": "true",
                "g": " leading and trailing ",
                "h": ""
            },
        },
    });
    let objects = charts.render_values("cluster", &json!({ "spec": spec }).to_string())?;
    let cluster = only(&objects, "RocketMQCluster")?;
    ensure_eq(&cluster["spec"], &spec, "spec")?;
    ensure_eq(&cluster["metadata"]["name"], &json!("rel"), "name")
}

fn topic_names(charts: &Charts) -> anyhow::Result<()> {
    let long = "x".repeat(127);
    let names = ["orders", "Orders", "a_b", "a-b", "%SYS%thing", &long];
    let topics: serde_json::Map<_, _> = names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({ "writeQueues": 4, "readQueues": 4 }),
            )
        })
        .collect();
    let values = json!({
        "spec": { "version": "0.1.0" }, "topics": topics, "consumerGroups": { "billing": null },
    });
    let objects = charts.render_values("cluster", &values.to_string())?;
    let topics = of_kind(&objects, "Topic");
    let mut seen = BTreeSet::new();
    for topic in &topics {
        let name = topic["metadata"]["name"].as_str().context("no name")?;
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        anyhow::ensure!(plain && name.len() <= 253 && !name.ends_with('-'), "{name}");
        anyhow::ensure!(seen.insert(name), "{name} twice");
        ensure_eq(&topic["spec"]["writeQueues"], &json!(4), name)?;
    }
    let of: BTreeSet<_> = topics
        .iter()
        .filter_map(|t| t["spec"]["topic"].as_str())
        .collect();
    anyhow::ensure!(of == BTreeSet::from(names), "{of:?}");
    ensure_eq(
        &only(&objects, "ConsumerGroup")?["spec"],
        &json!({ "cluster": "rel", "group": "billing" }),
        "the group",
    )
}

fn notes(charts: &Charts) -> anyhow::Result<()> {
    for (chart, wanted) in [
        (
            "operator",
            ["MISSING", "helm -n ns test rel", "examples/quickstart.yaml"],
        ),
        (
            "operator-crds",
            ["leaves them there", "kubectl delete", "charts/operator"],
        ),
        (
            "cluster",
            [
                "--for=condition=Ready rmq/rel",
                "helm -n ns test rel",
                "describe rmq rel",
            ],
        ),
    ] {
        let path = format!("charts/{chart}");
        let said = charts.helm(&["install", "rel", &path, "-n", "ns", "--dry-run=client"])?;
        anyhow::ensure!(said.ok, "{chart}: {}", said.err);
        for words in wanted {
            anyhow::ensure!(
                said.out.contains(words),
                "{chart} does not say {words:?}:\n{}",
                said.out
            );
        }
    }
    Ok(())
}
