//! Statuses of the world of the plan's tests: what they say, and that they rest.

use super::*;
use crate::observe::{Stuck, StuckReason};
use crate::plan::plan;
use crate::plan::tests::world::{World, desired};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use proptest::prelude::*;
use rmq_operator_api::{
    BrokerGroupStatus, ConditionReason as R, ConditionType as T, DrainPhase, EventReason, Phase,
};

/// One pass: plan, status, steps.
fn pass(
    world: &mut World,
    desired: &Desired,
    before: Option<&RocketMQClusterStatus>,
) -> RocketMQClusterStatus {
    world.settle(desired, 5_000);
    let plan = plan(&world.observed, desired, world.now);
    let status = cluster(&facts(world, desired, &plan, before));
    for step in &plan.steps {
        world.apply(step, desired);
    }
    status
}

fn facts<'a>(
    world: &'a World,
    desired: &'a Desired,
    plan: &'a Plan,
    previous: Option<&'a RocketMQClusterStatus>,
) -> Facts<'a> {
    Facts {
        observed: &world.observed,
        desired,
        plan,
        problems: &[],
        previous,
        operator_version: "0.1.0",
        selector: "a=b",
        now: world.now,
    }
}

fn run(
    world: &mut World,
    desired: &Desired,
    mut status: Option<RocketMQClusterStatus>,
    passes: usize,
) -> RocketMQClusterStatus {
    for _ in 0..passes {
        status = Some(pass(world, desired, status.as_ref()));
    }
    status.unwrap_or_default()
}

fn condition(status: &RocketMQClusterStatus, kind: T) -> &Condition {
    let all = &status.conditions;
    all.iter().find(|c| c.type_ == kind.as_str()).unwrap()
}

fn says(status: &RocketMQClusterStatus, kind: T, truth: &str, reason: R) -> bool {
    let condition = condition(status, kind);
    condition.status == truth && condition.reason == reason.as_str()
}

fn one_group(
    world: &World,
    desired: &Desired,
    index: i32,
    before: Option<&BrokerGroupStatus>,
) -> BrokerGroupStatus {
    let plan = plan(&world.observed, desired, world.now);
    group(&facts(world, desired, &plan, None), index, Some(1), before)
}

fn running(spec: &str) -> (World, Desired, RocketMQClusterStatus) {
    let desired = desired(spec);
    let mut world = World::new();
    let status = run(&mut world, &desired, None, 12);
    (world, desired, status)
}

#[test]
fn a_cluster_is_provisioned_then_ready_and_stable() {
    let desired = desired("brokers: {groups: 2, replicasPerGroup: 0}");
    let mut world = World::new();
    let first = pass(&mut world, &desired, None);
    assert_eq!(first.phase, Some(Phase::Provisioning));
    assert!(says(&first, T::Ready, "False", R::Provisioning));
    let status = run(&mut world, &desired, Some(first), 12);
    assert_eq!(status.phase, Some(Phase::Ready));
    assert!(
        says(&status, T::Stable, "True", R::QuiescedAndHealthy),
        "{status:?}"
    );
    assert!(says(
        &status,
        T::ReplicationHealthy,
        "True",
        R::SingleMember
    ));
    let groups = status.groups.clone().unwrap();
    assert_eq!((groups.summary.as_str(), groups.writable), ("2/2", 2));
    let servers = status.name_servers.clone().unwrap();
    assert_eq!((servers.ready, servers.route_skew), (3, 0));
    assert_eq!(servers.pods[0].registered_brokers, Some(2));
    let endpoints = status.endpoints.unwrap();
    assert_eq!(endpoints.name_server.matches(';').count(), 2);
    assert_eq!(
        endpoints.brokers,
        ["broker-0 10.0.0.0:10911", "broker-1 10.0.0.1:10911"]
    );
    assert_eq!(status.version.unwrap().current.as_deref(), Some("0.1.0"));
    assert_eq!(status.rollout.unwrap().summary, "5/5");
}

#[test]
fn every_condition_is_there_once_and_in_order_whatever_the_state() {
    let (mut world, desired, status) = running("brokers: {groups: 1}");
    world.silent.insert(0);
    for status in [status.clone(), run(&mut world, &desired, Some(status), 2)] {
        let types: Vec<_> = status.conditions.iter().map(|c| c.type_.as_str()).collect();
        let all: Vec<_> = T::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(types, all);
    }
}

#[test]
fn replicas_that_cannot_run_are_said_plainly() {
    let (_, _, status) = running("brokers: {groups: 1, replicasPerGroup: 2}");
    assert!(says(&status, T::ReplicationHealthy, "False", R::NoReplicas));
    let said = &condition(&status, T::ReplicationHealthy).message;
    assert!(
        said.contains("asks for 2; replicas need the controller"),
        "{said}"
    );
    assert!(says(&status, T::Ready, "True", R::AllComponentsReady));
}

#[test]
fn a_time_changes_with_the_status_of_a_condition_and_not_with_its_message() {
    let (mut world, desired, status) = running("brokers: {groups: 2}");
    let ready = condition(&status, T::Ready).last_transition_time.clone();
    let later = run(&mut world, &desired, Some(status), 5);
    assert_eq!(condition(&later, T::Ready).last_transition_time, ready);
    world.silent.insert(0);
    let down = run(&mut world, &desired, Some(later), 1);
    assert!(says(&down, T::Ready, "False", R::GroupNotWritable));
    let lost = condition(&down, T::Ready).last_transition_time.clone();
    assert_ne!(lost, ready);
    world.silent.insert(1);
    let worse = run(&mut world, &desired, Some(down), 1);
    assert_eq!(condition(&worse, T::Ready).last_transition_time, lost);
    assert!(says(&worse, T::Available, "False", R::AllGroupsDown));
    assert_eq!(worse.phase, Some(Phase::Unavailable));
}

#[test]
fn a_pod_that_cannot_run_is_named_with_its_reason() {
    let (mut world, desired, status) = running("brokers: {groups: 2}");
    let pod = &mut world.observed.groups.get_mut(&1).unwrap().pods[0];
    pod.ready = false;
    pod.stuck = Some(Stuck {
        reason: StuckReason::VolumeAttach,
        message: "Multi-Attach error".to_owned(),
    });
    let plan = plan(&world.observed, &desired, world.now);
    let after = cluster(&facts(&world, &desired, &plan, Some(&status)));
    assert!(says(&after, T::Degraded, "True", R::VolumeAttachConflict));
    assert!(
        condition(&after, T::Degraded)
            .message
            .contains("a-broker-1-0: Multi-Attach")
    );
    let notes = of_change(Some(&status), &after);
    assert!(
        notes
            .iter()
            .any(|note| note.reason == EventReason::PodStuck)
    );
    assert!(of_change(Some(&after), &after).is_empty());
}

#[test]
fn a_roll_says_how_far_it_is_and_what_it_waits_for_since_when() {
    let (mut world, desired, status) = running("nameServer: {replicas: 1}, brokers: {groups: 2}");
    world.template = "t2".to_owned();
    let mut seen = Vec::new();
    let mut before = status.clone();
    let mut notes = Vec::new();
    for _ in 0..40 {
        let after = pass(&mut world, &desired, Some(&before));
        let new = of_change(Some(&before), &after);
        let over = |note: &Note| note.reason == EventReason::RolloutCompleted;
        let groups = after.groups.as_ref().unwrap();
        assert!(groups.ready == 2 || !new.iter().any(over), "a pod is away");
        notes.extend(new.into_iter().map(|note| note.reason));
        let rollout = after.rollout.clone().unwrap();
        if let Some(wait) = rollout.waiting_on {
            seen.push((rollout.updated, wait.pod, wait.since));
        }
        before = after;
    }
    assert!(says(&before, T::Progressing, "False", R::Idle));
    assert_eq!(before.rollout.unwrap().summary, "3/3");
    let soaking: Vec<_> = seen
        .iter()
        .filter(|(_, pod, _)| pod == "a-broker-0-0")
        .collect();
    assert!(soaking.len() > 5, "{seen:?}");
    let since = &soaking.last().unwrap().2;
    assert!(soaking.iter().filter(|(_, _, at)| at == since).count() > 5);
    let rolls: Vec<_> = notes
        .into_iter()
        .filter(|r| {
            matches!(
                r,
                EventReason::RolloutStarted | EventReason::RolloutCompleted
            )
        })
        .collect();
    assert_eq!(
        rolls,
        [EventReason::RolloutStarted, EventReason::RolloutCompleted]
    );
}

#[test]
fn a_roll_that_was_stopped_is_halted_in_word_and_phase() {
    let (mut world, desired, status) = running("nameServer: {replicas: 1}, brokers: {groups: 2}");
    world.template = "bad".to_owned();
    // NameServers take it, brokers do not.
    let mut after = run(&mut world, &desired, Some(status), 3);
    world.bad_template = Some("bad".to_owned());
    after = run(&mut world, &desired, Some(after), 40);
    assert!(after.rollout.as_ref().unwrap().halted, "{after:?}");
    assert_eq!(after.phase, Some(Phase::Halted));
    assert!(says(&after, T::Degraded, "True", R::PodCrashLoop));
}

#[test]
fn a_wait_becomes_late_and_that_is_an_event_once() {
    let (mut world, _, status) = running("brokers: {groups: 2}");
    world.backlog.insert(1, 10);
    let one = desired("brokers: {groups: 1}, scaleIn: {timeout: 1m}");
    // What the writer of the group's status does is in the world: `drain_since`.
    let mut before = run(&mut world, &one, Some(status), 4);
    let mut late = 0;
    for _ in 0..20 {
        let after = pass(&mut world, &one, Some(&before));
        let notes = of_change(Some(&before), &after);
        late += notes
            .iter()
            .filter(|n| n.reason == EventReason::WaitingTooLong)
            .count();
        before = after;
    }
    assert_eq!(late, 1);
    assert!(says(&before, T::Degraded, "True", R::DrainLate));
    assert!(before.waiting_on.unwrap().late);
}

#[test]
fn a_group_says_who_is_master_and_what_is_done_to_it() {
    let (mut world, two, _) = running("brokers: {groups: 2}");
    let status = one_group(&world, &two, 1, None);
    let master = status.current_master.clone().unwrap();
    assert_eq!(
        (master.pod.as_str(), master.address.as_str()),
        ("a-broker-1-0", "10.0.0.1:10911")
    );
    assert!(status.writable && status.opened && status.unwritable_reason.is_none());
    assert_eq!(status.summary.in_sync, "1/1");
    assert_eq!(status.summary.step, "Idle");
    assert!(status.members[0].safety.safe);
    assert_eq!(status.members[0].safety.risks, ["structurallyUnsafe"]);
    world.backlog.insert(1, 1001);
    let one = desired("brokers: {groups: 1}");
    for _ in 0..4 {
        pass(&mut world, &one, None);
    }
    let draining = one_group(&world, &one, 1, Some(&status));
    let drain = draining.drain.clone().unwrap();
    assert_eq!(
        (drain.phase, drain.remaining_messages),
        (DrainPhase::Draining, Some(1100))
    );
    assert_eq!(draining.summary.step, "Draining");
    assert_eq!(
        draining.current_master.as_ref().map(|m| &m.since),
        Some(&master.since)
    );
    let back = one_group(&world, &two, 1, Some(&draining));
    assert!(back.drain.is_none());
    let notes = of_group_change(1, Some(&draining), &back);
    assert_eq!(notes[0].reason, EventReason::DrainCancelled);
}

#[test]
fn a_group_that_nobody_can_ask_keeps_its_master_and_says_why_it_takes_no_sends() {
    let (mut world, desired, _) = running("brokers: {groups: 1}");
    let before = one_group(&world, &desired, 0, None);
    world.silent.insert(0);
    world.settle(&desired, 1000);
    let after = one_group(&world, &desired, 0, Some(&before));
    assert_eq!(after.current_master, before.current_master);
    assert!(!after.writable);
    let why = after.unwritable_reason.clone().unwrap();
    assert!(why.contains("does not answer: timed out"), "{why}");
    let reasons: Vec<_> = of_group_change(0, Some(&before), &after)
        .into_iter()
        .map(|note| note.reason)
        .collect();
    assert_eq!(reasons, [EventReason::MasterLost]);
}

#[test]
fn problems_of_the_manifest_are_all_in_the_status() {
    let (world, desired, status) = running("brokers: {groups: 1}");
    let text = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {name: a}\n\
                spec: {version: x, brokers: {groups: 0}}\n";
    let problems = rmq_operator_api::validate(&rmq_operator_api::parse_manifest(text).unwrap());
    let plan = Plan::default();
    let after = cluster(&Facts {
        problems: &problems,
        ..facts(&world, &desired, &plan, Some(&status))
    });
    assert_eq!(after.phase, Some(Phase::Invalid));
    let said = &condition(&after, T::Ready).message;
    assert!(
        said.contains("spec.version") && said.contains("spec.brokers.groups"),
        "{said}"
    );
    let notes = of_change(Some(&status), &after);
    assert!(
        notes
            .iter()
            .any(|note| note.reason == EventReason::InvalidSpec)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_status_at_rest_is_the_same_again_and_again(
        groups in 1..4_i32, servers in 1..4_i32, passes in 1..6_usize, replicas in 0..3_i32,
    ) {
        let spec = format!(
            "nameServer: {{replicas: {servers}}}, brokers: {{groups: {groups}, \
             replicasPerGroup: {replicas}}}"
        );
        let (mut world, desired, status) = running(&spec);
        let again = run(&mut world, &desired, Some(status.clone()), passes);
        prop_assert_eq!(&again, &status);
        for index in 0..groups {
            let before = one_group(&world, &desired, index, None);
            world.settle(&desired, 60_000);
            let after = one_group(&world, &desired, index, Some(&before));
            prop_assert_eq!(&after, &before);
        }
    }

    #[test]
    fn the_phase_follows_from_the_conditions_and_never_breaks(
        words in prop::collection::vec((0..T::ALL.len(), 0..3_usize, any::<u16>()), 0..20),
    ) {
        let mut all = Conditions::new(&[], 1, time(Timestamp::default()));
        for (kind, truth, reason) in words {
            let kind = T::ALL[kind];
            let truth = [Truth::True, Truth::False, Truth::Unknown][truth];
            let reasons = kind.reasons();
            all.set(kind, truth, reasons[reason as usize % reasons.len()], "");
        }
        let made = all.finish();
        let first = phase(&made);
        prop_assert_eq!(phase(&made), first);
        let types: Vec<_> = made.iter().map(|c| T::from_word(&c.type_)).collect();
        prop_assert!(types.is_sorted());
    }
}
