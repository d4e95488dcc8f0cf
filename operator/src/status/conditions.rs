//! Conditions, their times, and the phase.
//!
//! **Invariant:** `lastTransitionTime` changes with the status alone, not with reason or message;
//! the conditions stand in the order of [`ConditionType`].

use super::texts::shortened;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rmq_operator_api::{ConditionReason, ConditionType, Phase};

/// Most characters of a message.
const MESSAGE_MAX: usize = 1024;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Truth {
    /// As Kubernetes writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// True or False.
    #[must_use]
    pub const fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The conditions of an object in the making.
#[derive(Clone, Debug)]
pub struct Conditions<'a> {
    previous: &'a [Condition],
    generation: i64,
    now: Time,
    made: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// None yet; `previous` are those of the status before.
    #[must_use]
    pub const fn new(previous: &'a [Condition], generation: i64, now: Time) -> Self {
        Self {
            previous,
            generation,
            now,
            made: Vec::new(),
        }
    }

    /// Sets one. A second call for the same type replaces the first.
    pub fn set(
        &mut self,
        kind: ConditionType,
        truth: Truth,
        reason: ConditionReason,
        message: &str,
    ) {
        debug_assert!(
            kind.reasons().contains(&reason),
            "{kind} has no reason {reason}"
        );
        let since = self
            .previous
            .iter()
            .find(|before| before.type_ == kind.as_str() && before.status == truth.as_str())
            .map_or_else(
                || self.now.clone(),
                |before| before.last_transition_time.clone(),
            );
        self.made.retain(|made| made.type_ != kind.as_str());
        self.made.push(Condition {
            type_: kind.as_str().to_owned(),
            status: truth.as_str().to_owned(),
            reason: reason.as_str().to_owned(),
            message: shortened(message, MESSAGE_MAX),
            observed_generation: Some(self.generation),
            last_transition_time: since,
        });
    }

    /// Whether one holds so far.
    #[must_use]
    pub fn is_true(&self, kind: ConditionType) -> bool {
        holds(&self.made, kind)
    }

    /// All of them, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Condition> {
        self.made
            .sort_by_key(|made| ConditionType::from_word(&made.type_));
        self.made
    }
}

/// The condition of a type.
pub(super) fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|c| c.type_ == kind.as_str())
}

/// Whether a condition holds.
pub(super) fn holds(conditions: &[Condition], kind: ConditionType) -> bool {
    find(conditions, kind).is_some_and(|c| c.status == "True")
}

fn reason(conditions: &[Condition], kind: ConditionType) -> Option<ConditionReason> {
    find(conditions, kind).and_then(|c| ConditionReason::from_word(&c.reason))
}

/// One word for people, from the conditions alone.
#[must_use]
pub fn phase(conditions: &[Condition]) -> Phase {
    use ConditionReason as R;
    use ConditionType as T;
    let ready = find(conditions, T::Ready);
    let Some(ready) = ready else {
        return Phase::Pending;
    };
    if ready.reason == R::InvalidSpec.as_str() {
        return Phase::Invalid;
    }
    if holds(conditions, T::Paused) {
        return Phase::Paused;
    }
    if holds(conditions, T::Hibernated) {
        return Phase::Hibernated;
    }
    let progress = reason(conditions, T::Progressing).filter(|_| holds(conditions, T::Progressing));
    let available = find(conditions, T::Available).is_none_or(|c| c.status != "False");
    match progress {
        Some(R::RolloutPaused) => Phase::Halted,
        Some(R::Provisioning) if !holds(conditions, T::Degraded) => Phase::Provisioning,
        _ if !available => Phase::Unavailable,
        _ if holds(conditions, T::Degraded) => Phase::Degraded,
        Some(R::RollingUpdate | R::SwitchingOver | R::FailingOver) => Phase::Updating,
        Some(R::Scaling | R::ExpandingStorage) => Phase::Scaling,
        _ if ready.status == "True" => Phase::Ready,
        _ => Phase::Degraded,
    }
}
