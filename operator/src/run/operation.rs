//! `Operation`: something done once, with a trace of how it ended.
//!
//! **Invariant:** an operation is begun once, ends in `Succeeded` or `Failed`, and is never begun
//! again after its end; whether it is done is read off the cluster, so that a restart of the
//! operator in between changes nothing.

use super::broker_object;
use super::context::{Context, ReconcileError};
use super::control::Reconcile;
use super::scope::Stores;
use crate::build::Kind;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::PropagationPolicy;
use kube::runtime::controller::Action;
use rmq_operator_api::keys::{ANNOTATION_REPLACE, ANNOTATION_RESTART};
use rmq_operator_api::{
    ConditionReason, Operation, OperationPhase, OperationStatus, OperationType, RocketMQCluster,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at an operation that goes on.
const BUSY: Duration = Duration::from_secs(5);

/// How an operation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Running(String),
    Succeeded(String),
    Failed(ConditionReason, String),
}

impl Reconcile for Operation {
    async fn reconcile(&self, context: &Context) -> Result<Action, ReconcileError> {
        let status = self.status.clone().unwrap_or_default();
        let now = Timestamp::now();
        if let Some(finished) = &status.finished_at {
            return expire(self, context, now, finished.0).await;
        }
        let started = status.started_at.as_ref().map_or(now, |time| time.0);
        let late = passed(now, started) > self.spec.timeout.get();
        let standing = if late {
            let text = format!("not done within {}", self.spec.timeout);
            Standing::Failed(ConditionReason::NotReady, text)
        } else {
            match broker_object::cluster_of(context, self, &self.spec.cluster) {
                Some(cluster) => work(self, context, &cluster).await?,
                None => Standing::Failed(
                    ConditionReason::ClusterNotFound,
                    format!("there is no RocketMQCluster {}", self.spec.cluster),
                ),
            }
        };
        let ended = !matches!(standing, Standing::Running(_));
        let status = told(self, &status, standing, (started, now));
        context
            .write_status(self, self.status.as_ref(), &status)
            .await?;
        Ok(context.succeeded(self, (!ended).then_some(BUSY)))
    }
}

fn passed(now: Timestamp, since: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(now.as_second() - since.as_second()).unwrap_or(0))
}

async fn expire(
    operation: &Operation,
    context: &Context,
    now: Timestamp,
    finished: Timestamp,
) -> Result<Action, ReconcileError> {
    let ttl = operation.spec.ttl_after_finished.get();
    let left = ttl.saturating_sub(passed(now, finished));
    if !left.is_zero() {
        return Ok(context.succeeded(operation, Some(left + Duration::from_secs(1))));
    }
    let namespace = operation.namespace().unwrap_or_default();
    let uid = operation.uid().unwrap_or_default();
    context
        .writer
        .delete(
            &namespace,
            Kind::Operation,
            &operation.name_any(),
            &uid,
            PropagationPolicy::Background,
        )
        .await?;
    Ok(context.succeeded(operation, None))
}

async fn work(
    operation: &Operation,
    context: &Context,
    cluster: &RocketMQCluster,
) -> Result<Standing, ReconcileError> {
    if operation.spec.kind.needs_controller() {
        return Ok(Standing::Failed(
            ConditionReason::NeedsController,
            "it needs a controller, and there is none yet".to_owned(),
        ));
    }
    match operation.spec.kind {
        OperationType::Restart
            if operation.spec.group.is_none() && operation.spec.pod.is_none() =>
        {
            restart(operation, context, cluster).await
        }
        OperationType::ReplaceReplica => replace(operation, context).await,
        _ => Ok(Standing::Failed(
            ConditionReason::InvalidSpec,
            "this version of the operator does not do that: restart a whole cluster, or set \
             spec.brokers.groups to drain and remove the last group"
                .to_owned(),
        )),
    }
}

/// Asks the cluster for a restart and waits until every pod is of that restart and ready.
async fn restart(
    operation: &Operation,
    context: &Context,
    cluster: &RocketMQCluster,
) -> Result<Standing, ReconcileError> {
    let token = operation.uid().unwrap_or_default();
    let namespace = cluster.namespace().unwrap_or_default();
    let begun = operation
        .status
        .as_ref()
        .is_some_and(|status| status.phase == Some(OperationPhase::Running));
    if !begun {
        let patch = json!({"metadata": {"annotations": {ANNOTATION_RESTART: token}}});
        context
            .writer
            .merge(
                &namespace,
                Kind::RocketMQCluster,
                &cluster.name_any(),
                &patch,
            )
            .await?;
        return Ok(Standing::Running("asked for a restart in order".to_owned()));
    }
    if cluster.annotations().get(ANNOTATION_RESTART) != Some(&token) {
        let text = "another restart was asked for in between".to_owned();
        return Ok(Standing::Failed(ConditionReason::NameConflict, text));
    }
    let pods = Stores::select(&context.stores.pods, &namespace, &cluster.name_any());
    let done = pods.iter().filter(|pod| is_done(pod, &token)).count();
    let text = format!("{done}/{} pods restarted and ready", pods.len());
    Ok(if !pods.is_empty() && done == pods.len() {
        Standing::Succeeded(text)
    } else {
        Standing::Running(text)
    })
}

fn is_done(pod: &Pod, token: &str) -> bool {
    pod.annotations()
        .get(ANNOTATION_RESTART)
        .map(String::as_str)
        == Some(token)
        && is_ready(pod)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Asks for a new disk of one pod; the plan decides whether it is safe.
async fn replace(operation: &Operation, context: &Context) -> Result<Standing, ReconcileError> {
    let namespace = operation.namespace().unwrap_or_default();
    let name = operation.spec.pod.clone().unwrap_or_default();
    let pods: Vec<Arc<Pod>> =
        Stores::select(&context.stores.pods, &namespace, &operation.spec.cluster);
    let Some(pod) = pods.into_iter().find(|pod| pod.name_any() == name) else {
        let text = format!("pod {name} is away");
        return Ok(Standing::Running(text));
    };
    let begun = operation.status.as_ref().and_then(|s| s.step.clone());
    let uid = pod.uid().unwrap_or_default();
    let asked_of = format!("asked for a new disk of pod {name} ({uid})");
    match begun {
        Some(before) if before == asked_of => Ok(Standing::Running(asked_of)),
        Some(before) if before.starts_with("asked for a new disk") => Ok(if is_ready(&pod) {
            Standing::Succeeded(format!("pod {name} has a new disk"))
        } else {
            Standing::Running(before)
        }),
        _ => {
            let patch = json!({"metadata": {"annotations": {ANNOTATION_REPLACE: "pvc"}}});
            context
                .writer
                .merge(&namespace, Kind::Pod, &name, &patch)
                .await?;
            Ok(Standing::Running(asked_of))
        }
    }
}

fn told(
    operation: &Operation,
    old: &OperationStatus,
    standing: Standing,
    (started, now): (Timestamp, Timestamp),
) -> OperationStatus {
    let (phase, done, reason, text) = match standing {
        Standing::Running(text) => (
            OperationPhase::Running,
            false,
            ConditionReason::Provisioning,
            text,
        ),
        Standing::Succeeded(text) => (
            OperationPhase::Succeeded,
            true,
            ConditionReason::Applied,
            text,
        ),
        Standing::Failed(reason, text) => (OperationPhase::Failed, false, reason, text),
    };
    let ended = phase != OperationPhase::Running;
    let generation = operation.metadata.generation;
    let whole = |time: Timestamp| Time(Timestamp::from_second(time.as_second()).unwrap_or(time));
    OperationStatus {
        phase: Some(phase),
        step: Some(text.clone()),
        message: Some(text.clone()),
        started_at: Some(old.started_at.clone().unwrap_or_else(|| whole(started))),
        finished_at: ended.then(|| whole(now)),
        conditions: vec![broker_object::ready(
            &old.conditions,
            generation,
            (done, reason, text),
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::OperationSpec;

    fn operation() -> Operation {
        let spec: OperationSpec =
            serde_json::from_value(json!({"cluster": "c", "type": "Restart"})).unwrap();
        Operation::new("o", spec)
    }

    #[test]
    fn an_operation_keeps_when_it_began_and_has_an_end_only_when_it_ended() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let standing = Standing::Running("1/2".to_owned());
        let first = told(
            &operation(),
            &OperationStatus::default(),
            standing,
            (at(5), at(5)),
        );
        assert_eq!(first.phase, Some(OperationPhase::Running));
        assert_eq!(first.finished_at, None);
        let standing = Standing::Succeeded("2/2".to_owned());
        let last = told(&operation(), &first, standing, (at(9), at(9)));
        assert_eq!(last.started_at, first.started_at);
        assert_eq!(last.finished_at, Some(Time(at(9))));
        assert_eq!(last.conditions[0].status, "True");
    }

    #[test]
    fn a_pod_is_restarted_when_it_is_of_that_restart_and_ready() {
        let pod = |token: &str, ready: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"annotations": {ANNOTATION_RESTART: token}},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        assert!(is_done(&pod("t", "True"), "t"));
        assert!(!is_done(&pod("t", "False"), "t"));
        assert!(!is_done(&pod("s", "True"), "t"));
    }
}
