//! What `Topic` and `ConsumerGroup` have in common: the cluster they name, its brokers, their
//! condition, their finalizer.
//!
//! **Invariant:** an object is applied to the brokers of groups that are there now; each look goes
//! over all of them again, so that a group that comes later gets it too. Nothing is deleted on a
//! broker without `deletionPolicy: Delete`.

use super::context::{Context, ReconcileError};
use super::objects::Parts;
use super::observe::pod_address;
use crate::apply::ApplyError;
use crate::build::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use rmq_operator_api::keys::FINALIZER_BROKER_OBJECT;
use rmq_operator_api::{ConditionReason, ConditionType, RocketMQCluster};
use serde_json::json;
use std::time::Duration;

/// Between two looks at an object that is as it should be.
pub(crate) const AT_REST: Duration = Duration::from_mins(1);
/// Between two looks at one that is not.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// The broker of one group.
pub(crate) struct Master {
    /// Name of the group in routes.
    pub(crate) broker: String,
    /// Where it listens; the error is why it cannot be asked.
    pub(crate) address: Result<String, String>,
}

/// The cluster that an object names, in its own namespace.
pub(crate) fn cluster_of<K: Resource>(
    context: &Context,
    object: &K,
    name: &str,
) -> Option<RocketMQCluster> {
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    context.stores.cluster(namespace, name)
}

/// The master of every group of a cluster.
pub(crate) fn masters(context: &Context, cluster: &RocketMQCluster) -> Vec<Master> {
    let parts = Parts { context, cluster };
    let build = parts.build();
    (0..cluster.spec.brokers.groups)
        .map(|index| {
            let pod = build.names().broker_pod(index, 0);
            let at = ObjectRef::new(&pod).within(parts.namespace());
            let address = match context.stores.pods.get(&at) {
                Some(found) => pod_address(&found, build.broker_port(index))
                    .map_err(|reason| format!("pod {pod}: {reason}")),
                None => Err(format!("pod {pod} is not there")),
            };
            Master {
                broker: build.names().broker_name(index),
                address,
            }
        })
        .collect()
}

/// What came of one object on every broker.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Groups that have it as it is written.
    pub(crate) applied: Vec<String>,
    /// Why others have not.
    pub(crate) failed: Vec<String>,
    /// Groups that have it otherwise, and it is to be left so.
    pub(crate) differs: Vec<String>,
    /// A broker refused it.
    pub(crate) refused: bool,
}

impl Outcome {
    pub(crate) fn summary(&self) -> String {
        let all = self.applied.len() + self.failed.len() + self.differs.len();
        format!("{}/{all}", self.applied.len())
    }

    /// Status, reason and text of the condition `Ready`.
    pub(crate) fn verdict(&self) -> (bool, ConditionReason, String) {
        if self.failed.is_empty() && self.differs.is_empty() {
            let all = self.applied.len();
            let text = format!("every one of {all} groups has it");
            return (true, ConditionReason::Applied, text);
        }
        let mut told: Vec<String> = self.failed.clone();
        told.extend(
            self.differs
                .iter()
                .map(|broker| format!("{broker} has it otherwise (managed: AdoptOnly)")),
        );
        let reason = if self.refused {
            ConditionReason::RefusedByBroker
        } else {
            ConditionReason::PartlyApplied
        };
        (false, reason, told.join("; "))
    }
}

/// The condition `Ready`; its time changes only with its status.
pub(crate) fn ready(
    old: &[Condition],
    generation: Option<i64>,
    (status, reason, message): (bool, ConditionReason, String),
) -> Condition {
    let type_ = ConditionType::Ready.to_string();
    let status = if status { "True" } else { "False" }.to_owned();
    let before = old
        .iter()
        .find(|condition| condition.type_ == type_ && condition.status == status);
    Condition {
        last_transition_time: before.map_or_else(
            // Whole seconds, as the API server keeps them.
            || Time(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()),
            |condition| condition.last_transition_time.clone(),
        ),
        message: message.chars().take(1024).collect(),
        observed_generation: generation,
        reason: reason.to_string(),
        status,
        type_,
    }
}

/// Puts the finalizer on an object that wants its deletion carried out, or takes it away.
pub(crate) async fn hold<K>(
    context: &Context,
    kind: Kind,
    object: &K,
    held: bool,
) -> Result<(), ReconcileError>
where
    K: Resource<DynamicType = ()>,
{
    let has = object
        .finalizers()
        .iter()
        .any(|name| name == FINALIZER_BROKER_OBJECT);
    if has == held {
        return Ok(());
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|name| name != FINALIZER_BROKER_OBJECT);
    if held {
        finalizers.push(FINALIZER_BROKER_OBJECT.to_owned());
    }
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "finalizers": finalizers,
    }});
    let namespace = object.namespace().unwrap_or_default();
    let name = object.name_any();
    match context.writer.merge(&namespace, kind, &name, &patch).await {
        Err(ApplyError::Api {
            source: kube::Error::Api(status),
            ..
        }) if status.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let say = |old: &[Condition], status: bool, text: &str| {
            let reason = if status {
                ConditionReason::Applied
            } else {
                ConditionReason::PartlyApplied
            };
            ready(old, Some(1), (status, reason, text.to_owned()))
        };
        let mut first = say(&[], true, "a");
        first.last_transition_time = Time(Timestamp::UNIX_EPOCH);
        let same = say(std::slice::from_ref(&first), true, "b");
        assert_eq!(same.last_transition_time, first.last_transition_time);
        let other = say(std::slice::from_ref(&first), false, "c");
        assert_ne!(other.last_transition_time, first.last_transition_time);
    }

    #[test]
    fn a_group_that_lacks_the_object_is_named() {
        let mut outcome = Outcome {
            applied: vec!["broker-0".to_owned()],
            ..Outcome::default()
        };
        assert!(outcome.verdict().0);
        outcome.failed.push("broker-1: no answer".to_owned());
        let (status, reason, text) = outcome.verdict();
        assert_eq!((status, reason), (false, ConditionReason::PartlyApplied));
        assert!(text.contains("broker-1"), "{text}");
        assert_eq!(outcome.summary(), "1/2");
    }
}
