//! Controller headers in the text forms of the Java classes.

use super::{
    AlterSyncStateSet, ApplyBrokerId, CleanControllerBrokerData, ControllerHeartbeat, DecodeHeader,
    ElectMaster, EncodeHeader, FieldError, GetControllerMetadataResponse, broker_ids_to_clean,
};
use crate::{
    body::{BrokerReplicasInfo, SyncStateSet},
    remoting::ExtFields,
};

fn fields(pairs: &[(&'static str, &'static str)]) -> ExtFields<'static> {
    let mut ext = ExtFields::new();
    for (key, value) in pairs {
        ext.push(*key, *value);
    }
    ext
}

#[test]
fn mqadmins_election_without_an_id_means_whoever_fits() {
    let ext = fields(&[("clusterName", "c"), ("brokerName", "b")]);
    let header = ElectMaster::decode(&ext).unwrap();
    assert_eq!((header.broker_id, header.designate_elect), (-1, false));
    assert_eq!(header.acknowledge_data_loss, None);
    let ext = fields(&[
        ("brokerId", "2"),
        ("designateElect", "TRUE"),
        ("invokeTime", "1"),
    ]);
    let header = ElectMaster::decode(&ext).unwrap();
    assert_eq!((header.broker_id, header.designate_elect), (2, true));
    assert_eq!((&*header.cluster_name, header.invoke_time), ("", 1));
}

#[test]
fn a_set_change_names_what_is_missing() {
    let ext = fields(&[("brokerName", "b"), ("masterBrokerId", "1")]);
    let error = AlterSyncStateSet::decode(&ext);
    assert_eq!(error, Err(FieldError::Missing("masterEpoch")));
}

#[test]
fn a_heartbeat_of_java_has_nothing_of_ours_and_may_lack_its_id() {
    let ext = fields(&[
        ("clusterName", "c"),
        ("brokerAddr", "10.0.0.1:10911"),
        ("brokerName", "b"),
        ("epoch", "3"),
        ("maxOffset", "-1"),
        ("confirmOffset", "0"),
        ("heartbeatTimeoutMills", "-5"),
        ("electionPriority", "2147483647"),
    ]);
    let header = ControllerHeartbeat::decode(&ext).unwrap();
    assert_eq!((header.broker_id, header.incarnation), (None, None));
    assert_eq!(header.max_offset, Some(-1));
    let empty = ExtFields::new();
    assert_eq!(
        ControllerHeartbeat::decode(&empty).unwrap().broker_name,
        None
    );
}

#[test]
fn a_header_of_ours_survives_and_leaves_out_what_is_not_set() {
    let ext = fields(&[
        ("brokerName", "b"),
        ("brokerId", "1"),
        ("rmqIncarnation", "7"),
    ]);
    let header = ControllerHeartbeat::decode(&ext).unwrap();
    let mut written = ExtFields::new();
    header.encode(&mut written);
    assert_eq!(written.iter().count(), 3);
    assert_eq!(ControllerHeartbeat::decode(&written), Ok(header));
}

#[test]
fn an_answer_about_the_quorum_has_javas_fields() {
    let ext = fields(&[
        ("group", "g"),
        ("controllerLeaderId", "n0"),
        ("controllerLeaderAddress", "h:9878"),
        ("isLeader", "true"),
        ("peers", "n0:h:9878;n1:i:9878"),
    ]);
    let header = GetControllerMetadataResponse::decode(&ext).unwrap();
    let mut written = ExtFields::new();
    header.encode(&mut written);
    let pairs: Vec<_> = written.iter().collect();
    assert_eq!(pairs, ext.iter().collect::<Vec<_>>());
}

#[test]
fn an_id_is_applied_with_its_check_code() {
    let ext = fields(&[
        ("clusterName", "c"),
        ("brokerName", "b"),
        ("appliedBrokerId", "1"),
        ("registerCheckCode", "10.0.0.1:10911;1700000000000"),
    ]);
    let header = ApplyBrokerId::decode(&ext).unwrap();
    assert_eq!(header.register_check_code, "10.0.0.1:10911;1700000000000");
}

#[test]
fn ids_to_clean_are_a_list_with_semicolons_or_refused() {
    let ext = fields(&[("brokerName", "b"), ("brokerControllerIdsToClean", "1;2")]);
    let header = CleanControllerBrokerData::decode(&ext).unwrap();
    assert!(!header.is_clean_living_broker);
    let text = header.broker_controller_ids_to_clean.unwrap();
    assert_eq!(broker_ids_to_clean(&text), Some(vec![1, 2]));
    assert_eq!(broker_ids_to_clean(" 3 ; "), Some(vec![3]));
    assert_eq!(broker_ids_to_clean(""), Some(vec![]));
    for bad in ["x", "1;-2", "1,2", "99999999999999999999"] {
        assert_eq!(broker_ids_to_clean(bad), None, "{bad}");
    }
}

#[test]
fn a_set_and_the_replicas_have_javas_text() {
    let set = SyncStateSet {
        sync_state_set: [1, 2].into(),
        sync_state_set_epoch: 1,
    };
    let text = br#"{"syncStateSet":[1,2],"syncStateSetEpoch":1}"#;
    assert_eq!(set.to_json(), text);
    assert_eq!(SyncStateSet::from_json(text).unwrap(), set);
    let text = concat!(
        r#"{"replicasInfoTable":{"b":{"inSyncReplicas":[{"alive":true,"brokerAddress":"h:1","#,
        r#""brokerId":1,"brokerName":"b"}],"masterAddress":"h:1","masterBrokerId":1,"masterEpoch":2,"#,
        r#""notInSyncReplicas":[],"syncStateSetEpoch":3}}}"#
    );
    let read = BrokerReplicasInfo::from_json(text.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(read.to_json()).unwrap(), text);
}
