//! Pods as an API server gives them, and what is said of them.

use super::*;
use serde_json::{Value, json};

fn pod(status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "a-broker-3-0",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"controller-revision-hash": "r1", "rocketmq.rs/role": "master"},
            "annotations": {"rocketmq.rs/role-epoch": "4"},
        },
        "spec": {"containers": [], "nodeName": "n1"},
        "status": status,
    }))
    .unwrap()
}

fn seen(status: &Value, seconds: i64, warnings: &[(&str, &str)]) -> PodSeen {
    let warnings: Vec<_> = warnings
        .iter()
        .map(|(reason, message)| ((*reason).to_owned(), (*message).to_owned()))
        .collect();
    let created = Timestamp::from_millis(1_767_225_600_000);
    PodSeen::of(&pod(status), &warnings, created.plus_millis(seconds * 1000))
}

fn reason(status: &Value, seconds: i64) -> Option<StuckReason> {
    seen(status, seconds, &[]).stuck.map(|stuck| stuck.reason)
}

fn container(state: &Value, last: &Value, restarts: i32) -> Value {
    json!({"containerStatuses": [{
        "name": "broker", "image": "", "imageID": "", "ready": false,
        "restartCount": restarts, "state": state, "lastState": last,
    }]})
}

#[test]
fn a_ready_pod_is_read_with_its_labels_and_is_not_stuck() {
    let pod = seen(
        &json!({"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z",
        }]}),
        3600,
        &[],
    );
    assert!(pod.ready && pod.is_healthy() && pod.stuck.is_none());
    assert_eq!(pod.ordinal, 0);
    assert_eq!(pod.ready_since.unwrap().since(pod.created_at), 60_000);
    assert_eq!(pod.revision.as_deref(), Some("r1"));
    assert_eq!(
        (pod.labels.role.as_deref(), pod.labels.epoch),
        (Some("master"), 4)
    );
    assert!(pod.is_outdated(Some("r2")) && !pod.is_outdated(Some("r1")));
    assert!(!pod.is_outdated(None));
}

#[test]
fn an_image_that_cannot_be_had_is_named_at_once() {
    for word in ["ImagePullBackOff", "ErrImagePull", "InvalidImageName"] {
        let status = container(&json!({"waiting": {"reason": word}}), &json!({}), 0);
        assert_eq!(reason(&status, 1), Some(StuckReason::ImagePull), "{word}");
    }
}

#[test]
fn a_crash_loop_is_told_apart_from_a_kill_for_memory() {
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let ended =
        |reason: &str, code: i32| json!({"terminated": {"reason": reason, "exitCode": code}});
    let crash = container(&waiting, &ended("Error", 1), 3);
    let stuck = seen(&crash, 5, &[]).stuck.unwrap();
    assert_eq!(stuck.reason, StuckReason::CrashLoop);
    assert_eq!(stuck.message, "its container ended with 1");
    let oom = container(&waiting, &ended("OOMKilled", 137), 3);
    assert_eq!(reason(&oom, 5), Some(StuckReason::OomKilled));
    let first = container(&ended("OOMKilled", 137), &json!({}), 0);
    assert_eq!(reason(&first, 5), Some(StuckReason::OomKilled));
    let once = container(&ended("Error", 1), &json!({}), 0);
    assert_eq!(reason(&once, 5), None);
}

#[test]
fn a_pod_that_no_node_takes_is_named_after_thirty_seconds() {
    let status = json!({"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }]});
    assert_eq!(reason(&status, 29), None);
    let stuck = seen(&status, 30, &[]).stuck.unwrap();
    assert_eq!(stuck.reason, StuckReason::Unschedulable);
    assert!(stuck.message.contains("0/3 nodes"));
    let lost = json!({"conditions": [{
        "type": "PodScheduled", "status": "False",
        "message": "persistentvolumeclaim \"data-a\" not found",
    }]});
    assert_eq!(reason(&lost, 30), Some(StuckReason::VolumeLost));
}

#[test]
fn a_disk_that_another_node_holds_is_named_from_the_events() {
    let status = container(
        &json!({"waiting": {"reason": "ContainerCreating"}}),
        &json!({}),
        0,
    );
    assert_eq!(reason(&status, 60), None);
    let warnings = [("FailedAttachVolume", "Multi-Attach error for volume")];
    let stuck = seen(&status, 60, &warnings).stuck.unwrap();
    assert_eq!(stuck.reason, StuckReason::VolumeAttach);
    assert!(stuck.message.contains("Multi-Attach"));
}

#[test]
fn a_node_that_does_not_answer_and_a_pod_that_never_gets_ready_are_named() {
    let unknown = json!({"conditions": [{
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
    }]});
    assert_eq!(reason(&unknown, 60), Some(StuckReason::NodeLost));
    let running = container(&json!({"running": {}}), &json!({}), 0);
    assert_eq!(reason(&running, 599), None);
    assert_eq!(reason(&running, 600), Some(StuckReason::NotReady));
}
