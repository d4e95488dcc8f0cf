//! Sending, looking up and following against a cluster of fakes.

#[cfg(test)]
mod common;

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use common::{Cluster, at, client_within, next_batch as batch, topic};
use rmq_admin::{
    Batch, Event, FollowError, FollowOptions, MessagePlace, Outgoing, ReadError, SendError, SendTo,
    StartAt, TagFilter, Trouble,
};
use rmq_protocol::remoting::{request_code as req, response_code as resp};
use rmq_types::{GroupName, QueueOffset, Timestamp};

fn plain(body: &'static str) -> Outgoing {
    Outgoing {
        body: body.into(),
        ..Outgoing::default()
    }
}

fn bodies(batch: &Batch) -> Vec<String> {
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    batch
        .messages
        .iter()
        .map(|message| text(&message.body))
        .collect()
}

#[tokio::test]
async fn messages_go_to_all_queues_in_turn_and_are_found_by_place_and_id() {
    let cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        cluster.broker(index).add_topic("T", 2);
    }
    let admin = cluster.client();
    let mut sender = admin.sender(&topic("T"), &SendTo::default()).await.unwrap();
    let mut used = BTreeSet::new();
    for _ in 0..4 {
        let sent = sender.send(&plain("hello")).await.unwrap();
        assert_eq!(sent.queue_offset, QueueOffset::new(0));
        used.insert(sent.queue);
    }
    assert_eq!(used.len(), 4);
    let place = MessagePlace {
        broker: Some("b".into()),
        ..at(1, 0)
    };
    let (queue, message) = admin.message_at(&place).await.unwrap();
    assert_eq!(
        (queue.to_string(), &message.body[..]),
        ("b/1".into(), &b"hello"[..])
    );
    let error = admin.message_at(&at(1, 0)).await.unwrap_err();
    assert!(matches!(error, ReadError::SeveralBrokers { brokers, .. } if brokers == ["a", "b"]));
}

#[tokio::test]
async fn a_message_that_is_not_there_says_what_the_queue_holds() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 2);
    for _ in 0..3 {
        cluster.broker(0).put("T", 0, b"x", "");
    }
    let admin = cluster.client();
    let text = async |place| admin.message_at(&place).await.unwrap_err().to_string();
    assert_eq!(
        text(at(0, 9)).await,
        "there is no message at offset 9 of queue a/0 of topic T; the queue holds offsets 0 to 2"
    );
    assert_eq!(
        text(at(1, 0)).await,
        "there is no message at offset 0 of queue a/1 of topic T; the queue is empty"
    );
    assert_eq!(
        text(at(7, 0)).await,
        "topic T has no readable queue 7; readable queues: a (0-1)"
    );
    let error = admin.message_by_id("xyz", None).await.unwrap_err();
    assert!(matches!(error, ReadError::Id { .. }));
}

#[tokio::test]
async fn a_message_is_found_by_the_brokers_id_at_the_address_in_it() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 1);
    cluster.broker(0).put("T", 0, b"x", "red");
    let host = cluster.members[0].addr.parse().unwrap();
    let id = rmq_protocol::message::OffsetId { host, offset: 0 }.to_string();
    let message = cluster.client().message_by_id(&id, None).await.unwrap();
    assert_eq!(
        (&message.body[..], message.tags()),
        (&b"x"[..], Some("red"))
    );
}

#[tokio::test]
async fn an_unknown_topic_and_a_queue_that_is_not_there_are_told_before_sending() {
    let cluster = Cluster::start(&["a"]);
    let admin = cluster.client();
    let error = admin
        .sender(&topic("T"), &SendTo::default())
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("topic T does not exist"),
        "{error}"
    );
    cluster.broker(0).add_topic("T", 4);
    let to = SendTo {
        broker: Some("z".into()),
        queue: Some(1),
    };
    let error = admin.sender(&topic("T"), &to).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "topic T has no writable queue 1 on broker z; writable queues: a (0-3)"
    );
}

#[tokio::test]
async fn a_busy_or_dead_broker_is_passed_over_unless_the_queue_is_fixed() {
    let mut cluster = Cluster::start(&["a", "b", "c"]);
    for index in 0..3 {
        cluster.broker(index).add_topic("T", 1);
    }
    cluster
        .broker(0)
        .refuse(req::SEND_MESSAGE_V2, resp::SYSTEM_BUSY, "[OVERLOAD]");
    cluster.kill(1);
    let admin = cluster.client();
    let mut sender = admin.sender(&topic("T"), &SendTo::default()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(sender.send(&plain("x")).await.unwrap().queue.broker, "c");
    }
    let to = SendTo {
        broker: Some("a".into()),
        queue: None,
    };
    let mut sender = admin.sender(&topic("T"), &to).await.unwrap();
    let error = sender.send(&plain("x")).await.unwrap_err();
    assert!(
        error.to_string().ends_with("SYSTEM_BUSY (2): [OVERLOAD]"),
        "{error}"
    );
}

#[tokio::test]
async fn a_send_without_an_answer_is_not_repeated_and_says_that_it_is_open() {
    let cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        cluster.broker(index).add_topic("T", 1);
        cluster
            .broker(index)
            .refuse(req::SEND_MESSAGE_V2, common::NO_ANSWER, "");
    }
    let admin = client_within(&[cluster.addr()], Duration::from_millis(50));
    let mut sender = admin.sender(&topic("T"), &SendTo::default()).await.unwrap();
    let error = sender.send(&plain("x")).await.unwrap_err();
    assert!(matches!(error, SendError::Unknown(_)), "{error}");
    let sends = |index| {
        cluster
            .asked(index)
            .iter()
            .filter(|code| **code == req::SEND_MESSAGE_V2)
            .count()
    };
    assert_eq!(sends(0) + sends(1), 1);
}

#[tokio::test]
async fn following_from_the_first_gives_all_then_what_comes_new() {
    let cluster = Cluster::start(&["a"]);
    let broker = cluster.broker(0);
    broker.add_topic("T", 1);
    for body in ["1", "2"] {
        broker.put("T", 0, body.as_bytes(), "");
    }
    let options = FollowOptions {
        start: StartAt::First,
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    assert_eq!(bodies(&batch(&mut follower).await), ["1", "2"]);
    broker.put("T", 0, b"3", "");
    let last = batch(&mut follower).await;
    assert_eq!(
        (bodies(&last), last.next),
        (vec!["3".to_owned()], QueueOffset::new(3))
    );
}

#[tokio::test]
async fn following_begins_at_the_end_a_time_or_an_offset() {
    let cluster = Cluster::start(&["a"]);
    let broker = cluster.broker(0);
    broker.add_topic("T", 1);
    for body in ["0", "1", "2"] {
        broker.put("T", 0, body.as_bytes(), "");
    }
    let follow = async |start| {
        let options = FollowOptions {
            start,
            ..FollowOptions::new(topic("T"))
        };
        cluster.client().follow(options).await.unwrap()
    };
    let mut from_time = follow(StartAt::Timestamp(Timestamp::from_millis(1_001))).await;
    let mut from_offset = follow(StartAt::Offset(QueueOffset::new(2))).await;
    let mut from_last = follow(StartAt::Last).await;
    assert_eq!(bodies(&batch(&mut from_time).await), ["1", "2"]);
    assert_eq!(bodies(&batch(&mut from_offset).await), ["2"]);
    broker.put("T", 0, b"3", "");
    assert_eq!(bodies(&batch(&mut from_last).await), ["3"]);
}

#[tokio::test]
async fn a_tag_filter_checks_the_text_and_still_moves_on() {
    let cluster = Cluster::start(&["a"]);
    let broker = cluster.broker(0);
    broker.add_topic("T", 1);
    for (body, tag) in [("1", "Aa"), ("2", "BB"), ("3", "other")] {
        broker.put("T", 0, body.as_bytes(), tag);
    }
    let options = FollowOptions {
        start: StartAt::First,
        filter: TagFilter::tags("Aa"),
        stop_at_end: true,
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    let found = batch(&mut follower).await;
    assert_eq!(
        (bodies(&found), found.next),
        (vec!["1".to_owned()], QueueOffset::new(3))
    );
    assert!(follower.next().await.unwrap().is_none());
}

#[tokio::test]
async fn stopping_at_the_end_gives_what_was_there_and_no_more() {
    let cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        cluster.broker(index).add_topic("T", 2);
        for n in 0..40 {
            cluster.broker(index).put("T", n % 2, b"x", "");
        }
    }
    let options = FollowOptions {
        start: StartAt::First,
        stop_at_end: true,
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    cluster.broker(0).put("T", 0, b"late", "");
    let mut count = 0;
    while let Some(event) = follower.next().await.unwrap() {
        let Event::Messages(batch) = event else {
            panic!("{event:?}")
        };
        assert!(!bodies(&batch).contains(&"late".to_owned()));
        count += batch.messages.len();
    }
    assert_eq!(count, 80);
}

#[tokio::test]
async fn a_group_goes_on_where_it_committed_and_only_what_was_consumed_is_committed() {
    let cluster = Cluster::start(&["a"]);
    let broker = cluster.broker(0);
    broker.add_topic("T", 1);
    for body in ["0", "1", "2"] {
        broker.put("T", 0, body.as_bytes(), "");
    }
    let name = GroupName::parse("TOOLS_CONSUMER").unwrap();
    let key = (name.to_string(), "T".to_owned(), 0);
    broker.committed.lock().unwrap().insert(key.clone(), 1);
    let options = FollowOptions {
        group: Some(name),
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    let found = batch(&mut follower).await;
    assert_eq!(bodies(&found), ["1", "2"]);
    follower.commit().await.unwrap();
    assert_eq!(
        broker.committed.lock().unwrap()[&key],
        1,
        "nothing was consumed yet"
    );
    follower.consumed(&found.queue, QueueOffset::new(2));
    follower.commit().await.unwrap();
    assert_eq!(broker.committed.lock().unwrap()[&key], 2);
    broker.refuse(req::UPDATE_CONSUMER_OFFSET, resp::SYSTEM_BUSY, "");
    follower.consumed(&found.queue, found.next);
    assert!(follower.commit().await.is_err());
    broker.allow(req::UPDATE_CONSUMER_OFFSET);
    follower.commit().await.unwrap();
    assert_eq!(
        broker.committed.lock().unwrap()[&key],
        3,
        "a failed commit is tried again"
    );
}

#[tokio::test]
async fn expired_messages_are_skipped_and_told() {
    let cluster = Cluster::start(&["a"]);
    let broker = cluster.broker(0);
    broker.add_topic("T", 1);
    for body in ["0", "1", "2"] {
        broker.put("T", 0, body.as_bytes(), "");
    }
    broker.min.store(2, Ordering::SeqCst);
    let start = StartAt::Offset(QueueOffset::new(0));
    let options = FollowOptions {
        start,
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    let event = follower.next().await.unwrap().unwrap();
    let Event::Trouble(Trouble::Moved { from, to, .. }) = event else {
        panic!("{event:?}")
    };
    assert_eq!((from, to), (QueueOffset::new(0), QueueOffset::new(2)));
    assert_eq!(bodies(&batch(&mut follower).await), ["2"]);
}

#[tokio::test]
async fn a_refusal_for_good_ends_following_with_its_reason() {
    let cluster = Cluster::start(&["a"]);
    cluster.broker(0).add_topic("T", 1);
    let options = FollowOptions {
        group: Some(GroupName::parse("unknown").unwrap()),
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    let error = follower.next().await.unwrap_err();
    assert!(matches!(error, FollowError::AllEnded { .. }));
    assert!(
        error.to_string().contains("SUBSCRIPTION_GROUP_NOT_EXIST"),
        "{error}"
    );
}

#[tokio::test]
async fn a_dead_broker_is_told_while_the_others_are_followed() {
    let mut cluster = Cluster::start(&["a", "b"]);
    for index in 0..2 {
        cluster.broker(index).add_topic("T", 1);
        cluster.broker(index).put("T", 0, b"x", "");
    }
    cluster.kill(1);
    let options = FollowOptions {
        start: StartAt::First,
        ..FollowOptions::new(topic("T"))
    };
    let mut follower = cluster.client().follow(options).await.unwrap();
    let (mut found, mut told) = (false, false);
    while !(found && told) {
        match follower.next().await.unwrap().unwrap() {
            Event::Messages(batch) => found |= batch.queue.broker == "a",
            Event::Trouble(Trouble::Failed { queue, .. }) => told |= queue.broker == "b",
            Event::Trouble(trouble) => panic!("{trouble:?}"),
        }
    }
}
