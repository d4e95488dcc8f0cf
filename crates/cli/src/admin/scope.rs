//! `--cluster` and `--broker`: which brokers a verb is for.

use rmq_admin::{BrokerRef, Scope};
use rmq_types::ClusterName;

#[derive(Debug, clap::Args)]
pub(super) struct ScopeArgs {
    /// Only the masters of this cluster; to create something, needed if there are several
    #[arg(short = 'c', long, value_name = "NAME", conflicts_with = "broker")]
    cluster: Option<ClusterName>,
    /// This broker, by name or address; may be given several times
    #[arg(short = 'b', long, value_name = "NAME|ADDRESS")]
    broker: Vec<BrokerRef>,
}

impl ScopeArgs {
    /// What was asked for; `otherwise` if nothing was.
    pub(super) fn scope_or(&self, otherwise: Scope) -> Scope {
        match &self.cluster {
            Some(cluster) => Scope::Cluster(cluster.clone()),
            None if self.broker.is_empty() => otherwise,
            None => Scope::Brokers(self.broker.clone()),
        }
    }
}
