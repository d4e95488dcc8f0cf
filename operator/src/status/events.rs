//! Which Kubernetes Events a step or a change of status is worth.
//!
//! **Invariant:** a note is made from a change alone: the same status twice gives none.

use super::conditions::find;
use super::texts::shortened;
use crate::plan::Step;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rmq_operator_api::{
    BrokerGroupStatus, ConditionReason as R, ConditionType as T, EventReason, RocketMQClusterStatus,
};

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// The cluster.
    Cluster,
    /// A broker group.
    Group(i32),
}

/// An event to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// About what.
    pub about: About,
    /// Why.
    pub reason: EventReason,
    /// In one sentence, at most 1024 characters.
    pub text: String,
}

impl Note {
    fn new(about: About, reason: EventReason, text: &str) -> Self {
        Self {
            about,
            reason,
            text: shortened(text, 1024),
        }
    }
}

/// The event of a step that was taken.
#[must_use]
pub fn of_step(step: &Step) -> Option<Note> {
    let text = step.to_string();
    let (about, reason) = match step {
        Step::RestartPod { component, .. } => (
            match component {
                crate::plan::Component::Group(index) => About::Group(*index),
                _ => About::Cluster,
            },
            EventReason::PodRestarted,
        ),
        Step::PushNameServerConfig { .. } => (About::Cluster, EventReason::ConfigPushed),
        Step::PushBrokerConfig { group, .. } => (About::Group(*group), EventReason::ConfigPushed),
        Step::OpenGroup { group, .. } => (About::Group(*group), EventReason::GroupOpened),
        Step::CloseGroup { group, .. } => (About::Group(*group), EventReason::GroupCordoned),
        Step::MarkDrained { group } => (About::Group(*group), EventReason::GroupDrained),
        Step::RemoveGroup { .. } => (About::Cluster, EventReason::GroupRemoved),
        Step::GrowVolume { group, .. } => (About::Group(*group), EventReason::VolumeExpanding),
        Step::ReplaceVolume { group, .. } => (About::Group(*group), EventReason::VolumeReplaced),
        Step::RemoveFinalizer => (About::Cluster, EventReason::Deleted),
        Step::AddFinalizer
        | Step::Apply { .. }
        | Step::CopyMetadata { .. }
        | Step::LabelPod { .. }
        | Step::RecreateSet { .. }
        | Step::StopGroup { .. }
        | Step::Unregister { .. }
        | Step::DeleteVolume { .. } => return None,
    };
    Some(Note::new(about, reason, &text))
}

/// The events of what changed from `before` to `after`.
#[must_use]
pub fn of_change(
    before: Option<&RocketMQClusterStatus>,
    after: &RocketMQClusterStatus,
) -> Vec<Note> {
    let empty = RocketMQClusterStatus::default();
    let before = before.unwrap_or(&empty);
    let mut notes = Vec::new();
    let mut add = |reason, text: &str| notes.push(Note::new(About::Cluster, reason, text));
    let change = |kind| Change::of(&before.conditions, &after.conditions, kind);
    if let Some(ready) = change(T::Ready) {
        of_ready(&ready, &mut add);
    }
    asked(change, &mut add);
    if let Some(degraded) = change(T::Degraded) {
        of_degraded(&degraded, &mut add);
    }
    if let Some(progress) = change(T::Progressing) {
        of_progress(&progress, &mut add);
    }
    if let Some(config) = change(T::ConfigApplied)
        && config.is(R::Rejected)
        && !config.was(R::Rejected)
    {
        add(EventReason::ConfigRejected, &config.after.message);
    }
    let servers = |status: &RocketMQClusterStatus| status.name_servers.as_ref().map(|n| n.desired);
    if let (Some(was), Some(is)) = (servers(before), servers(after))
        && was != is
    {
        let text = format!("NameServers: {was} to {is}");
        add(EventReason::NameServersScaled, &text);
    }
    let late = |status: &RocketMQClusterStatus| status.waiting_on.as_ref().is_some_and(|w| w.late);
    if let (false, true, Some(wait)) = (late(before), late(after), &after.waiting_on) {
        let text = format!("{}: {}", wait.pod, wait.reason);
        add(EventReason::WaitingTooLong, &text);
    }
    notes
}

fn of_ready(ready: &Change<'_>, add: &mut impl FnMut(EventReason, &str)) {
    if ready.is(R::InvalidSpec) && !ready.was(R::InvalidSpec) {
        add(EventReason::InvalidSpec, &ready.after.message);
    } else if ready.became("True") {
        add(EventReason::BecameReady, "everything runs");
    } else if ready.ceased("True") {
        add(EventReason::NoLongerReady, &ready.after.message);
    }
}

fn asked<'a>(change: impl Fn(T) -> Option<Change<'a>>, add: &mut impl FnMut(EventReason, &str)) {
    for (kind, on, off) in [
        (T::Paused, EventReason::Paused, Some(EventReason::Resumed)),
        (
            T::Hibernated,
            EventReason::Hibernated,
            Some(EventReason::Resumed),
        ),
        (T::DeletionBlocked, EventReason::DeletionBlocked, None),
    ] {
        let Some(changed) = change(kind) else {
            continue;
        };
        if changed.became("True") {
            add(on, &changed.after.message);
        } else if let (true, Some(off)) = (changed.ceased("True"), off) {
            add(off, "the operator goes on");
        }
    }
}

fn of_degraded(degraded: &Change<'_>, add: &mut impl FnMut(EventReason, &str)) {
    if degraded.after.status == "True" && !degraded.same_reason() {
        let reason = if degraded.is(R::VolumeLost) {
            EventReason::VolumeLost
        } else {
            EventReason::PodStuck
        };
        add(reason, &degraded.after.message);
    } else if degraded.ceased("True") {
        add(EventReason::PodRecovered, "nothing is broken any more");
    }
}

fn of_progress(progress: &Change<'_>, add: &mut impl FnMut(EventReason, &str)) {
    let (rolls, rolled) = (
        progress.is(R::RollingUpdate),
        progress.was(R::RollingUpdate),
    );
    if rolls && !rolled {
        add(EventReason::RolloutStarted, &progress.after.message);
    } else if rolled && progress.after.status == "False" {
        add(
            EventReason::RolloutCompleted,
            "every pod has the newest template",
        );
    }
    if progress.is(R::RolloutPaused) && !progress.was(R::RolloutPaused) {
        add(EventReason::RolloutHalted, &progress.after.message);
    }
}

/// The events of what changed in a group from `before` to `after`.
#[must_use]
pub fn of_group_change(
    index: i32,
    before: Option<&BrokerGroupStatus>,
    after: &BrokerGroupStatus,
) -> Vec<Note> {
    let about = About::Group(index);
    let Some(before) = before else {
        return vec![Note::new(
            about,
            EventReason::GroupCreated,
            "the group is being made",
        )];
    };
    let mut notes = Vec::new();
    let mut add = |reason, text: &str| notes.push(Note::new(about, reason, text));
    if before.drain.is_some() && after.drain.is_none() {
        add(
            EventReason::DrainCancelled,
            "the manifest asks for the group again",
        );
    }
    if before.opened && before.writable && !after.writable && after.drain.is_none() {
        let why = after.unwritable_reason.as_deref().unwrap_or_default();
        add(EventReason::MasterLost, why);
    }
    if before.opened && !before.writable && after.writable {
        add(EventReason::WritableAgain, "the group takes sends again");
    }
    if let (Some(record), true) = (
        after.history.first(),
        after.history.first() != before.history.first(),
    ) {
        let text = format!("{} is master in epoch {}", record.to, record.epoch);
        add(EventReason::MasterElected, &text);
    }
    notes
}

/// A condition before and after.
struct Change<'a> {
    before: Option<&'a Condition>,
    after: &'a Condition,
}

impl<'a> Change<'a> {
    fn of(before: &'a [Condition], after: &'a [Condition], kind: T) -> Option<Self> {
        Some(Self {
            before: find(before, kind),
            after: find(after, kind)?,
        })
    }

    fn is(&self, reason: R) -> bool {
        self.after.reason == reason.as_str()
    }

    fn was(&self, reason: R) -> bool {
        self.before
            .is_some_and(|before| before.reason == reason.as_str())
    }

    fn same_reason(&self) -> bool {
        self.before
            .is_some_and(|before| before.reason == self.after.reason)
    }

    fn became(&self, status: &str) -> bool {
        self.after.status == status && self.before.is_none_or(|before| before.status != status)
    }

    fn ceased(&self, status: &str) -> bool {
        self.after.status != status && self.before.is_some_and(|before| before.status == status)
    }
}
