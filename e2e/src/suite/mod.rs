//! The suites and what came of them.
//!
//! **Invariant:** a suite that could not run at all is an error, never an empty list of results.

mod admin_java;
mod clients;
mod go;
mod kill;
mod surefire;
mod swap;

use crate::target::Against;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// A suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// The official Java client, JSON headers.
    Java,
    /// A part of the Java suite with binary headers.
    JavaBinary,
    /// The official mqadmin.
    Mqadmin,
    /// `rocketmq admin` against the Java server, whatever `--against` says.
    AdminJava,
    /// The official Go client.
    Go,
    /// The official Java client of gRPC.
    JavaGrpc,
    /// The official Python client of gRPC.
    PythonGrpc,
    /// Store folders handed between the Java broker and ours.
    Swap,
    /// Our broker, killed at random moments under load.
    Kill,
    /// The Helm charts, without a cluster.
    Charts,
    /// Image, charts and operator on a real Kubernetes.
    Kubernetes,
}

/// How one test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It held.
    Passed,
    /// It did not.
    Failed,
    /// It did not run, for a reason that it gave.
    Skipped,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Its name, a sentence.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The first words of a failure; of a success, figures if there are some.
    pub detail: String,
}

/// What came of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The tests in the order in which they ran.
    pub cases: Vec<Case>,
    /// How long it took, with starting the server.
    pub seconds: u64,
}

impl Results {
    /// How many tests ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        let cases = self.cases.iter();
        cases.filter(|case| case.outcome == outcome).count()
    }
}

/// Runs a suite; `only` is a pattern of the suite's own kind (Surefire's `-Dtest`, Go's `-run`, a
/// part of a scenario's name); `rounds` counts for [`Suite::Kill`] alone. The tools' own output goes to `log`.
pub fn run(
    suite: Suite,
    against: Against,
    only: Option<&str>,
    rounds: Option<u32>,
    log: &Path,
) -> anyhow::Result<Results> {
    let started = Instant::now();
    let cases = match suite {
        Suite::Java => clients::java(against, only.unwrap_or("rmq.e2e.clients.*Test"), "", log)?,
        Suite::JavaBinary => {
            let tests = "SyncSendTest,BatchSendTest,PushConsumerTest,LitePullConsumerTest,\
                         RetryDeadLetterTest,TagsTest,PropertiesTest";
            let options = "-Drocketmq.serialize.type=ROCKETMQ";
            clients::java(against, only.unwrap_or(tests), options, log)?
        }
        Suite::Mqadmin => clients::java(against, only.unwrap_or("rmq.e2e.mqadmin.*Test"), "", log)?,
        Suite::AdminJava => admin_java::run(only, log)?,
        Suite::Go => clients::go(against, only, log)?,
        Suite::JavaGrpc => clients::java_grpc(against, only, log)?,
        Suite::PythonGrpc => clients::python_grpc(against, only, log)?,
        Suite::Swap => swap::run(against, only, log)?,
        Suite::Kill => kill::run(against, only, rounds)?,
        Suite::Charts => crate::kubernetes::run_charts(only)?,
        Suite::Kubernetes => crate::kubernetes::run(only)?,
    };
    anyhow::ensure!(
        !cases.is_empty(),
        "the suite ran no test; see {}",
        log.display()
    );
    Ok(Results {
        cases,
        seconds: started.elapsed().as_secs(),
    })
}
