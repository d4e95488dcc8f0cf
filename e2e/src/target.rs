//! What a suite runs against: our cluster, or the Java server as the judge of the suite itself.
//!
//! **Invariant:** a suite sees only addresses and the two restart commands; it cannot tell which
//! one it has, but for the name in `E2E_AGAINST`.

use crate::cluster::Cluster;
use crate::java::{JavaServer, JavaTools};
use crate::process::End;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Against {
    /// `rocketmq up examples/quickstart.yaml`.
    Ours,
    /// The Java NameServer and broker from Maven.
    Java,
}

impl Against {
    /// Its name as the suites see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Java => "java",
        }
    }
}

/// A running server.
#[derive(Debug)]
pub enum Target {
    /// Ours.
    Ours(Box<Cluster>),
    /// The Java one.
    Java(Box<JavaServer>),
}

impl Target {
    /// Starts one.
    pub fn start(against: Against) -> anyhow::Result<Self> {
        Ok(match against {
            Against::Ours => Self::Ours(Box::new(Cluster::up()?)),
            Against::Java => Self::Java(Box::new(JavaServer::start(&JavaTools::prepare()?)?)),
        })
    }

    /// What the suites get in their environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let (name_servers, broker, gateway, cluster, against) = match self {
            Self::Ours(ours) => (
                ours.name_servers(),
                ours.broker().to_owned(),
                ours.gateway().to_owned(),
                ours.report().cluster.clone(),
                Against::Ours,
            ),
            Self::Java(java) => (
                java.name_servers().to_owned(),
                java.broker().to_owned(),
                String::new(),
                java.cluster().to_owned(),
                Against::Java,
            ),
        };
        vec![
            ("NAMESRV_ADDR", name_servers),
            ("BROKER_ADDR", broker),
            ("GRPC_ADDR", gateway),
            ("CLUSTER_NAME", cluster),
            ("E2E_AGAINST", against.name().to_owned()),
        ]
    }

    /// Ends the broker and starts it again on the same data.
    pub fn restart_broker(&mut self, how: End) -> anyhow::Result<()> {
        match self {
            Self::Ours(ours) => ours.restart_broker(how),
            Self::Java(java) => java.restart_broker(how),
        }
    }

    /// The last lines of the server's log, for a failure's report.
    pub fn log_tail(&self) -> String {
        match self {
            Self::Ours(ours) => ours.log_tail(),
            Self::Java(_) => String::new(),
        }
    }
}
