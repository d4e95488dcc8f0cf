//! The workspace: its folder, its files under version control, and a way to print.
//!
//! **Invariant:** only files that git would commit are looked at, so a build folder or a dump of
//! data never fails a check.

use anyhow::Context as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Every file that is committed or would be, relative to the root.
pub(crate) fn files() -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).context("a file name that is no text")?;
    let mut files: Vec<PathBuf> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file, or nothing if it holds something else.
pub(crate) fn text(path: &Path) -> anyhow::Result<Option<String>> {
    let bytes = std::fs::read(root().join(path))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8(bytes).ok())
}

/// A line on standard output.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to be told when standard output is closed.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
