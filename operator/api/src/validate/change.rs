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

/// Whether `target` is an older version than `current` by more than its last number: files that a
/// newer one wrote may not be readable then. Texts that are no versions are no downgrade.
#[must_use]
pub fn is_downgrade(current: &str, target: &str) -> bool {
    matches!((numbers(current), numbers(target)), (Some(current), Some(target)) if target < current)
}

fn numbers(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_manifest;

    fn cluster(spec: &str) -> RocketMQCluster {
        let text = format!(
            "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {{name: a}}\n\
             spec: {{version: 0.1.0, {spec}}}\n"
        );
        parse_manifest(&text).unwrap()
    }

    fn problems(old: &str, new: &str) -> Vec<String> {
        validate_change(&cluster(old), &cluster(new))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn what_cannot_follow_is_named_all_at_once() {
        let found = problems(
            "clusterName: a, brokers: {groups: 4, storage: {class: slow, size: 20Gi}}",
            "clusterName: b, brokers: {groups: 2, namePrefix: x, storage: {class: fast, size: 10Gi}}",
        );
        let fields: Vec<_> = found.iter().filter_map(|p| p.split(':').next()).collect();
        assert_eq!(
            fields,
            [
                "spec.clusterName",
                "spec.brokers.namePrefix",
                "spec.brokers.storage.class",
                "spec.brokers.groups",
                "spec.brokers.storage.size"
            ]
        );
    }

    #[test]
    fn a_disk_that_one_override_shrinks_is_found() {
        let old = "brokers: {groupOverrides: [{groups: [1], storageSize: 40Gi}]}";
        let new = "brokers: {groupOverrides: [{groups: [1], storageSize: 30Gi}]}";
        assert!(problems(old, new)[0].contains("may only grow"));
        assert!(problems(new, old).is_empty());
    }

    #[test]
    fn force_lifts_the_rule_of_one_group_at_a_time() {
        let new = "scaleIn: {policy: Force}, brokers: {groups: 1}";
        assert!(problems("brokers: {groups: 4}", new).is_empty());
    }

    #[test]
    fn a_version_goes_back_by_its_last_number_only() {
        assert!(is_downgrade("0.2.0", "0.1.9"));
        assert!(is_downgrade("1.0.0", "0.9.0"));
        assert!(!is_downgrade("0.2.1", "0.2.0"));
        assert!(!is_downgrade("0.2.0", "0.10.0"));
        assert!(!is_downgrade("unknown", "0.1.0"));
    }
}
