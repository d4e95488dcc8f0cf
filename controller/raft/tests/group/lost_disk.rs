//! Compaction, and controllers that come back with an empty disk.

use rmq_protocol::remoting::ExtFields;
use rmq_raft::RAFT_VOTE;

use crate::rig::{Rig, apply_id, eventually, next_id};

async fn many_ids(rig: &Rig, ids: std::ops::RangeInclusive<u64>) {
    for id in ids {
        rig.propose(apply_id("a", id)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_disk_comes_back_by_snapshot_with_the_same_ids_and_votes_again() {
    let mut rig = Rig::new(3);
    rig.snapshot_after = 20;
    rig.start_all();
    many_ids(&rig, 1..=60).await;
    let leader = rig.leader().await;
    eventually("the leader forgets entries that a snapshot has", || {
        rig.node(leader).log_range().1 > 20
    })
    .await;
    let lost = (leader + 1) % 3;
    rig.stop(lost).await;
    rig.empty_disk(lost);
    rig.start(lost);
    rig.same_state(lost, leader).await;
    assert_eq!(next_id(rig.node(lost), "a"), 61);
    let third = 3 - leader - lost;
    eventually("it votes again", || rig.node(lost).votes()).await;
    // With the third one away its vote and its entries count.
    rig.stop(third).await;
    rig.propose(apply_id("a", 61)).await;
    rig.same_state(lost, leader).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_disk_gives_no_vote_while_a_peer_is_away() {
    let mut rig = Rig::new(3);
    rig.start_all();
    many_ids(&rig, 1..=3).await;
    let leader = rig.leader().await;
    let (lost, third) = ((leader + 1) % 3, (leader + 2) % 3);
    rig.stop(lost).await;
    rig.stop(third).await;
    rig.empty_disk(lost);
    rig.start(lost);
    let ext = ExtFields::new().into_owned();
    let misdirected = rig.node(lost).serve(RAFT_VOTE, &ext, b"{}").await;
    assert!(misdirected.unwrap_err().contains("is for controller"));
    // It asks its peers and does not take part: nobody can make a majority with it.
    assert!(!rig.node(lost).votes());
    assert!(rig.node(leader).confirm().await.is_err());
    rig.start(third);
    eventually("all were heard and it has caught up", || {
        rig.node(lost).votes()
    })
    .await;
    rig.propose(apply_id("a", 4)).await;
    let leader = rig.leader().await;
    rig.same_state(lost, leader).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_after_compaction_finds_the_state_in_snapshot_and_log() {
    let mut rig = Rig::new(1);
    rig.snapshot_after = 10;
    rig.start_all();
    many_ids(&rig, 1..=35).await;
    eventually("entries are forgotten", || rig.node(0).log_range().1 > 10).await;
    rig.stop(0).await;
    rig.start(0);
    eventually("all ids are there", || next_id(rig.node(0), "a") == 36).await;
}
