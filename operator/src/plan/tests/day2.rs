//! One test for each thing that is done to a running cluster.

use super::*;
use crate::observe::{Answer, ObjectsState, VolumePhase};
use rmq_operator_api::DrainPhase;

fn running(spec: &str) -> (World, Desired) {
    let desired = desired(spec);
    let mut world = World::new();
    run(&mut world, &desired);
    (world, desired)
}

fn waits(plan: &Plan, kind: WaitKind) -> Vec<&str> {
    let of_kind = plan.waits.iter().filter(|wait| wait.kind == kind);
    of_kind.map(|wait| wait.reason.as_str()).collect()
}

#[test]
fn a_new_cluster_is_made_and_every_group_is_opened_once() {
    let desired = desired("brokers: {groups: 3}");
    let mut world = World::new();
    let steps = run(&mut world, &desired);
    assert_eq!(steps.first(), Some(&Step::AddFinalizer));
    let opened = steps.iter().filter(|s| matches!(s, Step::OpenGroup { .. }));
    assert_eq!(opened.count(), 3);
    assert!(
        world
            .observed
            .groups
            .values()
            .all(crate::observe::GroupSeen::is_writable)
    );
    assert!(restarts(&steps).is_empty());
}

#[test]
fn no_broker_is_made_before_a_name_server_is_ready() {
    let desired = desired("brokers: {groups: 1}");
    let mut world = World::new();
    world.settle(&desired, 0);
    let first = plan(&world.observed, &desired, world.now);
    assert!(!first.steps.contains(&Step::Apply {
        component: Component::Group(0)
    }));
    assert!(waits(&first, WaitKind::Provisioning)[0].contains("no NameServer is ready"));
}

#[test]
fn a_paused_cluster_and_an_unknown_one_are_left_alone() {
    let (mut world, _) = running("brokers: {groups: 1}");
    let paused = desired("operation: {paused: true}, brokers: {groups: 4}");
    world.settle(&paused, 0);
    assert!(plan(&world.observed, &paused, world.now).is_idle());
    let more = desired("brokers: {groups: 4}");
    world.observed.fresh = false;
    assert!(plan(&world.observed, &more, world.now).steps.is_empty());
}

#[test]
fn live_keys_are_pushed_without_a_restart_and_go_back_when_removed() {
    let (mut world, _) = running("brokers: {groups: 2}");
    let set =
        desired("brokers: {groups: 2, config: {fileReservedTime: \"48\", traceOn: \"true\"}}");
    let steps = run(&mut world, &set);
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps.iter().all(|step| matches!(step,
        Step::PushBrokerConfig { keys, .. } if keys.len() == 1 && keys["fileReservedTime"] == "48")));
    let unset = desired("brokers: {groups: 2}");
    let steps = run(&mut world, &unset);
    assert!(matches!(&steps[0],
        Step::PushBrokerConfig { keys, .. } if keys["fileReservedTime"] == "72"));
}

#[test]
fn a_key_that_a_broker_refused_is_not_sent_again_and_the_status_says_so() {
    let (mut world, _) = running("brokers: {groups: 1}");
    let set = desired("brokers: {groups: 1, config: {fileReservedTime: \"0\"}}");
    world.settle(&set, 0);
    let group = world.observed.groups.get_mut(&0).unwrap();
    let Some(Answer::Known(broker)) = group.brokers.get_mut(&0) else {
        unreachable!("it answers");
    };
    broker
        .rejected
        .insert("fileReservedTime".to_owned(), "0".to_owned());
    let plan = plan(&world.observed, &set, world.now);
    assert!(plan.steps.is_empty(), "{plan:?}");
    assert_eq!(
        waits(&plan, WaitKind::Config),
        ["member 0 does not take fileReservedTime"]
    );
}

#[test]
fn name_servers_grow_without_a_restart_of_a_broker() {
    let (mut world, _) = running("nameServer: {replicas: 3}, brokers: {groups: 2}");
    let five = desired("nameServer: {replicas: 5}, brokers: {groups: 2}");
    let steps = run(&mut world, &five);
    assert!(restarts(&steps).is_empty());
    for view in world.observed.name_servers.views.values() {
        assert_eq!(view.known().unwrap().brokers.len(), 2);
    }
}

#[test]
fn a_name_server_goes_only_after_every_broker_has_left_it() {
    let (mut world, five) = running("nameServer: {replicas: 5}, brokers: {groups: 2}");
    // Brokers keep the list they were started or told with.
    for group in [0, 1] {
        world.apply(
            &Step::PushBrokerConfig {
                group,
                ordinal: 0,
                keys: [("namesrvAddr".to_owned(), five.name_server_list())].into(),
            },
            &five,
        );
    }
    let three = desired("nameServer: {replicas: 3}, brokers: {groups: 2}");
    world.settle(&three, 0);
    let first = plan(&world.observed, &three, world.now);
    assert!(!first.steps.contains(&Step::Apply {
        component: Component::NameServers
    }));
    let pushed = first
        .steps
        .iter()
        .filter(|s| matches!(s, Step::PushBrokerConfig { .. }));
    assert_eq!(pushed.count(), 2);
    let steps = run(&mut world, &three);
    assert!(steps.contains(&Step::Apply {
        component: Component::NameServers
    }));
    assert_eq!(world.observed.name_servers.pods.len(), 3);
    assert!(restarts(&steps).is_empty());
}

#[test]
fn a_group_that_is_added_stays_read_only_until_it_has_every_topic() {
    let (mut world, _) = running("brokers: {groups: 2}");
    for group in [0, 1] {
        world.metadata.insert(group, [11, 12, 13].into());
    }
    let three = desired("brokers: {groups: 3}");
    let steps = run(&mut world, &three);
    let copy = Step::CopyMetadata { from: 0, to: 2 };
    let open = Step::OpenGroup {
        group: 2,
        ordinal: 0,
    };
    let at = |wanted: &Step| steps.iter().position(|step| step == wanted);
    assert!(at(&copy).unwrap() < at(&open).unwrap());
    assert_eq!(world.metadata[&2], world.metadata[&0]);
}

#[test]
fn a_topic_made_after_the_copy_keeps_a_group_closed_although_an_old_plan_opens_it() {
    let (mut world, _) = running("brokers: {groups: 1}");
    world.metadata.insert(0, [11].into());
    let two = desired("brokers: {groups: 2}");
    let open = Step::OpenGroup {
        group: 1,
        ordinal: 0,
    };
    let said = |world: &World, step| guard::check(&world.observed, &two, step, &[]);
    for _ in 0..20 {
        world.settle(&two, 5_000);
        let steps = plan(&world.observed, &two, world.now).steps;
        if steps.contains(&open) {
            break;
        }
        for step in &steps {
            world.apply(step, &two);
        }
    }
    assert_eq!(said(&world, &open), Ok(()));
    world.metadata.entry(0).or_default().insert(12);
    world.settle(&two, 0);
    assert!(open.needs_fresh_look());
    let refusal = said(&world, &open).unwrap_err();
    assert_eq!(refusal.invariant, guard::Invariant::I18, "{refusal}");
    run(&mut world, &two);
    assert!(world.observed.groups[&1].is_writable());
    assert_eq!(world.metadata[&1], [11, 12].into());
}

#[test]
fn a_group_waits_when_nobody_answers_from_whom_topics_could_be_copied() {
    let (mut world, _) = running("brokers: {groups: 1}");
    world.metadata.insert(0, [11].into());
    world.silent.insert(0);
    let two = desired("brokers: {groups: 2}");
    let (steps, last) = pass(&mut world, &two, 6);
    assert!(!steps.iter().any(|s| matches!(s, Step::OpenGroup { .. })));
    assert!(waits(&last, WaitKind::Opening)[0].contains("no open group answers"));
    world.silent.clear();
    run(&mut world, &two);
    assert!(world.observed.groups[&1].is_writable());
}

#[test]
fn a_group_with_messages_left_is_closed_and_stays() {
    let (mut world, _) = running("brokers: {groups: 2}");
    world.backlog.insert(1, 1234);
    let one = desired("brokers: {groups: 1}");
    let (steps, last) = pass(&mut world, &one, 8);
    let closed = steps
        .iter()
        .filter(|s| matches!(s, Step::CloseGroup { group: 1, .. }));
    assert_eq!(closed.count(), 1);
    assert!(last.steps.is_empty());
    assert_eq!(
        waits(&last, WaitKind::Drain),
        ["1300 messages are not consumed"]
    );
    assert!(world.observed.groups[&1].has_set());
    world.backlog.insert(1, 0);
    run(&mut world, &one);
    assert!(!world.observed.groups.contains_key(&1));
}

#[test]
fn a_removal_is_taken_back_by_adding_the_group_again() {
    let (mut world, two) = running("brokers: {groups: 2}");
    world.backlog.insert(1, 5);
    let one = desired("brokers: {groups: 1}");
    pass(&mut world, &one, 4);
    assert!(!world.observed.groups[&1].is_writable());
    let steps = run(&mut world, &two);
    assert!(steps.contains(&Step::OpenGroup {
        group: 1,
        ordinal: 0
    }));
    assert!(restarts(&steps).is_empty());
    assert_eq!(world.observed.groups[&1].drain_phase, None);
}

#[test]
fn a_group_is_marked_drained_before_its_pods_go_and_nothing_else_is_needed_after() {
    let (mut world, _) = running("brokers: {groups: 2}");
    let one = desired("brokers: {groups: 1}");
    let steps = run(&mut world, &one);
    let kinds: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        kinds,
        [
            "apply objects of group 1",
            "let clients send to group 1 no more",
            "note that group 1 is drained",
            "stop group 1, which is drained",
            "remove what is left of group 1",
        ]
    );
}

#[test]
fn disks_of_a_removed_group_go_only_by_policy() {
    let (mut world, _) = running("brokers: {groups: 2}");
    let keep = desired("brokers: {groups: 1}");
    let steps = run(&mut world, &keep);
    assert!(!steps.iter().any(|s| matches!(s, Step::DeleteVolume { .. })));
    let (mut world, _) = running("brokers: {groups: 2}");
    let delete = desired("brokers: {groups: 1, storage: {retainPolicy: Delete}}");
    let steps = run(&mut world, &delete);
    let deleted = steps
        .iter()
        .position(|s| matches!(s, Step::DeleteVolume { .. }));
    let removed = steps
        .iter()
        .position(|s| matches!(s, Step::RemoveGroup { .. }));
    assert!(deleted.unwrap() < removed.unwrap());
}

#[test]
fn a_silent_group_is_never_taken_for_an_empty_one() {
    let (mut world, _) = running("brokers: {groups: 2}");
    world.silent.insert(1);
    let one = desired("brokers: {groups: 1}");
    let (steps, last) = pass(&mut world, &one, 20);
    assert!(!steps.iter().any(|s| matches!(s, Step::StopGroup { .. })));
    assert!(waits(&last, WaitKind::Drain)[0].contains("does not answer"));
}

#[test]
fn force_removes_a_group_with_messages_left() {
    let (mut world, _) = running("brokers: {groups: 2}");
    world.backlog.insert(1, 1000);
    let one = desired("brokers: {groups: 1}, scaleIn: {policy: Force}");
    run(&mut world, &one);
    assert!(!world.observed.groups.contains_key(&1));
}

#[test]
fn a_roll_goes_name_servers_first_then_one_group_after_the_canary_has_soaked() {
    let (mut world, desired) = running("nameServer: {replicas: 3}, brokers: {groups: 3}");
    let began = world.now;
    world.template = "t2".to_owned();
    let steps = run(&mut world, &desired);
    assert_eq!(
        restarts(&steps),
        [
            "a-namesrv-2",
            "a-namesrv-1",
            "a-namesrv-0",
            "a-broker-0-0",
            "a-broker-1-0",
            "a-broker-2-0"
        ]
    );
    assert!(world.now.since(began) >= 2 * 60_000);
}

#[test]
fn a_roll_stops_at_a_canary_that_does_not_run_and_goes_on_when_the_template_is_mended() {
    let (mut world, desired) = running("nameServer: {replicas: 1}, brokers: {groups: 3}");
    world.template = "bad".to_owned();
    world.bad_template = Some("bad".to_owned());
    let (steps, last) = pass(&mut world, &desired, 30);
    assert_eq!(restarts(&steps), ["a-namesrv-0"]);
    assert!(!last.waits.is_empty());
    assert!(
        world
            .observed
            .groups
            .values()
            .all(|group| group.unready() == 0)
    );
    world.template = "t3".to_owned();
    let steps = run(&mut world, &desired);
    assert_eq!(restarts(&steps)[0], "a-namesrv-0");
    assert_eq!(restarts(&steps).len(), 4);
}

#[test]
fn a_broker_that_does_not_run_with_the_new_template_keeps_the_others_on_the_old_one() {
    let external = "nameServer: {externalRef: [\"ns:9876\"]}, brokers: {groups: 3}";
    let mut desired = desired(external);
    desired.name_servers.replicas = 0;
    desired.name_servers.addresses = vec!["ns:9876".to_owned()];
    let mut world = World::new();
    run(&mut world, &desired);
    world.template = "bad".to_owned();
    world.bad_template = Some("bad".to_owned());
    let (steps, last) = pass(&mut world, &desired, 60);
    assert_eq!(restarts(&steps), ["a-broker-0-0"]);
    let halted = waits(&last, WaitKind::RolloutHalted);
    assert!(halted[0].contains("a-broker-0-0 does not run"), "{last:?}");
    assert!(halted[0].contains("CrashLoop"));
    world.template = "t1".to_owned();
    let steps = run(&mut world, &desired);
    assert_eq!(restarts(&steps), ["a-broker-0-0"]);
}

#[test]
fn a_broker_that_does_not_answer_is_not_rolled() {
    let (mut world, desired) = running("nameServer: {replicas: 1}, brokers: {groups: 2}");
    world.silent.insert(0);
    world.template = "t2".to_owned();
    let (steps, last) = pass(&mut world, &desired, 60);
    assert!(!restarts(&steps).contains(&"a-broker-0-0"), "{steps:?}");
    let said = waits(&last, WaitKind::Rollout);
    assert!(
        said.iter()
            .any(|why| why.contains("does not say whether it is safe")),
        "{said:?}"
    );
}

#[test]
fn pods_are_left_to_the_user_when_the_strategy_says_so() {
    let spec = "nameServer: {replicas: 1}, brokers: {groups: 1}, updateStrategy: {type: OnDelete}";
    let (mut world, desired) = running(spec);
    world.template = "t2".to_owned();
    let (steps, last) = pass(&mut world, &desired, 5);
    assert!(restarts(&steps).is_empty());
    assert!(waits(&last, WaitKind::Approval)[0].contains("OnDelete"));
}

#[test]
fn a_disk_grows_and_the_set_is_made_anew_over_its_pods() {
    let (mut world, _) = running("brokers: {groups: 1, storage: {size: 20Gi}}");
    let uid = world.observed.groups[&0].pods[0].uid.clone();
    let larger = desired("brokers: {groups: 1, storage: {size: 30Gi}}");
    let steps = run(&mut world, &larger);
    let kinds: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        kinds,
        [
            "grow volume data-a-broker-0-0 to 32212254720 bytes",
            "make the StatefulSet of group 0 anew for the larger volumes",
            "apply objects of group 0",
        ]
    );
    let group = &world.observed.groups[&0];
    assert_eq!(group.set.as_ref().unwrap().volume_bytes, 30 << 30);
    assert_eq!(group.pods[0].uid, uid, "no pod was restarted");
}

#[test]
fn a_class_that_cannot_grow_is_said_and_blocks_nothing_else() {
    let (mut world, _) = running("brokers: {groups: 1, storage: {size: 20Gi}}");
    let group = world.observed.groups.get_mut(&0).unwrap();
    group.volumes.get_mut(&0).unwrap().expandable = Some(false);
    let larger = desired("brokers: {groups: 1, storage: {size: 30Gi}}");
    let (steps, last) = pass(&mut world, &larger, 6);
    assert!(!steps.iter().any(|s| matches!(s, Step::GrowVolume { .. })));
    assert!(waits(&last, WaitKind::Volume)[0].contains("cannot grow it"));
    assert!(last.steps.is_empty());
    assert_eq!(world.observed.groups[&0].objects, ObjectsState::Same);
}

#[test]
fn a_full_disk_grows_by_itself_up_to_its_limit() {
    let spec = "brokers: {groups: 1, storage: {size: 20Gi, \
                autoExpand: {step: 15Gi, limit: 40Gi}}}";
    let (mut world, desired) = running(spec);
    let mut sizes = Vec::new();
    for _ in 0..6 {
        world.settle(&desired, 5_000);
        let group = world.observed.groups.get_mut(&0).unwrap();
        if let Some(Answer::Known(broker)) = group.brokers.get_mut(&0) {
            broker.disk_used_permille = 810;
        }
        for step in plan(&world.observed, &desired, world.now).steps {
            if let Step::GrowVolume { bytes, .. } = &step {
                sizes.push(*bytes >> 30);
            }
            world.apply(&step, &desired);
        }
    }
    assert_eq!(sizes, [35, 40]);
}

#[test]
fn the_only_copy_is_given_up_by_the_user_alone() {
    let (mut world, desired) = running("brokers: {groups: 2}");
    for group in [0, 1] {
        world.metadata.insert(group, [7].into());
    }
    let group = world.observed.groups.get_mut(&1).unwrap();
    group.volumes.get_mut(&0).unwrap().phase = VolumePhase::Lost;
    let (steps, last) = pass(&mut world, &desired, 4);
    assert!(steps.is_empty(), "{steps:?}");
    assert!(waits(&last, WaitKind::Volume)[0].contains("rocketmq.rs/replace=pvc"));
    world.observed.groups.get_mut(&1).unwrap().pods[0].replace_asked = true;
    let steps = run(&mut world, &desired);
    assert!(matches!(steps[0], Step::ReplaceVolume { group: 1, .. }));
    // The new disk is empty: its topics come from the other group before it is opened.
    assert!(steps.contains(&Step::CopyMetadata { from: 0, to: 1 }));
    assert!(steps.contains(&Step::OpenGroup {
        group: 1,
        ordinal: 0
    }));
}

#[test]
fn a_hibernated_cluster_has_no_pods_and_wakes_with_its_disks() {
    let (mut world, awake) = running("brokers: {groups: 2}");
    let asleep = desired("brokers: {groups: 2}, operation: {hibernated: true}");
    run(&mut world, &asleep);
    assert!(
        world
            .observed
            .groups
            .values()
            .all(|g| g.pods.is_empty() && !g.volumes.is_empty())
    );
    assert!(world.observed.name_servers.pods.is_empty());
    let steps = run(&mut world, &awake);
    assert!(!steps.iter().any(|s| matches!(s, Step::CopyMetadata { .. })));
    assert!(
        world
            .observed
            .groups
            .values()
            .all(crate::observe::GroupSeen::is_writable)
    );
}

#[test]
fn a_protected_deletion_waits_and_the_cluster_is_looked_after_meanwhile() {
    let (mut world, mut desired) = running("brokers: {groups: 1}");
    desired.deleting = true;
    desired.deletion_blocked = true;
    world.template = "t2".to_owned();
    let (steps, last) = pass(&mut world, &desired, 40);
    assert!(!steps.contains(&Step::RemoveFinalizer));
    assert!(waits(&last, WaitKind::Deletion)[0].contains("rocketmq.rs/allow-deletion"));
    assert!(restarts(&steps).contains(&"a-broker-0-0"));
}

#[test]
fn deletion_keeps_disks_unless_the_policy_says_otherwise() {
    for (delete, deleted) in [(false, 0), (true, 2)] {
        let (mut world, mut desired) = running("brokers: {groups: 2}");
        desired.deleting = true;
        desired.delete_volumes_with_cluster = delete;
        let steps = run(&mut world, &desired);
        let volumes = steps
            .iter()
            .filter(|s| matches!(s, Step::DeleteVolume { .. }));
        assert_eq!(volumes.count(), deleted);
        assert_eq!(steps.last(), Some(&Step::RemoveFinalizer));
    }
}

#[test]
fn a_drained_group_whose_set_somebody_deleted_is_still_removed() {
    let (mut world, _) = running("brokers: {groups: 2}");
    let one = desired("brokers: {groups: 1}");
    pass(&mut world, &one, 3);
    let group = world.observed.groups.get_mut(&1).unwrap();
    assert_eq!(group.drain_phase, Some(DrainPhase::Drained));
    group.set = None;
    run(&mut world, &one);
    assert!(!world.observed.groups.contains_key(&1));
}

#[test]
fn a_group_that_never_took_a_message_is_removed_without_its_broker() {
    let (mut world, _) = running("brokers: {groups: 1}");
    let two = desired("brokers: {groups: 2}");
    world.silent.insert(1);
    pass(&mut world, &two, 3);
    let one = desired("brokers: {groups: 1}");
    run(&mut world, &one);
    assert!(!world.observed.groups.contains_key(&1));
}

#[test]
fn a_version_that_runs_everywhere_is_not_followed_by_an_older_one_but_a_canary_is_taken_back() {
    let (mut world, mut desired) = running("nameServer: {replicas: 1}, brokers: {groups: 2}");
    // A roll to 0.2.0 that stops at its canary can be taken back.
    let first = &mut world.observed.groups.get_mut(&0).unwrap().pods[0];
    first.version = Some("0.2.0".to_owned());
    assert!(plan(&world.observed, &desired, world.now).is_idle());
    // One that has come everywhere cannot.
    for group in world.observed.groups.values_mut() {
        group.pods[0].version = Some("0.2.0".to_owned());
    }
    let refused = plan(&world.observed, &desired, world.now);
    assert!(refused.steps.is_empty());
    assert!(waits(&refused, WaitKind::Approval)[0].contains("older than 0.2.0"));
    desired.version = "0.2.0".to_owned();
    assert!(plan(&world.observed, &desired, world.now).is_idle());
}

#[test]
fn no_kind_of_wait_is_without_an_end() {
    for kind in [
        WaitKind::Provisioning,
        WaitKind::Rollout,
        WaitKind::RolloutHalted,
        WaitKind::Approval,
        WaitKind::Drain,
        WaitKind::Opening,
        WaitKind::Volume,
        WaitKind::Scaling,
        WaitKind::Config,
        WaitKind::Deletion,
        WaitKind::Refused,
    ] {
        let late = kind.late_after_millis();
        assert!((60_000..=86_400_000).contains(&late), "{kind:?}");
    }
}
