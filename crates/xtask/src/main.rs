//! Project chores: `cargo xtask tidy` checks what the compiler does not, `cargo xtask test` runs
//! every test there is, `cargo xtask image` makes the container image.
//!
//! **Invariant:** a chore that finds something says what to do about it, and exits with 1. The last
//! line of `test` is `N passed, N failed`.
#![forbid(unsafe_code)]

mod charts;
mod image;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy
       cargo xtask test [--only unit|kill|java|go|mqadmin|admin-java|swap|clients|charts|kubernetes|all]
       cargo xtask charts
       cargo xtask image [--profile image-dev] [--name NAME:TAG] [--out FILE]

tidy   layers, sizes, headers, names, ignored tests, generated files, machine paths
test   unit and property tests, a release build, then kills under load (25 times in each
       way to flush; E2E_KILL_ROUNDS=50 for more) and the official clients against it;
       installs a JDK, Maven and Go on Debian if it may, else says what is missing.
       Not among all: charts (helm's judgement of charts/, no cluster) and kubernetes (the
       image, charts and operator on a cluster of containers; E2E_KEEP=1 keeps it for the
       next run, E2E_KIND=NAME or E2E_KUBECONFIG=FILE with E2E_IMAGE=NAME:TAG take another)
charts copies crds/ into their chart and makes the schema of the cluster chart's values
image  one static program as an OCI archive [target/image/rocketmq.tar] that docker load,
       kind load image-archive and ctr images import take; no daemon is needed";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::run(),
        ["test"] => test::run("all"),
        ["test", "--only", what] => test::run(what),
        ["charts"] => charts::run(),
        ["image", options @ ..] => image::Options::parse(options).and_then(|o| image::run(&o)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
