//! One pass over a cluster.
//!
//! **Invariant:** a pass asks and writes, and never waits for something to happen: what is not there
//! yet brings the next pass by its own change. What to do is decided by the plan and the guard; here
//! steps are taken in their order, and one that fails holds up those of its own part only. The
//! status is written last and says what was seen in this pass.

use super::context::{Context, ReconcileError};
use super::control::Reconcile;
use super::execute::{Hands, StepError};
use super::finalize;
use super::objects::Parts;
use super::observe;
use super::told;
use crate::build::{Build, KeyClass};
use crate::config_keys;
use crate::guard;
use crate::observe::Observed;
use crate::plan::{self, Component, Desired, Plan, Step};
use kube::Resource as _;
use kube::runtime::controller::Action;
use rmq_operator_api::{
    AdvertisedFrom, EventReason, Field, Problem, Reason, RocketMQCluster, validate,
};
use rmq_types::{Clock as _, SystemClock, Timestamp};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// Between two looks at a cluster in which nothing is left to do.
const AT_REST: Duration = Duration::from_secs(30);
/// Between two looks while something is done.
const BUSY: Duration = Duration::from_secs(2);
/// Between two looks while something is waited for that may not bring a look by itself.
const WAITING: Duration = Duration::from_secs(5);

/// What a pass came to.
pub(super) struct Pass<'a> {
    pub(super) desired: &'a Desired,
    pub(super) observed: &'a Observed,
    pub(super) plan: &'a Plan,
    /// What is wrong with the manifest.
    pub(super) problems: &'a [Problem],
    pub(super) now: Timestamp,
}

impl Reconcile for RocketMQCluster {
    async fn reconcile(&self, context: &Context) -> Result<Action, ReconcileError> {
        let parts = Parts {
            context,
            cluster: self,
        };
        let problems = problems(self, context);
        let desired = desired(parts);
        let observed = Box::pin(observe::look(parts)).await;
        let now = SystemClock.now();
        let plan = if problems.is_empty() || desired.deleting {
            plan::plan(&observed, &desired, now)
        } else {
            Plan::default()
        };
        let hands = Hands {
            parts,
            desired: &desired,
            observed: &observed,
        };
        let failures = Box::pin(carry_out(&hands, &plan)).await;
        if ends(&plan, &failures) {
            context.forget(self);
            return Ok(Action::await_change());
        }
        let refused = !failures.is_empty();
        let api = failures.into_iter().find_map(|(_, error)| match error {
            StepError::Reconcile(error) => Some(error),
            _ => None,
        });
        if let Some(error) = &api
            && finalize::namespace_ends(error)
        {
            finalize::release(context, self).await?;
            return Ok(Action::await_change());
        }
        let pass = Pass {
            desired: &desired,
            observed: &observed,
            plan: &plan,
            problems: &problems,
            now,
        };
        told::write(parts, &pass).await?;
        if let Some(error) = api {
            return Err(error);
        }
        if refused {
            return Ok(context.refused(self));
        }
        Ok(context.succeeded(self, again(&plan, &problems, now)))
    }
}

/// Whether the object itself was let go.
fn ends(plan: &Plan, failures: &[(Component, StepError)]) -> bool {
    failures.is_empty() && plan.steps.contains(&Step::RemoveFinalizer)
}

fn again(plan: &Plan, problems: &[Problem], now: Timestamp) -> Option<Duration> {
    if !problems.is_empty() {
        return None;
    }
    let usual = match (plan.steps.is_empty(), plan.waits.is_empty()) {
        (false, _) => BUSY,
        (true, false) => WAITING,
        (true, true) => AT_REST,
    };
    let until = plan.wake_at.map(|at| {
        let millis = u64::try_from(at.since(now)).unwrap_or(0);
        // A little later than asked, so that the time has come for sure.
        Duration::from_millis(millis.saturating_add(100))
    });
    Some(until.map_or(usual, |until| until.min(usual)))
}

/// What the manifest asks for.
fn desired(parts: Parts<'_>) -> Desired {
    let keys = &parts.context.options.site.keys;
    let live = |class: Option<KeyClass>| class.map(|class| class == KeyClass::Live);
    Desired::of(
        parts.cluster,
        parts.build().names().name_server_addresses(),
        &|key| config_keys::broker(key, live(keys.broker(key))),
        &|key| config_keys::name_server(key, live(keys.name_server(key))),
        &keys.live_defaults(),
    )
}

/// Takes the steps of a plan in their order; those that failed, with their part.
async fn carry_out(hands: &Hands<'_>, plan: &Plan) -> Vec<(Component, StepError)> {
    let mut failures: Vec<(Component, StepError)> = Vec::new();
    let mut failed = BTreeSet::new();
    let mut taken: Vec<Step> = Vec::new();
    for step in &plan.steps {
        let component = step.component();
        if failed.contains(&component) {
            continue;
        }
        let result = if step.needs_fresh_look() {
            with_fresh_look(hands, step, &taken).await
        } else {
            hands.take(step).await
        };
        match result {
            Ok(()) => {
                tracing::info!(cluster = told::name(hands.parts), %step, "done");
                told::step(hands.parts, step).await;
                taken.push(step.clone());
            }
            Err(error) => {
                tracing::warn!(cluster = told::name(hands.parts), %step, %error, "not done");
                failed.insert(component);
                failures.push((component, error));
            }
        }
    }
    failures
}

/// Looks again right before a step that rests on what may have changed, and asks the guard once more.
async fn with_fresh_look(hands: &Hands<'_>, step: &Step, taken: &[Step]) -> Result<(), StepError> {
    let fresh = Box::pin(observe::look(hands.parts)).await;
    let about = hands.parts.cluster.object_ref(&());
    if let Err(refusal) = guard::check(&fresh, hands.desired, step, taken) {
        let note = refusal.to_string();
        let events = &hands.parts.context.events;
        events.tell(&about, EventReason::StepRefused, &note).await;
        return Err(StepError::NotThere(note));
    }
    let hands = Hands {
        observed: &fresh,
        ..*hands
    };
    hands.take(step).await
}

/// Everything that is wrong with the manifest: what its own rules say, and what the programs would
/// say of their keys.
fn problems(cluster: &RocketMQCluster, context: &Context) -> Vec<Problem> {
    let mut problems = validate(cluster);
    let keys = &context.options.site.keys;
    let spec = &cluster.spec;
    let build = Build {
        cluster,
        site: &context.options.site,
    };
    problems.extend(unsupported(build));
    let mut add = |field: Field, said: Result<(), String>| {
        let known = problems.iter().any(|problem| problem.field == field);
        if let (false, Err(says)) = (known, said) {
            let reason = Reason::Program { says };
            problems.push(Problem { field, reason });
        }
    };
    for (key, value) in &spec.name_server.config {
        let field = Field::NameServerConfigKey(key.clone());
        add(field, keys.check_name_server(key, value));
    }
    for (key, value) in &spec.brokers.config {
        let field = Field::BrokerConfigKey(key.clone());
        add(field, keys.check_broker(key, value));
    }
    for (at, part) in spec.brokers.group_overrides.iter().enumerate() {
        for (key, value) in &part.config {
            let path = format!("brokers.groupOverrides[{at}].config.{key}");
            add(Field::Spec(path), keys.check_broker(key, value));
        }
    }
    problems
}

/// What a manifest may say and this version cannot carry out.
fn unsupported(build: Build<'_>) -> Option<Problem> {
    let says = match build.advertised_from() {
        AdvertisedFrom::Annotation => {
            "addresses from annotations of pods are not supported by this version".to_owned()
        }
        AdvertisedFrom::Template => {
            let pod = build.names().broker_pod(0, 0);
            let text = build.advertised_template(0, &pod).unwrap_or_default();
            text.parse::<IpAddr>().err()?;
            format!("gives {text:?}; brokers of this version are told to clients by IP address")
        }
        AdvertisedFrom::Service | AdvertisedFrom::PodIP | AdvertisedFrom::HostIP => return None,
    };
    let field = Field::Spec("listeners[0].advertised".to_owned());
    let reason = Reason::Program { says };
    Some(Problem { field, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_looked_at_again_when_it_asks_and_never_later_than_usual() {
        let now = Timestamp::from_millis(1_000);
        let mut plan = Plan::default();
        assert_eq!(again(&plan, &[], now), Some(AT_REST));
        plan.wake_at = Some(Timestamp::from_millis(2_000));
        assert_eq!(again(&plan, &[], now), Some(Duration::from_millis(1_100)));
        plan.wake_at = Some(Timestamp::from_millis(0));
        assert_eq!(again(&plan, &[], now), Some(Duration::from_millis(100)));
        plan.wake_at = Some(Timestamp::from_millis(1_000_000));
        assert_eq!(again(&plan, &[], now), Some(AT_REST));
        let wrong = Problem {
            field: Field::Version,
            reason: Reason::Missing,
        };
        assert_eq!(again(&plan, &[wrong], now), None);
    }
}
