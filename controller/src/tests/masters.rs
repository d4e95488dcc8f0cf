//! Leases, lost masters, planned elections, and a change of the controllers' leader.

use rmq_protocol::{
    header::{DecodeHeader, ElectMasterResponse},
    remoting::response_code,
};

use super::rig::{FakeBroker, Rig, WITHIN, alter, elect, eventually};

/// A group of two in one set; the first is master.
async fn pair(rig: &Rig) -> (FakeBroker, FakeBroker) {
    let master = FakeBroker::register(rig, 1).await;
    let replica = FakeBroker::register(rig, 2).await;
    assert_eq!(rig.ask(elect(1, false, None)).await.code, 0);
    master.beat_until(rig, true).await;
    replica.beat_until(rig, false).await;
    let altered = rig.ask(alter(1, 1, &[1, 2], 1)).await;
    assert_eq!(altered.code, 0, "{:?}", altered.remark);
    (master, replica)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_closes_its_connection_is_replaced_by_its_replica() {
    let rig = Rig::start(3, &[]);
    let (master, replica) = pair(&rig).await;
    let leader = rig.address(rig.leader().await);
    assert_eq!(master.beat(&leader, 0).await, Some(true));
    drop(master);
    // Its process is gone; the replica's next heartbeats find it elected.
    replica.beat_until(&rig, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_master_is_replaced_after_the_detection_time_though_connected() {
    let rig = Rig::start(
        1,
        &[("masterLeaseMillis", "200"), ("masterDetectMillis", "1200")],
    );
    let (master, replica) = pair(&rig).await;
    replica.beat_until(&rig, true).await;
    // It comes back as what it is now.
    master.beat_until(&rig, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_election_waits_until_the_old_master_has_no_lease() {
    let rig = Rig::start(
        1,
        &[("masterLeaseMillis", "200"), ("masterDetectMillis", "5000")],
    );
    let (master, replica) = pair(&rig).await;
    assert_eq!(
        rig.ask(elect(2, true, Some(9))).await.code,
        response_code::CONTROLLER_FENCED_MASTER_EPOCH
    );
    let leader = rig.address(0);
    let elected = rig.client.call(&leader, elect(2, true, Some(1)), WITHIN);
    let beats = async {
        loop {
            master.beat(&leader, 0).await;
            replica.beat(&leader, 0).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let elected = tokio::select! {
        elected = elected => elected.unwrap(),
        () = beats => unreachable!("beats never end"),
    };
    assert_eq!(elected.code, 0, "{:?}", elected.remark);
    let header = ElectMasterResponse::decode(&elected.ext).unwrap();
    assert_eq!(
        (header.master_broker_id, header.master_epoch),
        (Some(2), Some(2))
    );
    replica.beat_until(&rig, true).await;
    master.beat_until(&rig, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_leader_keeps_the_master_and_followers_say_who_leads() {
    let mut rig = Rig::start(3, &[]);
    let (master, replica) = pair(&rig).await;
    let first = rig.leader().await;
    rig.controllers[first].take().unwrap().shutdown().await;
    // A new leader, and the old master beats on before it could be held for lost.
    master.beat_until(&rig, true).await;
    replica.beat_until(&rig, false).await;
    let second = rig.leader().await;
    assert_ne!(first, second);
    let follower = 3 - first - second;
    eventually("the follower knows the leader", || {
        rig.controllers[follower]
            .as_ref()
            .unwrap()
            .probe()
            .ready()
            .is_ok()
    })
    .await;
    let address = rig.address(follower);
    let refused = master
        .client
        .call(&address, master.heartbeat(0), WITHIN)
        .await
        .unwrap();
    assert_eq!(refused.code, response_code::CONTROLLER_NOT_LEADER);
    assert!(refused.remark.unwrap().contains(&rig.address(second)));
    rig.start_one(first);
    master.beat_until(&rig, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_no_heartbeat_gets_a_lease() {
    let mut rig = Rig::start(3, &[]);
    let (master, _replica) = pair(&rig).await;
    let leader = rig.leader().await;
    for id in (0..3).filter(|id| *id != leader) {
        rig.controllers[id].take().unwrap().shutdown().await;
    }
    assert_ne!(master.beat(&rig.address(leader), 0).await, Some(true));
}
