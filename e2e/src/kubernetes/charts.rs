//! The suite `charts`: what charts render, what they refuse, and what they say. Needs no cluster.
//!
//! **Invariant:** helm itself judges; nothing of its work is repeated here.

use super::command::{self, Progress, Said};
use super::tools;
use crate::suite::{Case, Outcome};
use anyhow::Context as _;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

mod checks;
mod refusals;

/// Helm on charts that nobody has installed.
#[derive(Debug)]
pub(super) struct Charts {
    helm: PathBuf,
    folder: tempfile::TempDir,
}

/// Tries every check whose name contains `only`.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<Vec<Case>> {
    let progress = Progress::start();
    let charts = Charts {
        helm: tools::helm()?,
        folder: tempfile::tempdir().context("no temporary folder")?,
    };
    let mut cases = Vec::new();
    for (name, check) in checks::ALL {
        if only.is_none_or(|only| name.contains(only)) {
            progress.say(name);
            let (outcome, detail) = match check(&charts) {
                Ok(()) => (Outcome::Passed, String::new()),
                Err(error) => (Outcome::Failed, format!("{error:#}")),
            };
            let name = (*name).to_owned();
            cases.push(Case {
                name,
                outcome,
                detail,
            });
        }
    }
    Ok(cases)
}

impl Charts {
    /// helm with these words, in the workspace's folder and without a cluster.
    pub(super) fn helm(&self, words: &[&str]) -> anyhow::Result<Said> {
        let mut command = Command::new(&self.helm);
        command
            .env("KUBECONFIG", self.folder.path().join("none"))
            .env("HELM_CACHE_HOME", self.folder.path().join("cache"))
            .env("HELM_CONFIG_HOME", self.folder.path().join("config"))
            .env("HELM_DATA_HOME", self.folder.path().join("data"))
            .current_dir(tools::workspace())
            .args(words);
        command::said(command, None)
    }

    /// The objects of a chart as release `rel` in namespace `ns`; `words` are further arguments.
    pub(super) fn render(&self, chart: &str, words: &[&str]) -> anyhow::Result<Vec<Value>> {
        let path = format!("charts/{chart}");
        let mut all = vec!["template", "rel", &path, "--namespace", "ns"];
        all.extend(words);
        let said = self.helm(&all)?;
        anyhow::ensure!(said.ok, "{chart} {}: {}", words.join(" "), said.err);
        let objects: Vec<Value> = serde_saphyr::from_multiple(&said.out)
            .with_context(|| format!("{chart} renders no YAML:\n{}", said.out))?;
        Ok(objects.into_iter().filter(|o| !o.is_null()).collect())
    }

    /// Renders with a file of values.
    pub(super) fn render_values(&self, chart: &str, values: &str) -> anyhow::Result<Vec<Value>> {
        let path = self.folder.path().join("values.yaml");
        std::fs::write(&path, values)?;
        self.render(chart, &["-f", &path.to_string_lossy()])
    }

    /// What helm says when it refuses; an error when it does not.
    pub(super) fn refusal(&self, chart: &str, words: &[&str]) -> anyhow::Result<String> {
        let path = format!("charts/{chart}");
        let mut all = vec!["template", "rel", &path, "--namespace", "ns"];
        all.extend(words);
        let said = self.helm(&all)?;
        anyhow::ensure!(!said.ok, "{chart} {} was accepted", words.join(" "));
        Ok(said.err)
    }
}

/// The objects of a kind.
pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects
        .iter()
        .filter(|object| object["kind"] == kind)
        .collect()
}

/// The one object of a kind.
pub(super) fn only<'a>(objects: &'a [Value], kind: &str) -> anyhow::Result<&'a Value> {
    match of_kind(objects, kind).as_slice() {
        [one] => Ok(one),
        several => anyhow::bail!("{} objects of kind {kind}, not one", several.len()),
    }
}
