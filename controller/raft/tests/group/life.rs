//! Elections, commands, restarts.

use rmq_controller_fsm::Outcome;
use rmq_net::{Client, ClientOptions};
use rmq_raft::{Node, NodeOptions, OpenError};
use rmq_types::BrokerId;

use crate::rig::{Rig, apply_id, eventually, next_id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_controllers_elect_one_and_apply_the_same_commands() {
    let mut rig = Rig::new(3);
    rig.start_all();
    let outcome = rig.propose(apply_id("a", 1)).await;
    assert_eq!(
        outcome,
        Outcome::IdApplied {
            broker: BrokerId::new(1)
        }
    );
    let leader = rig.leader().await;
    assert_eq!(rig.node(leader).confirm().await, Ok(()));
    for id in 0..3 {
        rig.same_state(id, leader).await;
        assert_eq!(next_id(rig.node(id), "a"), 2);
        assert!(rig.node(id).votes());
    }
    let leaders = (0..3).filter(|id| rig.node(*id).leadership().is_some());
    assert_eq!(leaders.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_group_goes_on_without_its_leader_which_comes_back_with_what_it_had() {
    let mut rig = Rig::new(3);
    rig.start_all();
    rig.propose(apply_id("a", 1)).await;
    let first = rig.leader().await;
    let first_term = rig.node(first).leadership();
    rig.stop(first).await;
    rig.propose(apply_id("a", 2)).await;
    let second = rig.leader().await;
    assert!(
        rig.node(second).leadership() > first_term,
        "terms of leaders rise"
    );
    rig.start(first);
    rig.same_state(first, second).await;
    assert_eq!(next_id(rig.node(first), "a"), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_lost_its_majority_confirms_nothing() {
    let mut rig = Rig::new(3);
    rig.start_all();
    rig.propose(apply_id("a", 1)).await;
    let leader = rig.leader().await;
    for id in (0..3).filter(|id| *id != leader) {
        rig.stop(id).await;
    }
    assert!(rig.node(leader).confirm().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_alone_founds_its_group_and_finds_it_again() {
    let mut rig = Rig::new(1);
    rig.start_all();
    rig.propose(apply_id("a", 1)).await;
    rig.stop(0).await;
    rig.start(0);
    eventually("the id is there again", || next_id(rig.node(0), "a") == 2).await;
}

#[test]
fn a_file_of_another_controller_and_a_number_that_is_no_peer_are_refused() {
    let rig = Rig::new(3);
    let client = Client::new(ClientOptions::default());
    drop(Node::open(rig.options(0), client.clone()).unwrap());
    let other = NodeOptions {
        id: 1,
        ..rig.options(0)
    };
    let refused = Node::open(other, client.clone());
    assert!(matches!(
        refused,
        Err(OpenError::Foreign {
            found: 0,
            id: 1,
            ..
        })
    ));
    let nobody = NodeOptions {
        id: 7,
        ..rig.options(1)
    };
    assert!(matches!(
        Node::open(nobody, client),
        Err(OpenError::NotAPeer { id: 7 })
    ));
}
