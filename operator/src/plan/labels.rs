//! Role labels of pods, by which Services find masters and replicas.
//!
//! **Invariant:** the old master is unlabelled first, and an epoch never goes back. A pod that nobody
//! could ask keeps its labels, unless another one is master by now.

use super::{Draft, Step};
use crate::observe::model_pod::role_label;
use crate::observe::{GroupSeen, PodSeen};
use rmq_operator_api::MemberRole;

pub(super) fn plan(draft: &mut Draft<'_>, index: i32, seen: &GroupSeen) {
    let mut steps: Vec<Step> = seen
        .pods
        .iter()
        .filter(|pod| !pod.deleting)
        .filter_map(|pod| label(index, seen, pod))
        .collect();
    steps.sort_by_key(|step| matches!(step, Step::LabelPod { role, .. } if *role == "master"));
    for step in steps {
        draft.step(step);
    }
}

/// What a member does.
pub(crate) fn role(seen: &GroupSeen, ordinal: i32) -> MemberRole {
    if seen.broker(ordinal).is_none() {
        MemberRole::Unknown
    } else if seen.master() == Some(ordinal) {
        MemberRole::Master
    } else if seen.sync.is_some() && !seen.in_sync(ordinal) {
        MemberRole::Joining
    } else {
        MemberRole::Replica
    }
}

fn label(index: i32, seen: &GroupSeen, pod: &PodSeen) -> Option<Step> {
    let role = role(seen, pod.ordinal);
    let was_master = pod.labels.role.as_deref() == Some("master");
    if role == MemberRole::Unknown
        && !(was_master && seen.master().is_some_and(|master| master != pod.ordinal))
    {
        return None;
    }
    let readable = seen
        .broker(pod.ordinal)
        .is_some_and(|broker| broker.recovered);
    let epoch = seen.sync.as_ref().map_or(0, |sync| sync.epoch);
    let in_sync = seen.in_sync(pod.ordinal);
    let same = pod.labels.role.as_deref() == Some(role_label(role))
        && pod.labels.in_sync == in_sync
        && pod.labels.readable == readable
        && pod.labels.epoch == epoch;
    // An epoch that is behind the labels comes from a controller that is behind.
    (!same && epoch >= pod.labels.epoch).then(|| Step::LabelPod {
        group: index,
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        role: role_label(role),
        in_sync,
        readable,
        epoch,
    })
}
