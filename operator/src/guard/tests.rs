//! Random groups with several members, and what the guard lets be done to them.
//!
//! The predicates are written here a second time, from the words of the invariants.

use super::*;
use crate::observe::{
    Answer, BrokerSeen, GroupSeen, PodSeen, SetSeen, SyncStateSeen, VolumePhase, VolumeSeen,
};
use crate::plan::tests::world;
use crate::plan::{RestartReason, plan};
use proptest::prelude::*;
use rmq_types::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Member {
    ready: bool,
    known: bool,
    outdated: bool,
    in_sync: bool,
    writes: bool,
    label: Option<&'static str>,
    epoch: i64,
    lost: bool,
}

fn member() -> impl Strategy<Value = Member> {
    (
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        any::<bool>(),
        prop::bool::weighted(0.7),
        prop::bool::weighted(0.4),
        prop::option::of(prop::sample::select(vec!["master", "replica", "joining"])),
        0..4_i64,
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(ready, known, outdated, in_sync, writes, label, epoch, lost)| Member {
                ready,
                known: known && ready,
                outdated,
                in_sync,
                writes,
                label,
                epoch,
                lost,
            },
        )
}

fn group(index: i32) -> impl Strategy<Value = GroupSeen> {
    (
        prop::collection::vec(member(), 1..4),
        prop::bool::weighted(0.7),
        prop::bool::weighted(0.8),
        0..4_i64,
        prop::option::of(0..3_i64),
        any::<bool>(),
    )
        .prop_map(
            move |(members, controlled, quorum, epoch, master, opened)| {
                build(
                    index,
                    &members,
                    controlled.then_some((quorum, epoch, master)),
                    opened,
                )
            },
        )
}

fn build(
    index: i32,
    members: &[Member],
    sync: Option<(bool, i64, Option<i64>)>,
    opened: bool,
) -> GroupSeen {
    let mut group = GroupSeen {
        broker_name: format!("broker-{index}"),
        has_objects: true,
        set: Some(SetSeen {
            uid: format!("s{index}"),
            replicas: members.len() as i32,
            update_revision: Some("new".to_owned()),
            volume_bytes: 20 << 30,
            deleting: false,
        }),
        opened,
        ..GroupSeen::default()
    };
    let mut in_sync = BTreeSet::new();
    for (ordinal, member) in members.iter().enumerate() {
        let ordinal = ordinal as i32;
        let name = format!("a-broker-{index}-{ordinal}");
        let mut pod = PodSeen {
            uid: format!("p{index}{ordinal}"),
            name: name.clone(),
            ordinal,
            revision: Some(if member.outdated { "old" } else { "new" }.to_owned()),
            ready: member.ready,
            ready_since: member.ready.then(Timestamp::default),
            ..PodSeen::default()
        };
        pod.labels.role = member.label.map(str::to_owned);
        pod.labels.epoch = member.epoch;
        group.pods.push(pod);
        let phase = if member.lost {
            VolumePhase::Lost
        } else {
            VolumePhase::Bound
        };
        group.volumes.insert(
            ordinal,
            VolumeSeen {
                name: format!("data-{name}"),
                uid: format!("v{index}{ordinal}"),
                phase,
                requested: 20 << 30,
                capacity: 20 << 30,
                expandable: None,
                deleting: false,
            },
        );
        let permission = if member.writes { "6" } else { "4" };
        let config = BTreeMap::from([
            ("brokerPermission".to_owned(), permission.to_owned()),
            ("namesrvAddr".to_owned(), "gone:9876".to_owned()),
        ]);
        let answer = if member.known {
            Answer::Known(BrokerSeen {
                broker_id: i64::from(ordinal),
                config,
                metadata: Some(BTreeSet::new()),
                recovered: true,
                ..BrokerSeen::default()
            })
        } else {
            Answer::Unknown("timed out".to_owned())
        };
        group.brokers.insert(ordinal, answer);
        if member.in_sync {
            in_sync.insert(i64::from(ordinal));
        }
    }
    group.sync = sync.map(|(quorum, epoch, master)| SyncStateSeen {
        quorum,
        master,
        epoch,
        in_sync,
        set_epoch: epoch,
    });
    group
}

fn observed() -> impl Strategy<Value = Observed> {
    (group(0), group(1), group(2), prop::bool::weighted(0.9)).prop_map(|(a, b, c, fresh)| {
        let mut observed = Observed {
            fresh,
            ..Observed::default()
        };
        observed.groups = BTreeMap::from([(0, a), (1, b), (2, c)]);
        observed
    })
}

fn desired(groups: i32, min_in_sync: i32, most: i32) -> Desired {
    let mut desired = world::desired(&format!(
        "nameServer: {{replicas: 1}}, brokers: {{groups: {groups}}}, \
         updateStrategy: {{maxUnavailableGroups: {most}, canary: {{soak: 0s}}}}"
    ));
    for group in desired.groups.values_mut() {
        group.members = 3;
        group.min_in_sync = min_in_sync;
    }
    desired
}

/// Every step that somebody could think of for what is there.
fn thinkable(observed: &Observed) -> Vec<Step> {
    let mut steps = Vec::new();
    for (group, seen) in &observed.groups {
        let group = *group;
        for pod in &seen.pods {
            steps.push(Step::RestartPod {
                component: Component::Group(group),
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                ordinal: pod.ordinal,
                why: RestartReason::TemplateChanged,
            });
            let ordinal = pod.ordinal;
            steps.push(Step::OpenGroup { group, ordinal });
            steps.push(Step::CloseGroup { group, ordinal });
            for (role, epoch) in [("master", 1), ("replica", 2), ("master", 3)] {
                steps.push(Step::LabelPod {
                    group,
                    pod: pod.name.clone(),
                    uid: pod.uid.clone(),
                    role,
                    in_sync: true,
                    readable: true,
                    epoch,
                });
            }
            let volume = &seen.volumes[&ordinal];
            let claim = (volume.name.clone(), volume.uid.clone());
            steps.push(Step::ReplaceVolume {
                group,
                ordinal,
                claim: Some(claim.clone()),
                pod: Some((pod.name.clone(), pod.uid.clone())),
            });
            let (claim, uid) = claim;
            steps.push(Step::DeleteVolume { group, claim, uid });
        }
        let uid = format!("s{group}");
        steps.push(Step::StopGroup {
            group,
            uid: uid.clone(),
        });
        steps.push(Step::RecreateSet { group, uid });
        steps.push(Step::RemoveGroup { group });
        steps.push(Step::Unregister {
            group,
            broker_name: seen.broker_name.clone(),
            from: vec!["a:9876".to_owned()],
        });
    }
    steps
}

/// What must hold of a step that was let through, in the words of the invariants.
fn holds(observed: &Observed, desired: &Desired, step: &Step) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{step}: {why}"));
    if step.is_disruptive() && !observed.fresh {
        return fail("I6: the view is stale");
    }
    let Component::Group(index) = step.component() else {
        return Ok(());
    };
    let group = &observed.groups[&index];
    if step.is_disruptive() && group.sync.as_ref().is_some_and(|sync| !sync.quorum) {
        return fail("I6: quorum is lost");
    }
    match step {
        Step::RestartPod { ordinal, .. } => {
            let others: Vec<_> = group
                .pods
                .iter()
                .filter(|p| p.ordinal != *ordinal)
                .collect();
            if others.iter().any(|pod| !pod.is_healthy()) {
                return fail("I4: two pods of a group");
            }
            if let (Some(sync), Some(broker)) = (&group.sync, group.broker(*ordinal)) {
                let mut left = sync.in_sync.clone();
                if left.remove(&broker.broker_id) && group.pods.len() > 1 {
                    if left.is_empty() {
                        return fail("I2: the last in sync");
                    }
                    let min = desired
                        .groups
                        .get(&index)
                        .map_or(1, |g| g.min_in_sync as usize);
                    if left.len() < min && group.pods.len() > min {
                        return fail("I3: too few in sync");
                    }
                }
            } else if group.pods.len() > 1 && group.sync.is_none() {
                return fail("I6: nobody says who is in sync");
            }
        }
        Step::OpenGroup { ordinal, .. } if group.master() != Some(*ordinal) => {
            return fail("I1: not the master");
        }
        Step::LabelPod { pod, epoch, .. } => {
            let seen = group.pods.iter().find(|p| p.name == *pod);
            if seen.is_some_and(|seen| seen.labels.epoch > *epoch) {
                return fail("I10: an older epoch");
            }
        }
        Step::ReplaceVolume { ordinal, .. } => {
            let in_sync = match (&group.sync, group.broker(*ordinal)) {
                (Some(sync), Some(broker)) => sync.in_sync.contains(&broker.broker_id),
                _ => false,
            };
            if in_sync {
                return fail("I9: a member in sync");
            }
            if group.pods.len() == 1 {
                return fail("I9: the only copy");
            }
        }
        Step::DeleteVolume { .. } => return fail("I9: no policy says so"),
        Step::StopGroup { .. } | Step::RemoveGroup { .. }
            if desired.groups.contains_key(&index) || group.opened =>
        {
            return fail("I18: messages may be left");
        }
        _ => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_the_guard_lets_through_keeps_every_invariant(
        observed in observed(), groups in 1..4_i32, min in 1..3_i32, most in 1..3_i32,
    ) {
        let desired = desired(groups, min, most);
        for step in thinkable(&observed) {
            let through = check(&observed, &desired, &step, &[]).is_ok();
            if through && let Err(broken) = holds(&observed, &desired, &step) {
                prop_assert!(false, "{}", broken);
            }
        }
    }

    #[test]
    fn a_plan_keeps_every_invariant_whatever_is_there(
        observed in observed(), groups in 1..4_i32, min in 1..3_i32, most in 1..3_i32,
    ) {
        let desired = desired(groups, min, most);
        let steps = plan(&observed, &desired, Timestamp::from_millis(1)).steps;
        let mut disrupted = BTreeSet::new();
        let mut masters = BTreeSet::new();
        for step in &steps {
            if let Err(broken) = holds(&observed, &desired, step) {
                prop_assert!(false, "{}", broken);
            }
            if step.is_disruptive() {
                prop_assert!(disrupted.insert(step.component()), "I4: {:?}", steps);
            }
            if let Step::LabelPod { group, role: "master", .. } = step {
                prop_assert!(masters.insert(*group), "I11: two masters: {:?}", steps);
            }
        }
        // I11: at no moment two pods of a group are labelled master by us.
        for (index, group) in &observed.groups {
            let mut labelled: BTreeSet<&str> = group.pods.iter()
                .filter(|pod| pod.labels.role.as_deref() == Some("master"))
                .map(|pod| pod.name.as_str()).collect();
            for step in &steps {
                if let Step::LabelPod { group, pod, role, .. } = step && group == index {
                    if *role == "master" {
                        labelled.insert(pod);
                        prop_assert_eq!(labelled.len(), 1, "I11 in {:?}", &steps);
                    } else {
                        labelled.remove(pod.as_str());
                    }
                }
            }
        }
    }

    #[test]
    fn disturbed_groups_stay_within_their_number(
        observed in observed(), most in 1..3_i32,
    ) {
        let desired = desired(3, 1, most);
        let mut taken: Vec<Step> = Vec::new();
        for step in thinkable(&observed) {
            let restart = matches!(step, Step::RestartPod { .. });
            if restart && check(&observed, &desired, &step, &taken).is_ok() {
                taken.push(step);
            }
        }
        let mut down: BTreeSet<i32> = observed.groups.iter()
            .filter(|(_, group)| group.unready() > 0).map(|(index, _)| *index).collect();
        let before = down.len();
        for step in &taken {
            if let Component::Group(index) = step.component() {
                down.insert(index);
            }
        }
        let bound = before.max(most as usize);
        prop_assert!(down.len() <= bound, "{} of {}: {:?}", down.len(), bound, taken);
    }
}

fn alone() -> (Observed, Desired) {
    let member = Member {
        ready: true,
        known: true,
        outdated: true,
        in_sync: true,
        writes: true,
        label: None,
        epoch: 0,
        lost: false,
    };
    let mut observed = Observed {
        fresh: true,
        ..Observed::default()
    };
    observed.groups.insert(0, build(0, &[member], None, true));
    (observed, desired(1, 1, 1))
}

fn refusal(observed: &Observed, desired: &Desired, step: &Step) -> Invariant {
    check(observed, desired, step, &[]).unwrap_err().invariant
}

#[test]
fn a_pod_that_was_made_anew_is_not_deleted_for_the_old_one() {
    let (observed, desired) = alone();
    let restart = |uid: &str| Step::RestartPod {
        component: Component::Group(0),
        pod: "a-broker-0-0".to_owned(),
        uid: uid.to_owned(),
        ordinal: 0,
        why: RestartReason::TemplateChanged,
    };
    assert!(check(&observed, &desired, &restart("p00"), &[]).is_ok());
    assert_eq!(refusal(&observed, &desired, &restart("p99")), Invariant::I7);
    assert_eq!(refusal(&observed, &desired, &restart("")), Invariant::I7);
}

#[test]
fn a_list_of_name_servers_is_the_manifests_or_it_is_not_sent() {
    let (observed, desired) = alone();
    let push = |list: &str| Step::PushBrokerConfig {
        group: 0,
        ordinal: 0,
        keys: BTreeMap::from([("namesrvAddr".to_owned(), list.to_owned())]),
    };
    assert!(check(&observed, &desired, &push(&desired.name_server_list()), &[]).is_ok());
    assert_eq!(refusal(&observed, &desired, &push("")), Invariant::I12);
    assert_eq!(
        refusal(&observed, &desired, &push("other:9876")),
        Invariant::I12
    );
    let permission = Step::PushBrokerConfig {
        group: 0,
        ordinal: 0,
        keys: BTreeMap::from([("brokerPermission".to_owned(), "6".to_owned())]),
    };
    assert_eq!(refusal(&observed, &desired, &permission), Invariant::I1);
}

#[test]
fn a_disk_goes_with_the_cluster_only_by_policy_and_finalizer() {
    let (mut observed, mut desired) = alone();
    let delete = Step::DeleteVolume {
        group: 0,
        claim: "data-a-broker-0-0".to_owned(),
        uid: "v00".to_owned(),
    };
    assert_eq!(refusal(&observed, &desired, &delete), Invariant::I18);
    desired.deleting = true;
    assert_eq!(refusal(&observed, &desired, &delete), Invariant::I9);
    desired.delete_volumes_with_cluster = true;
    assert_eq!(refusal(&observed, &desired, &delete), Invariant::I9);
    observed.cluster.has_finalizer = true;
    assert!(check(&observed, &desired, &delete, &[]).is_ok());
    desired.deletion_blocked = true;
    assert_eq!(refusal(&observed, &desired, &delete), Invariant::I9);
    assert_eq!(
        refusal(&observed, &desired, &Step::RemoveFinalizer),
        Invariant::I9
    );
}

#[test]
fn a_refusal_names_step_invariant_and_reason() {
    let (mut observed, desired) = alone();
    observed.fresh = false;
    let step = Step::StopGroup {
        group: 0,
        uid: "s0".to_owned(),
    };
    let refusal = check(&observed, &desired, &step, &[]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "stop group 0, which is drained is not done (I6): what is there is not known yet"
    );
}

#[test]
fn two_disruptive_steps_of_a_group_are_not_taken_in_one_pass() {
    let (observed, desired) = alone();
    let recreate = Step::RecreateSet {
        group: 0,
        uid: "s0".to_owned(),
    };
    let restart = Step::RestartPod {
        component: Component::Group(0),
        pod: "a-broker-0-0".to_owned(),
        uid: "p00".to_owned(),
        ordinal: 0,
        why: RestartReason::TemplateChanged,
    };
    assert!(check(&observed, &desired, &restart, &[]).is_ok());
    let second = check(&observed, &desired, &restart, &[recreate]).unwrap_err();
    assert_eq!(second.invariant, Invariant::I4);
    let label = Step::CopyMetadata { from: 1, to: 0 };
    assert!(check(&observed, &desired, &restart, &[label]).is_ok());
}
