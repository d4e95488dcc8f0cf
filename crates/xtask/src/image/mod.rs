//! `cargo xtask image`: the product as a container image, without a container daemon.
//!
//! **Invariant:** the image holds one static program and no other; the same commit and toolchain give
//! the same bytes. What stands in the archive is in `oci.rs`, what stands in the image in `layer.rs`.
//! It publishes nothing.

mod elf;
mod layer;
mod oci;

use crate::workspace::{self, root, say};
use anyhow::Context as _;
use oci::Description;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What the program may take of a node's disk and of the way there.
const PROGRAM_BYTES_MAX: u64 = 25 << 20;
const DEFAULT_NAME: &str = "localhost/rocketmq";

/// What `cargo xtask image` was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `image`, or `image-dev` for a quick try.
    profile: String,
    /// The image's name with its tag.
    name: Option<String>,
    /// Where the archive goes.
    out: Option<PathBuf>,
    /// A program built elsewhere; nothing is built then.
    program: Option<PathBuf>,
}

impl Options {
    /// Reads `--profile P`, `--name NAME:TAG`, `--out FILE` and `--program FILE`.
    pub(crate) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            profile: "image".to_owned(),
            name: None,
            out: None,
            program: None,
        };
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let value = words
                .next()
                .with_context(|| format!("{option} needs a value"))?;
            match *option {
                "--profile" => (*value).clone_into(&mut options.profile),
                "--name" => options.name = Some((*value).to_owned()),
                "--out" => options.out = Some(PathBuf::from(value)),
                "--program" => options.program = Some(PathBuf::from(value)),
                other => {
                    anyhow::bail!("image {other}: there are --profile, --name, --out and --program")
                }
            }
        }
        Ok(options)
    }
}

/// Builds the program and writes the archive.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let started = Instant::now();
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build(&options.profile)?,
    };
    let bytes =
        std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    elf::check_static(&bytes).with_context(|| program.display().to_string())?;
    let size = u64::try_from(bytes.len())?;
    anyhow::ensure!(
        options.profile != "image" || size <= PROGRAM_BYTES_MAX,
        "the program has {size} bytes, {PROGRAM_BYTES_MAX} is the limit: see what grew with cargo bloat"
    );
    let description = describe(options.name.clone())?;
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| root().join("target/image/rocketmq.tar"));
    let archive = oci::archive(&description, &bytes)?;
    write(&out, &archive.bytes)?;
    say(&format!(
        "{}: {} with {}, program {:.1} MiB, archive {:.1} MiB, {} s",
        out.display(),
        description.name,
        archive.digest,
        size as f64 / f64::from(1 << 20),
        archive.bytes.len() as f64 / f64::from(1 << 20),
        started.elapsed().as_secs()
    ));
    say(&format!(
        "load it: docker load -i {out} | kind load image-archive {out} | ctr -n k8s.io images import {out}",
        out = out.display()
    ));
    Ok(true)
}

/// A static program of its own target folder's place, so that other builds keep what they built.
fn build(profile: &str) -> anyhow::Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--package", "rocketmq", "--bin", "rocketmq"])
        .args(["--profile", profile, "--target", &target])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    anyhow::ensure!(status.success(), "the build ended with {status}");
    Ok(workspace::target()
        .join(target)
        .join(profile)
        .join("rocketmq"))
}

fn describe(name: Option<String>) -> anyhow::Result<Description> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    let revision = git(&["rev-parse", "HEAD"])?;
    let created = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => git(&["log", "-1", "--format=%ct"])?,
    };
    Ok(Description {
        name: name.unwrap_or_else(|| format!("{DEFAULT_NAME}:{version}")),
        version,
        revision: if dirty {
            format!("{revision}-dirty")
        } else {
            revision
        },
        created_secs: created.parse().context("a time in seconds")?,
    })
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    anyhow::ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_an_unknown_one_is_refused() {
        let options = Options::parse(&["--profile", "image-dev", "--name", "a/b:c"]).unwrap();
        assert_eq!(options.profile, "image-dev");
        assert_eq!(options.name.as_deref(), Some("a/b:c"));
        assert!(Options::parse(&["--push", "yes"]).is_err());
        assert!(Options::parse(&["--out"]).is_err());
    }
}
