//! `ConsumerGroup`: made and kept as it is written on every broker group, with its lag.
//!
//! **Invariant:** offsets are never touched; they go only with `deletionPolicy: Delete`. Lag is
//! rounded, so that the status of a group that consumes steadily is not written all the time.

use super::broker_object::{self, AT_REST, BUSY, Master, Outcome};
use super::context::{Context, ReconcileError, key};
use super::control::Reconcile;
use crate::build::{Kind, Names};
use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use rmq_admin::{AdminClient, AskError, Scope};
use rmq_operator_api::{
    ConditionReason, ConsumerGroup, ConsumerGroupStatus, ManagedMode, ObjectDeletionPolicy,
    RocketMQCluster,
};
use rmq_protocol::body::SubscriptionGroupConfig;
use rmq_types::{ClusterName, GroupName};
use std::collections::BTreeSet;

/// What was seen of a group beside its settings.
#[derive(Debug, Default)]
struct Use {
    lag: i64,
    members: BTreeSet<String>,
    known: bool,
}

impl Reconcile for ConsumerGroup {
    async fn reconcile(&self, context: &Context) -> Result<Action, ReconcileError> {
        let cluster = broker_object::cluster_of(context, self, &self.spec.cluster);
        let deletes = self.spec.deletion_policy == ObjectDeletionPolicy::Delete;
        if self.metadata.deletion_timestamp.is_some() {
            return remove(self, context, cluster.as_ref(), deletes).await;
        }
        broker_object::hold(context, Kind::ConsumerGroup, self, deletes).await?;
        let Some(cluster) = cluster else {
            let text = format!("there is no RocketMQCluster {}", self.spec.cluster);
            let verdict = Err((ConditionReason::ClusterNotFound, text));
            return finish(self, context, verdict, &Use::default()).await;
        };
        if let Some(other) = rival(self, context) {
            let text = format!("ConsumerGroup {other} is older and means the same group");
            let verdict = Err((ConditionReason::NameConflict, text));
            return finish(self, context, verdict, &Use::default()).await;
        }
        let mut seen = Use::default();
        let outcome = everywhere(self, context, &cluster, &mut seen).await;
        finish(self, context, outcome, &seen).await
    }
}

/// An older object of the same namespace that means the same group of the same cluster.
fn rival(group: &ConsumerGroup, context: &Context) -> Option<String> {
    let age = |group: &ConsumerGroup| {
        let created = group.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), group.uid())
    };
    let all = context.stores.consumer_groups.state();
    let others = all.iter().filter_map(|other| other.0.as_ref().ok());
    others
        .filter(|other| {
            other.namespace() == group.namespace()
                && other.spec.cluster == group.spec.cluster
                && other.group_name() == group.group_name()
                && other.uid() != group.uid()
        })
        .filter(|other| age(other) < age(group))
        .map(kube::ResourceExt::name_any)
        .next()
}

async fn everywhere(
    group: &ConsumerGroup,
    context: &Context,
    cluster: &RocketMQCluster,
    seen: &mut Use,
) -> Result<Outcome, (ConditionReason, String)> {
    let name = GroupName::parse(group.group_name())
        .map_err(|error| (ConditionReason::InvalidSpec, error.to_string()))?;
    let addresses = Names::of(cluster).name_server_addresses();
    let admin = context.admin.of(&key(cluster), &addresses);
    let mut outcome = Outcome::default();
    for Master { broker, address } in broker_object::masters(context, cluster) {
        let address = match address {
            Ok(address) => address,
            Err(reason) => {
                outcome.failed.push(format!("{broker}: {reason}"));
                continue;
            }
        };
        match at_broker(group, &admin, &address).await {
            Ok(true) => outcome.applied.push(broker),
            Ok(false) => outcome.differs.push(broker),
            Err(error) => {
                outcome.refused |= error.code().is_some();
                outcome.failed.push(format!("{broker}: {error}"));
                continue;
            }
        }
        look(&admin, &address, &name, seen).await;
    }
    Ok(outcome)
}

/// Whether the broker has the group as it is written, afterwards.
async fn at_broker(
    group: &ConsumerGroup,
    admin: &AdminClient,
    address: &str,
) -> Result<bool, AskError> {
    let has = admin.groups_at(address).await?.remove(group.group_name());
    let wanted = wanted(group, has.as_ref());
    match &has {
        Some(has) if *has == wanted => return Ok(true),
        Some(_) if group.spec.managed == ManagedMode::AdoptOnly => return Ok(false),
        _ => {}
    }
    admin.put_group_config(address, &wanted).await?;
    let now = admin.groups_at(address).await?.remove(group.group_name());
    Ok(now.as_ref() == Some(&wanted))
}

/// Lag and members; what cannot be had is left out.
async fn look(admin: &AdminClient, address: &str, name: &GroupName, seen: &mut Use) {
    if let Ok(lags) = admin.group_lags_at(address).await {
        seen.known = true;
        let lag = lags.get(name.as_str()).map_or(0, |lag| lag.lag);
        seen.lag = seen.lag.saturating_add(lag);
    }
    if let Ok(members) = admin.members(address, name).await {
        let ids = members.connections.into_iter().map(|one| one.client_id);
        seen.members.extend(ids);
    }
}

/// Pure: the group as it is written, over what a broker has.
fn wanted(group: &ConsumerGroup, has: Option<&SubscriptionGroupConfig>) -> SubscriptionGroupConfig {
    let spec = &group.spec;
    let mut wanted = has
        .cloned()
        .unwrap_or_else(|| SubscriptionGroupConfig::named(group.group_name()));
    wanted.consume_enable = spec.enabled;
    wanted.consume_broadcast_enable = spec.broadcast;
    wanted.consume_message_orderly = spec.orderly;
    if spec.retry_max_times >= 0 {
        wanted.retry_max_times = spec.retry_max_times;
    }
    wanted.retry_queue_nums = spec.retry_queues;
    wanted
}

async fn remove(
    group: &ConsumerGroup,
    context: &Context,
    cluster: Option<&RocketMQCluster>,
    deletes: bool,
) -> Result<Action, ReconcileError> {
    if let (true, Some(cluster)) = (deletes, cluster)
        && cluster.metadata.deletion_timestamp.is_none()
        && let (Ok(name), Ok(cluster_name)) = (
            GroupName::parse(group.group_name()),
            ClusterName::parse(cluster.cluster_name()),
        )
    {
        let addresses = Names::of(cluster).name_server_addresses();
        let admin = context.admin.of(&key(cluster), &addresses);
        let gone = admin
            .delete_group(&name, true, true, &Scope::Cluster(cluster_name))
            .await
            .map(|deletion| deletion.is_complete());
        match gone {
            Ok(true) => tracing::info!(group = group.group_name(), "deleted"),
            Ok(false) => return Ok(context.succeeded(group, Some(BUSY))),
            Err(error) => {
                tracing::warn!(group = group.group_name(), %error, "not deleted yet");
                return Ok(context.succeeded(group, Some(BUSY)));
            }
        }
    }
    broker_object::hold(context, Kind::ConsumerGroup, group, false).await?;
    Ok(context.succeeded(group, None))
}

async fn finish(
    group: &ConsumerGroup,
    context: &Context,
    outcome: Result<Outcome, (ConditionReason, String)>,
    seen: &Use,
) -> Result<Action, ReconcileError> {
    let old = group.status.clone().unwrap_or_default();
    let (verdict, outcome) = match outcome {
        Ok(outcome) => (outcome.verdict(), outcome),
        Err((reason, text)) => ((false, reason, text), Outcome::default()),
    };
    let done = verdict.0;
    let generation = group.metadata.generation;
    let status = ConsumerGroupStatus {
        observed_generation: generation,
        group: Some(group.group_name().to_owned()),
        members: seen
            .known
            .then(|| i32::try_from(seen.members.len()).unwrap_or(i32::MAX)),
        lag: seen.known.then(|| rounded_up(seen.lag)),
        topics: Vec::new(),
        summary: outcome.summary(),
        applied: outcome.applied,
        conditions: vec![broker_object::ready(&old.conditions, generation, verdict)],
    };
    context
        .write_status(group, group.status.as_ref(), &status)
        .await?;
    Ok(context.succeeded(group, Some(if done { AT_REST } else { BUSY })))
}

/// To two digits, upwards: 0 stays 0, so that an empty group looks empty.
fn rounded_up(count: i64) -> i64 {
    let mut unit = 1;
    while count / unit >= 100 {
        unit *= 10;
    }
    count.saturating_add(unit - 1) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::ConsumerGroupSpec;
    use serde_json::json;

    #[test]
    fn lag_is_rounded_up_to_two_digits() {
        for (exact, told) in [
            (0, 0),
            (7, 7),
            (99, 99),
            (101, 110),
            (1_234, 1_300),
            (12_000, 12_000),
        ] {
            assert_eq!(rounded_up(exact), told);
        }
    }

    #[test]
    fn what_the_object_does_not_say_keeps_its_value() {
        let spec: ConsumerGroupSpec =
            serde_json::from_value(json!({"cluster": "c", "orderly": true, "retryMaxTimes": -1}))
                .unwrap();
        let group = ConsumerGroup::new("g", spec);
        let mut has = SubscriptionGroupConfig::named("g");
        has.retry_max_times = 3;
        has.consume_timeout_minute = 1;
        let wanted = wanted(&group, Some(&has));
        assert!(wanted.consume_message_orderly);
        assert_eq!(
            (wanted.retry_max_times, wanted.consume_timeout_minute),
            (3, 1)
        );
    }
}
