//! Rules between a manifest and the one it replaces, for those that admission did not see.
//!
//! **Invariant:** what these name is never carried out; the cluster goes on as it was.

use super::Findings;
use crate::cluster::RocketMQCluster;
use crate::cluster::policy::ScaleInPolicy;
use crate::problem::{Field, Problem, Reason};
use crate::rules;

/// What in `new` cannot follow `old`, besides what [`crate::validate`] finds.
#[must_use]
pub fn validate_change(old: &RocketMQCluster, new: &RocketMQCluster) -> Vec<Problem> {
    let mut found = Findings::default();
    let immutable = |found: &mut Findings, field: Field, was: &str, is: &str| {
        if was != is {
            let was = format!("`{was}`");
            found.add(field, Reason::Immutable { was });
        }
    };
    immutable(
        &mut found,
        Field::ClusterName,
        old.cluster_name(),
        new.cluster_name(),
    );
    let (was, is) = (&old.spec.brokers, &new.spec.brokers);
    immutable(
        &mut found,
        Field::BrokerNamePrefix,
        &was.name_prefix,
        &is.name_prefix,
    );
    immutable(
        &mut found,
        Field::Spec("brokers.storage.class".to_owned()),
        was.storage.class.as_deref().unwrap_or("the default class"),
        is.storage.class.as_deref().unwrap_or("the default class"),
    );
    if is.groups < was.groups - 1 && new.spec.scale_in.policy != ScaleInPolicy::Force {
        let says = rules::SHRINK_BY_ONE;
        found.add(Field::BrokerGroups, Reason::Rule { says });
    }
    let shrunk = (0..was.groups.min(is.groups))
        .any(|group| is.storage_size(group).bytes() < was.storage_size(group).bytes());
    if shrunk {
        let says = "may only grow, for every group: disks cannot shrink";
        found.add(Field::StorageSize, Reason::Rule { says });
    }
    found.0
}
