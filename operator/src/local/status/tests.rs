//! A survey in, a status and its columns out.

use super::*;
use crate::local::plan::{Placement, PortChoice, plan};
use rmq_admin::{AskError, BrokerRuntime, NameServerSight};

fn local_plan(groups: i32) -> LocalPlan {
    let text = format!(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n\
         spec: {{version: 0.1.0, nameServer: {{replicas: 1}}, brokers: {{groups: {groups}}}}}\n"
    );
    let placement = Placement {
        host: "127.0.0.1".parse().unwrap(),
        ports: PortChoice::Usual,
        data_dir: "/d".into(),
        program_version: "0.1.0".to_owned(),
    };
    plan(
        &rmq_operator_api::parse_manifest(&text).unwrap(),
        &placement,
    )
}

fn group(index: usize) -> GroupSight {
    GroupSight {
        cluster: "a".to_owned(),
        broker: format!("broker-{index}"),
        members: vec![MemberSight {
            id: 0,
            addr: format!("127.0.0.1:{}", 10911 + 10 * index),
            runtime: Ok(BrokerRuntime::default()),
        }],
        perm: Some(6),
        replication: None,
        epoch: None,
        missing_on: Vec::new(),
    }
}

fn survey(groups: Vec<GroupSight>) -> Survey {
    Survey {
        name_servers: vec![NameServerSight {
            addr: "127.0.0.1:9876".to_owned(),
            brokers: Ok(groups.len()),
        }],
        groups,
    }
}

fn status(survey: &Survey, plan: &LocalPlan) -> RocketMQClusterStatus {
    let facts = Facts {
        plan,
        not_ready: &[],
        now: Timestamp::UNIX_EPOCH,
    };
    cluster_status(survey, &facts)
}

fn dead() -> AskError {
    AskError::NoMaster {
        broker: "x".to_owned(),
    }
}

#[test]
fn a_cluster_whose_servers_say_that_all_is_well_is_ready() {
    let status = status(&survey(vec![group(0), group(1)]), &local_plan(2));
    assert_eq!(status.phase, Some(Phase::Ready));
    let groups = status.groups.clone().unwrap();
    assert_eq!((groups.summary.as_str(), groups.writable), ("2/2", 2));
    let endpoints = status.endpoints.clone().unwrap();
    assert_eq!(endpoints.name_server, "127.0.0.1:9876");
    assert_eq!(endpoints.brokers[1], "broker-1 127.0.0.1:10921");
    let columns = cluster_columns("a", Duration::from_secs(1), &status);
    let line = columns.rows[0].join(" ");
    assert!(line.starts_with("a True 2/2 2 "), "{line}");
    assert!(line.ends_with("0.1.0 Ready 1s"), "{line}");
}

#[test]
fn a_group_that_nobody_registered_counts_as_wanted_and_not_as_ready() {
    let status = status(&survey(vec![group(0)]), &local_plan(2));
    let groups = status.groups.unwrap();
    assert_eq!(groups.summary, "1/2");
    assert_eq!(groups.degraded, ["broker-1"]);
    assert_eq!(status.phase, Some(Phase::Degraded));
    let ready = &status.conditions[0];
    assert_eq!(
        (ready.type_.as_str(), ready.status.as_str()),
        ("Ready", "False")
    );
    assert_eq!(ready.reason, "GroupNotWritable");
}

#[test]
fn without_any_group_that_takes_sends_the_cluster_is_unavailable() {
    let mut wiped = group(0);
    wiped.perm = Some(4);
    let one = survey(vec![wiped]);
    assert_eq!(status(&one, &local_plan(1)).phase, Some(Phase::Unavailable));
}

#[test]
fn every_condition_has_a_reason_of_its_type() {
    let mut lost = survey(vec![group(0)]);
    lost.groups[0].missing_on.push("127.0.0.1:9876".to_owned());
    lost.name_servers[0].brokers = Err(dead());
    for survey in [lost, survey(Vec::new()), survey(vec![group(0)])] {
        for condition in status(&survey, &local_plan(1)).conditions {
            let kind = ConditionType::from_word(&condition.type_).unwrap();
            let reason = Reason::from_word(&condition.reason).unwrap();
            assert!(kind.reasons().contains(&reason), "{condition:?}");
        }
    }
}

#[test]
fn groups_are_shown_under_the_columns_of_their_kind() {
    let mut broken = group(1);
    broken.members[0].runtime = Err(dead());
    let called = |addr: &str| addr.ends_with(":10911").then(|| "broker-0-0".to_owned());
    let columns = group_columns(&[group(0), broken], Timestamp::UNIX_EPOCH, &called);
    assert_eq!(
        columns.head,
        [
            "CLUSTER", "BROKER", "MASTER", "EPOCH", "INSYNC", "READABLE", "WRITABLE", "LAG", "STEP"
        ]
    );
    assert_eq!(
        columns.rows[0].join(" "),
        "a broker-0 broker-0-0 0 1/1 1/1 true 0 Idle"
    );
    assert_eq!(
        columns.rows[1].join(" "),
        "a broker-1 127.0.0.1:10921 0 - 0/1 false 0 Idle"
    );
}

#[test]
fn a_group_says_why_it_takes_no_sends() {
    let why = |group: &GroupSight| {
        let status = group_status(group, Timestamp::UNIX_EPOCH, &|_| None);
        status.unwritable_reason.unwrap_or_default()
    };
    assert_eq!(why(&group(0)), "");
    let mut one = group(0);
    one.perm = None;
    assert_eq!(why(&one), "no NameServer says what clients may do there");
    one.members[0].runtime = Err(dead());
    assert_eq!(why(&one), "its master does not answer");
    one.members.clear();
    assert_eq!(why(&one), "it has no master");
}
