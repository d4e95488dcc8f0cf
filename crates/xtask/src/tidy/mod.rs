//! Rules of the project that no compiler or linter checks.
//!
//! **Invariant:** a rule is a function from text to [`Finding`]s; each finding names the place and
//! what to do.

mod drift;
mod functions;
mod layers;
mod source;
mod tokens;

use crate::workspace::{self, say};
use std::path::{Path, PathBuf};

/// Something to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Where.
    pub(crate) path: PathBuf,
    /// The line, counted from 1; 0 for the whole file.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) problem: String,
}

impl Finding {
    pub(crate) fn new(path: &Path, line: usize, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            problem: problem.into(),
        }
    }
}

/// Runs every rule; `Ok(false)` if one found something.
pub(crate) fn run() -> anyhow::Result<bool> {
    let packages = layers::packages()?;
    let mut findings = layers::check(&packages);
    let mut checked = 0_usize;
    for path in workspace::files()? {
        let Some(text) = workspace::text(&path)? else {
            continue;
        };
        checked += 1;
        findings.extend(source::machine_paths(&path, &text));
        if path.extension().is_some_and(|extension| extension == "rs") {
            let layer = layers::layer_of_file(&packages, &path);
            findings.extend(source::check(&path, &text));
            findings.extend(functions::check(&path, &text, layer));
        }
    }
    findings.extend(drift::check()?);
    findings.extend(drift::charts()?);
    for finding in &findings {
        say(&format!(
            "{}:{}: {}",
            finding.path.display(),
            finding.line,
            finding.problem
        ));
    }
    say(&format!(
        "tidy: {checked} files, {} findings",
        findings.len()
    ));
    Ok(findings.is_empty())
}
