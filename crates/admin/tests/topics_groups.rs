//! Clusters, topics, groups and progress against a cluster of fakes.

#[cfg(test)]
mod common;

use common::{Cluster, client, group, nobody, topic};
use rmq_admin::{
    GroupChange, GroupOutcome, NameServerError, ResetTo, Scope, TargetError, TopicChange,
    TopicOutcome, TopicSettings,
};
use rmq_protocol::{
    body::{Connection, SubscriptionGroupConfig},
    remoting::{request_code as req, response_code as resp},
};

#[tokio::test]
async fn without_a_name_server_the_error_names_every_address_tried() {
    let addresses = [nobody(), nobody()];
    let error = client(&addresses).topics().await.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, NameServerError::NoneAnswers { .. }),
        "{text}"
    );
    for addr in &addresses {
        assert!(text.contains(addr), "{text}");
    }
}

#[tokio::test]
async fn a_dead_name_server_is_passed_over() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 1);
    let topics = client(&[nobody(), cluster.addr()]).topics().await.unwrap();
    assert!(topics.contains("T"));
}

#[tokio::test]
async fn every_broker_is_listed_and_a_dead_one_says_why() {
    let mut cluster = Cluster::start(&["a", "b"]);
    cluster.kill(1);
    let brokers = cluster.client().brokers(None).await.unwrap();
    let (target, runtime) = brokers.successes().next().unwrap();
    assert_eq!((target.label(), runtime.version()), ("a", Some("V5_3_3")));
    assert_eq!(
        (runtime.in_tps(), runtime.out_tps()),
        (Some(1.5), Some(2.5))
    );
    let (target, error) = brokers.failures().next().unwrap();
    assert_eq!(target.label(), "b");
    assert!(
        error.to_string().contains(&cluster.members[1].addr),
        "{error}"
    );
}

#[tokio::test]
async fn a_topic_is_created_on_every_master_and_creating_again_changes_nothing() {
    let cluster = Cluster::start(&["a", "b"]);
    let admin = cluster.client();
    let settings = TopicSettings {
        write_queues: 4,
        read_queues: 4,
        ..TopicSettings::default()
    };
    for wanted in [TopicOutcome::Created, TopicOutcome::Unchanged] {
        let answers = admin
            .create_topic(&topic("T"), &settings, &Scope::OnlyCluster)
            .await
            .unwrap();
        assert_eq!(
            answers
                .successes()
                .filter(|(_, outcome)| **outcome == wanted)
                .count(),
            2
        );
    }
    let route = admin.route(&topic("T")).await.unwrap();
    assert_eq!(route.write_queues().len(), 8);
    let sent = cluster
        .asked(0)
        .iter()
        .filter(|code| **code == req::UPDATE_AND_CREATE_TOPIC)
        .count();
    assert_eq!(sent, 1, "an unchanged topic is not sent again");
}

#[tokio::test]
async fn creating_does_not_touch_a_topic_with_other_settings() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 16);
    let settings = TopicSettings::default();
    let answers = cluster
        .client()
        .create_topic(&topic("T"), &settings, &Scope::OnlyCluster)
        .await
        .unwrap();
    let outcome = answers.into_iter().next().unwrap().outcome.unwrap();
    assert!(matches!(outcome, TopicOutcome::Differs(config) if config.read_queue_nums == 16));
    assert!(!cluster.asked(0).contains(&req::UPDATE_AND_CREATE_TOPIC));
}

#[tokio::test]
async fn a_broker_that_fails_does_not_hide_the_others() {
    let mut cluster = Cluster::start(&["a", "b", "c", "d"]);
    cluster
        .broker(1)
        .refuse(req::UPDATE_AND_CREATE_TOPIC, resp::NO_PERMISSION, "not you");
    cluster.kill(2);
    cluster.forget_master(3);
    let settings = TopicSettings::default();
    let answers = cluster
        .client()
        .create_topic(&topic("T"), &settings, &Scope::OnlyCluster)
        .await
        .unwrap();
    let failed: Vec<_> = answers
        .failures()
        .map(|(target, error)| (target.label(), error.to_string()))
        .collect();
    assert_eq!(answers.len(), 4);
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(
        failed[0]
            .1
            .ends_with("request 17 with NO_PERMISSION (16): not you"),
        "{failed:?}"
    );
    assert!(failed[1].1.contains("cannot connect to"), "{failed:?}");
    assert_eq!(failed[2], ("d", "broker group d has no master".to_owned()));
    assert!(cluster.broker(0).topics.lock().unwrap().contains_key("T"));
}

#[tokio::test]
async fn an_ordered_topic_has_its_queues_fixed_at_the_name_server() {
    let cluster = Cluster::start(&["a", "b"]);
    let settings = TopicSettings {
        ordered: true,
        ..TopicSettings::default()
    };
    let admin = cluster.client();
    admin
        .create_topic(&topic("T"), &settings, &Scope::OnlyCluster)
        .await
        .unwrap();
    assert_eq!(cluster.name_server.kv.lock().unwrap()["T"], "a:8;b:8");
    admin.delete_topic(&topic("T"), None).await.unwrap();
    assert!(cluster.name_server.kv.lock().unwrap().is_empty());
}

#[tokio::test]
async fn altering_changes_only_brokers_that_have_the_topic() {
    let cluster = Cluster::start(&["a", "b"]);
    cluster.broker(0).add_topic("T", 16);
    let change = TopicChange {
        perm: Some(4),
        ..TopicChange::default()
    };
    let admin = cluster.client();
    let answers = admin
        .alter_topic(&topic("T"), &change, &Scope::OnlyCluster)
        .await
        .unwrap();
    let outcomes: Vec<_> = answers
        .successes()
        .map(|(_, outcome)| outcome.clone())
        .collect();
    assert!(matches!(&outcomes[0], TopicOutcome::Changed(before) if before.perm == 6));
    assert_eq!(outcomes[1], TopicOutcome::Absent);
    let config = cluster.broker(0).topics.lock().unwrap()["T"].clone();
    assert_eq!((config.perm, config.read_queue_nums), (4, 16));
    let having = Scope::Having(topic("T"));
    let answers = admin
        .alter_topic(&topic("T"), &change, &having)
        .await
        .unwrap();
    assert_eq!(
        answers
            .successes()
            .map(|(_, o)| o.clone())
            .collect::<Vec<_>>(),
        [TopicOutcome::Unchanged]
    );
}

#[tokio::test]
async fn deleting_takes_the_route_away_only_after_every_broker_let_go() {
    let cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        cluster.broker(index).add_topic("T", 1);
    }
    let admin = cluster.client();
    cluster
        .broker(1)
        .refuse(req::DELETE_TOPIC_IN_BROKER, resp::SYSTEM_ERROR, "no");
    let deletion = admin.delete_topic(&topic("T"), None).await.unwrap();
    assert!(!deletion.is_complete() && deletion.name_servers.is_empty());
    assert!(cluster.name_server.removed.lock().unwrap().is_empty());
    cluster.broker(1).allow(req::DELETE_TOPIC_IN_BROKER);
    let deletion = admin.delete_topic(&topic("T"), None).await.unwrap();
    assert!(deletion.is_complete());
    assert!(cluster.name_server.removed.lock().unwrap().contains("T"));
    let error = admin.delete_topic(&topic("T"), None).await.unwrap_err();
    assert!(matches!(
        error,
        TargetError::NameServer(NameServerError::NoSuchTopic { .. })
    ));
}

#[tokio::test]
async fn the_status_of_an_empty_topic_is_zeros() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 2);
    cluster.broker(0).put("T", 1, b"x", "");
    let status = cluster.client().topic_status(&topic("T")).await.unwrap();
    let (_, queues) = status.successes().next().unwrap();
    let rows: Vec<_> = queues
        .iter()
        .map(|q| {
            (
                q.queue.to_string(),
                q.min,
                q.max,
                q.last_stored_at.map(rmq_types::Timestamp::millis),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("a/0".into(), 0, 0, None),
            ("a/1".into(), 0, 1, Some(1_000))
        ]
    );
}

#[tokio::test]
async fn a_group_is_created_then_unchanged_then_changed_where_it_differs() {
    let cluster = Cluster::start(&["a"]);
    let admin = cluster.client();
    let put = async |change: GroupChange| {
        let answers = admin
            .put_group(&group("g"), &change, &Scope::OnlyCluster)
            .await
            .unwrap();
        answers.into_iter().next().unwrap().outcome.unwrap()
    };
    let three = GroupChange {
        retry_max: Some(3),
        ..GroupChange::default()
    };
    assert_eq!(put(three.clone()).await, GroupOutcome::Created);
    assert_eq!(put(three).await, GroupOutcome::Unchanged);
    let ordered = GroupChange {
        ordered: Some(true),
        ..GroupChange::default()
    };
    assert!(matches!(put(ordered).await, GroupOutcome::Changed(_)));
    let config = cluster.broker(0).groups.lock().unwrap()["g"].clone();
    assert_eq!(
        config,
        SubscriptionGroupConfig {
            retry_max_times: 3,
            consume_message_orderly: true,
            ..SubscriptionGroupConfig::named("g")
        }
    );
}

#[tokio::test]
async fn deleting_a_group_takes_its_retry_topic_and_may_keep_its_dead_letters() {
    let cluster = Cluster::start(&["a"]);
    let admin = cluster.client();
    let broker = cluster.broker(0);
    broker.add_topic("%RETRY%g", 1);
    broker.add_topic("%DLQ%g", 1);
    let deletion = admin
        .delete_group(&group("g"), true, true, &Scope::OnlyCluster)
        .await
        .unwrap();
    assert!(deletion.is_complete() && deletion.dead_letters.is_none());
    assert_eq!(
        broker.topics.lock().unwrap().keys().collect::<Vec<_>>(),
        ["%DLQ%g"]
    );
    let sent = broker.last_ext.lock().unwrap()[&req::DELETE_SUBSCRIPTIONGROUP].clone();
    assert_eq!(sent["cleanOffset"], "true");
    let deletion = admin
        .delete_group(&group("g"), true, false, &Scope::OnlyCluster)
        .await
        .unwrap();
    assert!(deletion.dead_letters.unwrap().is_complete());
    assert!(broker.topics.lock().unwrap().is_empty());
}

#[tokio::test]
async fn progress_counts_lag_over_brokers_and_each_member_once() {
    let cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        let broker = cluster.broker(index);
        broker.add_topic("T", 1);
        for _ in 0..5 {
            broker.put("T", 0, b"x", "");
        }
        broker
            .committed
            .lock()
            .unwrap()
            .insert(("g".into(), "T".into(), 0), index as i64);
        let member = Connection {
            client_id: "one".into(),
            ..Connection::default()
        };
        broker.members.lock().unwrap().push(member);
    }
    let admin = cluster.client();
    let progress = admin
        .progress(&group("g"), None, &Scope::OnlyCluster)
        .await
        .unwrap();
    assert_eq!((progress.lag(), progress.members().len()), (5 + 4, 1));
    assert!((progress.tps() - 1.0).abs() < 1e-9);
    let unused = admin
        .progress(&group("unused"), None, &Scope::OnlyCluster)
        .await
        .unwrap();
    assert!(unused.queues().is_empty() && unused.brokers.is_complete());
}

#[tokio::test]
async fn offsets_are_reset_by_time_on_all_queues_and_by_offset_on_one_only() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 1);
    let admin = cluster.client();
    let answers = admin
        .reset_offsets(&group("g"), &topic("T"), None, ResetTo::Last)
        .await
        .unwrap();
    let (_, outcome) = answers.successes().next().unwrap();
    assert_eq!(
        outcome.0[0].1, -1,
        "the fake answers with the time it was sent"
    );
    let to = ResetTo::Offset(rmq_types::QueueOffset::new(3));
    let error = admin
        .reset_offsets(&group("g"), &topic("T"), None, to)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("name the broker and the queue"));
    let queue = rmq_admin::Queue {
        broker: "z".into(),
        id: 0,
    };
    let error = admin
        .reset_offsets(&group("g"), &topic("T"), Some(&queue), to)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "topic T is not on broker z; it is on a");
}
