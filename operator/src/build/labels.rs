//! Labels: how objects are found.
//!
//! **Invariant:** selectors are made of immutable labels only; `version` is never in one. The labels
//! of a role stand on pods only and are written by one field manager of their own.

use super::Build;
use rmq_operator_api::keys::{LABEL_CLUSTER, LABEL_GROUP};
use std::collections::BTreeMap;

/// `app.kubernetes.io/managed-by` of everything the operator makes.
pub const MANAGED_BY: &str = "rmq-operator";
/// Selects everything the operator makes.
pub const MANAGED_SELECTOR: &str = "app.kubernetes.io/managed-by=rmq-operator";
/// A part of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The NameServers.
    NameServer,
    /// The brokers.
    Broker,
}

impl Component {
    /// As in `app.kubernetes.io/component`, and the sub-command that runs it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NameServer => "namesrv",
            Self::Broker => "broker",
        }
    }
}

impl Build<'_> {
    /// What selects the pods of a component, or of one group.
    #[must_use]
    pub fn selector(&self, component: Component, group: Option<i32>) -> BTreeMap<String, String> {
        let names = self.names();
        let mut labels = BTreeMap::from([
            label("app.kubernetes.io/name", "rocketmq"),
            label("app.kubernetes.io/instance", names.cluster()),
            label("app.kubernetes.io/component", component.as_str()),
            label(LABEL_CLUSTER, names.cluster()),
        ]);
        if let Some(index) = group {
            labels.insert(LABEL_GROUP.to_owned(), index.to_string());
        }
        labels
    }

    /// The labels of an object.
    #[must_use]
    pub fn labels(&self, component: Component, group: Option<i32>) -> BTreeMap<String, String> {
        let mut labels = self.selector(component, group);
        labels.extend([
            label("app.kubernetes.io/managed-by", MANAGED_BY),
            label("app.kubernetes.io/part-of", "rocketmq"),
            label(
                "app.kubernetes.io/version",
                &self.cluster.spec.version.replace('+', "-"),
            ),
        ]);
        labels
    }
}

fn label(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}
