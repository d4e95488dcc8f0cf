//! What tests need on this computer beside Rust: a JDK, Maven, Go, Python, and for Kubernetes docker.
//!
//! **Invariant:** installs only on Debian as root, only what is missing, and through the system's
//! own package manager; otherwise says what is missing and how to get it.

use crate::workspace::say;
use anyhow::Context as _;
use std::path::Path;
use std::process::{Command, Stdio};

struct Need {
    what: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    debian_package: &'static str,
}

const JDK: Need = Need {
    what: "a JDK of version 17 or later",
    program: "javac",
    arguments: &["-version"],
    debian_package: "default-jdk-headless",
};
const MAVEN: Need = Need {
    what: "Maven 3.6 or later",
    program: "mvn",
    arguments: &["-version"],
    debian_package: "maven",
};
const GO: Need = Need {
    what: "Go 1.19 or later",
    program: "go",
    arguments: &["version"],
    debian_package: "golang-go",
};

const PYTHON: Need = Need {
    what: "Python 3 with venv",
    program: "python3",
    arguments: &["-c", "import ensurepip, venv"],
    debian_package: "python3-venv",
};
const DOCKER: Need = Need {
    what: "docker",
    program: "docker",
    arguments: &["--version"],
    debian_package: "docker.io",
};
const DOCKERD: Need = Need {
    what: "docker's daemon",
    program: "dockerd",
    arguments: &["--version"],
    debian_package: "docker.io",
};
const MMDEBSTRAP: Need = Need {
    what: "mmdebstrap, which makes the node's Debian",
    program: "mmdebstrap",
    arguments: &["--version"],
    debian_package: "mmdebstrap",
};

/// Makes sure that the official clients can be run: always those in Java.
pub(super) fn provide_clients(go: bool, python: bool) -> anyhow::Result<()> {
    let mut wanted = vec![&JDK, &MAVEN];
    wanted.extend(go.then_some(&GO));
    wanted.extend(python.then_some(&PYTHON));
    provide(&wanted)
}

/// Makes sure that charts can be rendered: helm is built from its Go module.
pub(super) fn provide_charts() -> anyhow::Result<()> {
    provide(&[&GO])
}

/// Makes sure that a cluster can be made.
pub(super) fn provide_cluster() -> anyhow::Result<()> {
    let given = |name| std::env::var_os(name).is_some();
    if given("E2E_KUBECONFIG") || given("E2E_KIND") {
        return provide(&[&GO]);
    }
    provide(&[&GO, &DOCKER, &DOCKERD, &MMDEBSTRAP])
}

fn provide(wanted: &[&Need]) -> anyhow::Result<()> {
    let missing = missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    if is_debian() && is_root() {
        install(&missing)?;
    }
    let missing = self::missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = missing
        .iter()
        .map(|need| format!("{} (`{}`)", need.what, need.program))
        .collect();
    let packages: Vec<&str> = missing.iter().map(|need| need.debian_package).collect();
    anyhow::bail!(
        "missing for these tests: {}. On Debian or Ubuntu: sudo apt-get install {}. \
         Without them: cargo xtask test --only unit",
        list.join(", "),
        packages.join(" ")
    )
}

fn missing<'a>(wanted: &[&'a Need]) -> Vec<&'a Need> {
    let there = |need: &Need| {
        let run = Command::new(need.program)
            .args(need.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        run.is_ok_and(|status| status.success())
    };
    wanted.iter().copied().filter(|need| !there(need)).collect()
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists()
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

fn install(missing: &[&Need]) -> anyhow::Result<()> {
    let mut packages: Vec<&str> = missing.iter().map(|need| need.debian_package).collect();
    packages.dedup();
    say(&format!("installing {}", packages.join(" ")));
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(packages);
    apt(&arguments)
}

fn apt(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot start apt-get")?;
    anyhow::ensure!(
        status.success(),
        "apt-get {} ended with {status}",
        arguments.join(" ")
    );
    Ok(())
}
