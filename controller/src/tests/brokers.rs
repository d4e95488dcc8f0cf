//! Onboarding, sets and cleaning, with the codes of the Java controller.

use rmq_protocol::{
    body::SyncStateSet,
    header::{
        AlterSyncStateSetResponse, CleanControllerBrokerData, DecodeHeader, ElectMasterResponse,
        GetNextBrokerId, GetNextBrokerIdResponse, RegisterBrokerToControllerResponse,
    },
    remoting::{Command, request_code},
};

use super::rig::{FakeBroker, GROUP, Rig, alter, apply_id, elect, register};

fn next_id() -> Command {
    let header = GetNextBrokerId {
        cluster_name: "c".into(),
        broker_name: GROUP.into(),
    };
    Command::request(request_code::CONTROLLER_GET_NEXT_BROKER_ID).with_header(&header)
}

async fn next_broker_id(rig: &Rig) -> Option<i64> {
    let answer = rig.ask(next_id()).await;
    GetNextBrokerIdResponse::decode(&answer.ext)
        .unwrap()
        .next_broker_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_takes_an_id_registers_and_becomes_the_first_master() {
    let rig = Rig::start(3, &[]);
    assert_eq!(next_broker_id(&rig).await, Some(1));
    // The first of a group asks for exactly 1; an id is taken again with the same code only.
    assert_eq!(rig.ask(apply_id(5, "a:1;1")).await.code, 2014);
    assert_eq!(rig.ask(register(1)).await.code, 2010);
    let broker = FakeBroker::register(&rig, 1).await;
    assert_eq!(rig.ask(apply_id(1, "127.0.0.1:20001;1")).await.code, 0);
    assert_eq!(rig.ask(apply_id(1, "other;1")).await.code, 2014);
    assert_eq!(next_broker_id(&rig).await, Some(2));
    broker.beat_until(&rig, false).await;
    let elected = rig.ask(elect(1, false, None)).await;
    assert_eq!(elected.code, 0, "{:?}", elected.remark);
    let header = ElectMasterResponse::decode(&elected.ext).unwrap();
    assert_eq!(
        (header.master_broker_id, header.master_epoch),
        (Some(1), Some(1))
    );
    assert_eq!(header.master_address.as_deref(), Some("127.0.0.1:20001"));
    broker.beat_until(&rig, true).await;
    // It stays, with the full header.
    let stays = rig.ask(elect(1, false, None)).await;
    assert_eq!(stays.code, 2011);
    let header = ElectMasterResponse::decode(&stays.ext).unwrap();
    assert_eq!(header.master_broker_id, Some(1));
    let registered = rig.ask(register(1)).await;
    let header = RegisterBrokerToControllerResponse::decode(&registered.ext).unwrap();
    assert_eq!(
        (header.master_broker_id, header.master_epoch),
        (Some(1), Some(1))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_changes_in_order_and_every_refusal_has_javas_code() {
    let rig = Rig::start(1, &[]);
    let master = FakeBroker::register(&rig, 1).await;
    let replica = FakeBroker::register(&rig, 2).await;
    assert_eq!(rig.ask(alter(1, 1, &[1, 2], 1)).await.code, 2002);
    assert_eq!(rig.ask(elect(1, false, None)).await.code, 0);
    master.beat_until(&rig, true).await;
    replica.beat_until(&rig, false).await;
    assert_eq!(rig.ask(alter(2, 1, &[1, 2], 1)).await.code, 2002);
    assert_eq!(rig.ask(alter(1, 7, &[1, 2], 1)).await.code, 2000);
    assert_eq!(rig.ask(alter(1, 1, &[1, 2], 7)).await.code, 2001);
    assert_eq!(rig.ask(alter(1, 1, &[1, 9], 1)).await.code, 2003);
    assert_eq!(rig.ask(alter(1, 1, &[1], 1)).await.code, 2013);
    let altered = rig.ask(alter(1, 1, &[1, 2], 1)).await;
    assert_eq!(altered.code, 0, "{:?}", altered.remark);
    let header = AlterSyncStateSetResponse::decode(&altered.ext).unwrap();
    assert_eq!(header.new_sync_state_set_epoch, 2);
    let set = SyncStateSet::from_json(&altered.body).unwrap();
    assert_eq!(set.sync_state_set.into_iter().collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_broker_is_not_cleaned_and_numbers_must_be_numbers() {
    let rig = Rig::start(1, &[]);
    let broker = FakeBroker::register(&rig, 1).await;
    broker.beat_until(&rig, false).await;
    let clean = |ids: &'static str| {
        let header = CleanControllerBrokerData {
            cluster_name: Some("c".into()),
            broker_name: GROUP.into(),
            broker_controller_ids_to_clean: Some(ids.into()),
            is_clean_living_broker: false,
            invoke_time: 0,
        };
        Command::request(request_code::CLEAN_BROKER_DATA).with_header(&header)
    };
    assert_eq!(rig.ask(clean("x")).await.code, 2009);
    assert_eq!(rig.ask(clean("1")).await.code, 2009);
    assert_eq!(rig.ask(clean("")).await.code, 0);
    // An id is never given twice.
    assert_eq!(next_broker_id(&rig).await, Some(2));
}
