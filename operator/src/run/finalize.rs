//! The finalizer of a cluster: whether a deletion comes to us first.
//!
//! **Invariant:** the list is changed with the version that was read: whoever else changes it
//! meanwhile wins, and we look again. What a deletion does is decided by the plan.

use super::context::{Context, ReconcileError};
use crate::apply::ApplyError;
use crate::build::Kind;
use kube::ResourceExt as _;
use rmq_operator_api::RocketMQCluster;
use rmq_operator_api::keys::FINALIZER_CLUSTER;
use serde_json::json;

/// Sees to it that a deletion comes here first.
pub(crate) async fn add(
    context: &Context,
    cluster: &RocketMQCluster,
) -> Result<(), ReconcileError> {
    if cluster
        .finalizers()
        .iter()
        .any(|name| name == FINALIZER_CLUSTER)
    {
        return Ok(());
    }
    let mut finalizers = cluster.finalizers().to_vec();
    finalizers.push(FINALIZER_CLUSTER.to_owned());
    set(context, cluster, &finalizers).await
}

/// Lets the object go; what it owns is collected after it.
pub(crate) async fn release(
    context: &Context,
    cluster: &RocketMQCluster,
) -> Result<(), ReconcileError> {
    let mut finalizers = cluster.finalizers().to_vec();
    let before = finalizers.len();
    finalizers.retain(|name| name != FINALIZER_CLUSTER);
    if finalizers.len() == before {
        return Ok(());
    }
    set(context, cluster, &finalizers).await
}

async fn set(
    context: &Context,
    cluster: &RocketMQCluster,
    finalizers: &[String],
) -> Result<(), ReconcileError> {
    let patch = json!({"metadata": {
        "resourceVersion": cluster.resource_version(),
        "finalizers": finalizers,
    }});
    let namespace = cluster.namespace().unwrap_or_default();
    let name = cluster.name_any();
    let kind = Kind::RocketMQCluster;
    let result = context.writer.merge(&namespace, kind, &name, &patch).await;
    match result {
        Err(ApplyError::Api {
            source: kube::Error::Api(status),
            ..
        }) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => {
            context.metrics.wrote("RocketMQCluster");
            Ok(())
        }
    }
}

/// Whether the API server refuses because the namespace itself is being deleted: nothing in it can
/// be kept, so nothing is held up.
pub(crate) fn namespace_ends(error: &ReconcileError) -> bool {
    match error {
        ReconcileError::Apply(ApplyError::Api {
            source: kube::Error::Api(status),
            ..
        }) => status.is_forbidden() && status.message.contains("being terminated"),
        ReconcileError::Apply(_) => false,
    }
}
