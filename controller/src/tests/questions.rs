//! Questions and configuration, and bad input.

use rmq_protocol::{
    body::{BrokerReplicasInfo, SyncStateSet},
    header::{DecodeHeader, GetControllerMetadataResponse, GetReplicaInfo, GetReplicaInfoResponse},
    remoting::{Command, request_code, response_code},
};

use super::rig::{FakeBroker, GROUP, Rig, WITHIN, elect};

fn replica_info(group: &'static str) -> Command {
    let header = GetReplicaInfo {
        broker_name: group.into(),
    };
    Command::request(request_code::CONTROLLER_GET_REPLICA_INFO).with_header(&header)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_sets_and_members_are_shown() {
    let rig = Rig::start(3, &[]);
    assert_eq!(rig.ask(replica_info("nobody")).await.code, 2008);
    let master = FakeBroker::register(&rig, 1).await;
    let _replica = FakeBroker::register(&rig, 2).await;
    assert_eq!(rig.ask(elect(1, false, None)).await.code, 0);
    master.beat_until(&rig, true).await;
    let answer = rig.ask(replica_info(GROUP)).await;
    let header = GetReplicaInfoResponse::decode(&answer.ext).unwrap();
    assert_eq!(
        (header.master_broker_id, header.master_epoch),
        (Some(1), Some(1))
    );
    let set = SyncStateSet::from_json(&answer.body).unwrap();
    assert_eq!(set.sync_state_set.into_iter().collect::<Vec<_>>(), [1]);
    let ask = Command::request(request_code::CONTROLLER_GET_SYNC_STATE_DATA)
        .with_body(format!("[\"{GROUP}\",\"nobody\"]"));
    let info = BrokerReplicasInfo::from_json(&rig.ask(ask).await.body).unwrap();
    let group = &info.replicas_info_table[GROUP];
    assert_eq!(info.replicas_info_table.len(), 1);
    assert_eq!(
        (
            group.in_sync_replicas.len(),
            group.not_in_sync_replicas.len()
        ),
        (1, 1)
    );
    assert!(group.in_sync_replicas[0].alive && !group.not_in_sync_replicas[0].alive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_controller_says_who_leads_and_who_there_is() {
    let rig = Rig::start(3, &[]);
    let leader = rig.leader().await;
    // A write that a majority has: the leader is known to at least one follower by then.
    let _broker = FakeBroker::register(&rig, 1).await;
    let ask = Command::request(request_code::CONTROLLER_GET_METADATA_INFO);
    let answer = rig
        .client
        .call(&rig.address(leader), ask, WITHIN)
        .await
        .unwrap();
    let header = GetControllerMetadataResponse::decode(&answer.ext).unwrap();
    assert!(header.is_leader);
    assert_eq!(
        header.controller_leader_id,
        Some(format!("n{leader}").into())
    );
    assert_eq!(
        header.controller_leader_address,
        Some(rig.address(leader).into())
    );
    assert_eq!(header.peers.unwrap().split(';').count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_is_a_closed_list_that_is_checked_as_a_whole() {
    let rig = Rig::start(1, &[("replicationAck", "Quorum:2")]);
    let set = |text: &'static str| {
        Command::request(request_code::UPDATE_CONTROLLER_CONFIG).with_body(text)
    };
    assert_eq!(rig.ask(set("masterDetectMillis = 6000\n")).await.code, 0);
    assert_eq!(rig.ask(set("controllerStorePath = /\n")).await.code, 16);
    assert_eq!(rig.ask(set("masterLeaseMillis = 5900\n")).await.code, 29);
    assert_eq!(rig.ask(set("nonsense = 1\n")).await.code, 29);
    let get = Command::request(request_code::GET_CONTROLLER_CONFIG);
    let text = String::from_utf8(rig.ask(get).await.body.to_vec()).unwrap();
    for line in [
        "masterDetectMillis=6000",
        "replicationAck=Quorum:2",
        "masterLeaseMillis=3000",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_requests_are_refused_with_a_reason_and_change_nothing() {
    let rig = Rig::start(1, &[]);
    for code in [1001, 1002, 1003, 1004, 1006, 1012, 1013, 904] {
        let answer = rig.ask(Command::request(code)).await;
        assert!(
            matches!(answer.code, response_code::CONTROLLER_INVALID_REQUEST),
            "{code}: {} {:?}",
            answer.code,
            answer.remark
        );
        assert!(answer.remark.is_some());
    }
    for code in [1014, 1018, 10, 10_911] {
        assert_ne!(rig.ask(Command::request(code)).await.code, 0, "{code}");
    }
    let negative = elect(-7, true, None);
    assert_eq!(
        rig.ask(negative).await.code,
        response_code::CONTROLLER_INVALID_REQUEST
    );
}
