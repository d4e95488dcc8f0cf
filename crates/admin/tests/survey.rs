//! A look at a whole cluster of fakes: what is said is shown, what does not answer stays.

#[cfg(test)]
mod common;

use common::{Cluster, client, nobody};
use rmq_admin::{GroupLag, NameServerError, Scope, TargetError};
use rmq_protocol::{
    body::{ConsumeStats, ConsumeStatsList, HaRuntimeInfo, MessageQueue, OffsetWrapper},
    remoting::{request_code as req, response_code as resp},
};
use rmq_types::ClusterName;

fn cluster_of(names: &[&str]) -> Cluster {
    let cluster = Cluster::start(names);
    for index in 0..names.len() {
        cluster.broker(index).add_topic("SELF_TEST_TOPIC", 1);
    }
    cluster
}

#[tokio::test]
async fn groups_are_readable_and_writable_as_servers_say() {
    let cluster = cluster_of(&["a", "b"]);
    let survey = cluster.client().survey(None).await.unwrap();
    assert_eq!(survey.name_servers.len(), 1);
    assert_eq!(*survey.name_servers[0].brokers.as_ref().unwrap(), 2);
    for group in &survey.groups {
        assert_eq!(group.is_readable(), Some(true), "{group:?}");
        assert_eq!(group.is_writable(), Some(true), "{group:?}");
        assert_eq!(group.in_sync(), Some((1, 1)), "{group:?}");
        assert_eq!((group.epoch, group.lag_bytes()), (None, None), "{group:?}");
        assert!(group.missing_on.is_empty(), "{group:?}");
    }
}

#[tokio::test]
async fn a_dead_broker_and_a_dead_name_server_stay_in_the_picture() {
    let mut cluster = cluster_of(&["a", "b"]);
    cluster.kill(1);
    let addresses = [nobody(), cluster.addr()];
    let survey = client(&addresses).survey(None).await.unwrap();
    assert!(survey.name_servers[0].brokers.is_err());
    assert!(survey.name_servers[1].brokers.is_ok());
    let dead = &survey.groups[1];
    assert!(dead.members[0].runtime.is_err());
    assert_eq!(
        (dead.is_readable(), dead.is_writable()),
        (Some(false), Some(false))
    );
}

#[tokio::test]
async fn what_a_master_says_of_its_replicas_is_taken_and_a_refusal_is_no_failure() {
    let cluster = cluster_of(&["a", "b"]);
    let replication = HaRuntimeInfo {
        master: true,
        in_sync_slave_nums: 2,
        ..HaRuntimeInfo::default()
    };
    cluster
        .broker(0)
        .give(req::GET_BROKER_HA_STATUS, replication.to_json());
    cluster.broker(1).refuse(
        req::GET_BROKER_EPOCH_CACHE,
        resp::SYSTEM_ERROR,
        "no controller",
    );
    let survey = cluster.client().survey(None).await.unwrap();
    assert_eq!(survey.groups[0].replication, Some(replication));
    assert_eq!(survey.groups[1].replication, None);
    assert_eq!(survey.groups[1].epoch, None);
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_told_with_those_that_are() {
    let cluster = cluster_of(&["a"]);
    let name = ClusterName::parse("nowhere").unwrap();
    let error = cluster.client().survey(Some(&name)).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no cluster nowhere; known: c");
}

#[tokio::test]
async fn without_any_name_server_every_address_is_named_and_a_broker_is_no_name_server() {
    let addresses = [nobody(), nobody()];
    let error = client(&addresses).survey(None).await.unwrap_err();
    let text = error.to_string();
    assert!(addresses.iter().all(|addr| text.contains(addr)), "{text}");
    let cluster = cluster_of(&["a"]);
    let broker = cluster.members[0].addr.clone();
    let error = client(&[broker]).survey(None).await.unwrap_err();
    let refused = matches!(error, TargetError::NameServer(NameServerError::Refused(_)));
    assert!(refused, "{error}");
}

#[tokio::test]
async fn the_lag_of_every_group_comes_from_one_question_to_each_broker() {
    let mut cluster = cluster_of(&["a", "b", "z"]);
    for (index, end) in [(0, 10), (1, 5)] {
        let queue = MessageQueue {
            broker_name: cluster.broker(index).name.clone(),
            queue_id: 0,
            topic: "T".to_owned(),
        };
        let offsets = OffsetWrapper {
            broker_offset: end,
            consumer_offset: 4,
            last_timestamp: 0,
            pull_offset: 5,
        };
        let stats = ConsumeStats {
            consume_tps: 1.0,
            offset_table: [(queue, offsets)].into(),
        };
        let groups = [
            ("g".to_owned(), vec![stats]),
            ("idle".to_owned(), Vec::new()),
        ];
        let list = ConsumeStatsList {
            consume_stats_list: vec![groups.into()],
            ..ConsumeStatsList::default()
        };
        cluster
            .broker(index)
            .give(req::GET_BROKER_CONSUME_STATS, list.to_json());
    }
    cluster.kill(2);
    let lags = cluster
        .client()
        .group_lags(&Scope::AllClusters)
        .await
        .unwrap();
    assert_eq!(lags.failures().count(), 1);
    let of = |group: &str| {
        lags.successes()
            .map(|(_, lags)| lags[group])
            .fold(GroupLag::default(), GroupLag::plus)
    };
    let all = of("g");
    assert_eq!((all.topics, all.lag, all.in_flight), (1, 7, 2));
    assert_eq!(of("idle"), GroupLag::default());
    let asked = cluster.asked(0);
    let questions = asked
        .iter()
        .filter(|code| **code == req::GET_BROKER_CONSUME_STATS);
    assert_eq!(questions.count(), 1, "{asked:?}");
}
