//! Status of a cluster and of its groups, and the events of what changed.
//!
//! **Invariant:** events are told after the status that they follow from was written, so that a
//! change that could not be written is told by the pass that writes it. Nothing new, nothing
//! written.

use super::cluster::Pass;
use super::context::ReconcileError;
use super::objects::Parts;
use crate::build::labels::Component;
use crate::status::{self, About, Facts, Note};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource as _, ResourceExt as _};
use rmq_operator_api::BrokerGroup;
use std::collections::BTreeMap;

/// Writes what a pass has seen.
pub(super) async fn write(parts: Parts<'_>, pass: &Pass<'_>) -> Result<(), ReconcileError> {
    let (context, cluster) = (parts.context, parts.cluster);
    let selector = selector(parts);
    let facts = Facts {
        observed: pass.observed,
        desired: pass.desired,
        plan: pass.plan,
        problems: pass.problems,
        previous: cluster.status.as_ref(),
        operator_version: &context.options.version,
        selector: &selector,
        now: pass.now,
    };
    let mut failure = None;
    for index in pass.observed.groups.keys() {
        if let Some(group) = parts.group(*index)
            && let Err(error) = one_group(parts, &facts, &group).await
        {
            failure.get_or_insert(error);
        }
    }
    let after = status::cluster(&facts);
    if context
        .write_status(cluster, cluster.status.as_ref(), &after)
        .await?
    {
        for note in status::of_change(cluster.status.as_ref(), &after) {
            tell(parts, &note).await;
        }
    }
    failure.map_or(Ok(()), Err)
}

async fn one_group(
    parts: Parts<'_>,
    facts: &Facts<'_>,
    group: &BrokerGroup,
) -> Result<(), ReconcileError> {
    let (index, before) = (group.spec.index, group.status.as_ref());
    let after = status::group(facts, index, group.metadata.generation, before);
    if !parts.context.write_status(group, before, &after).await? {
        return Ok(());
    }
    let moved = before.is_some_and(|before| after.history.first() != before.history.first());
    if let (true, Some(record)) = (moved, after.history.first()) {
        parts.context.metrics.failover(record.planned);
    }
    for note in status::of_group_change(index, before, &after) {
        tell(parts, &note).await;
    }
    Ok(())
}

/// Tells of a step that was taken.
pub(super) async fn step(parts: Parts<'_>, step: &crate::plan::Step) {
    if let Some(note) = status::of_step(step) {
        tell(parts, &note).await;
    }
}

async fn tell(parts: Parts<'_>, note: &Note) {
    let about = about(parts, note.about);
    let events = &parts.context.events;
    events.tell(&about, note.reason, &note.text).await;
}

/// A group that is gone is told of at its cluster.
fn about(parts: Parts<'_>, about: About) -> ObjectReference {
    let group = match about {
        About::Group(index) => parts.group(index),
        About::Cluster => None,
    };
    group.map_or_else(
        || parts.cluster.object_ref(&()),
        |group| group.object_ref(&()),
    )
}

/// What selects the pods of brokers, as text for autoscalers.
fn selector(parts: Parts<'_>) -> String {
    let labels: BTreeMap<String, String> = parts.build().selector(Component::Broker, None);
    labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// Names a cluster in logs.
pub(super) fn name(parts: Parts<'_>) -> String {
    format!("{}/{}", parts.namespace(), parts.cluster.name_any())
}
