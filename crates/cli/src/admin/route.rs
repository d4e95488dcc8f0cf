//! `admin topic route` and `admin topic status`.

use std::collections::BTreeMap;

use rmq_admin::{AdminClient, Answers, QueueStatus, TopicRoute};
use rmq_types::TopicName;
use serde::Serialize;

use super::{
    advice::advise,
    outcome::require_all,
    output::{Output, cell, table},
    time,
    topic::show_perm,
};

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteView {
    topic: String,
    brokers: Vec<RouteBroker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteBroker {
    broker: String,
    cluster: String,
    /// By broker id; 0 is the master.
    addresses: BTreeMap<i64, String>,
    read_queues: i32,
    write_queues: i32,
    perm: String,
}

pub(super) async fn show(
    admin: &AdminClient,
    args: &StatusArgs,
    out: Output,
) -> anyhow::Result<()> {
    let route = admin.route(&args.topic).await.map_err(advise)?;
    out.answer(&route_view(&route), route_text)
}

fn route_view(route: &TopicRoute) -> RouteView {
    let data = &route.data;
    let mut brokers: Vec<_> = data
        .queue_datas
        .iter()
        .map(|queues| {
            let found = data
                .broker_datas
                .iter()
                .find(|b| b.broker_name == queues.broker_name);
            RouteBroker {
                broker: queues.broker_name.clone(),
                cluster: found.map(|found| found.cluster.clone()).unwrap_or_default(),
                addresses: found
                    .map(|found| found.broker_addrs.clone())
                    .unwrap_or_default(),
                read_queues: queues.read_queue_nums,
                write_queues: queues.write_queue_nums,
                perm: show_perm(queues.perm),
            }
        })
        .collect();
    brokers.sort_by(|a, b| a.broker.cmp(&b.broker));
    let order = data
        .order_topic_conf
        .clone()
        .filter(|order| !order.is_empty());
    RouteView {
        topic: route.topic.to_string(),
        brokers,
        order,
    }
}

fn route_text(view: &RouteView) -> String {
    let rows = view.brokers.iter().map(|broker| {
        let address = |(id, addr): (&i64, &String)| match id {
            0 => addr.clone(),
            id => format!("{addr} (replica {id})"),
        };
        [
            broker.broker.clone(),
            broker.cluster.clone(),
            broker
                .addresses
                .iter()
                .map(address)
                .collect::<Vec<_>>()
                .join(", "),
            broker.read_queues.to_string(),
            broker.write_queues.to_string(),
            broker.perm.clone(),
        ]
    });
    let mut text = table(
        ["BROKER", "CLUSTER", "ADDRESS", "READ", "WRITE", "PERM"],
        rows,
    );
    if let Some(order) = &view.order {
        text = format!("{text}\nordered: {order}");
    }
    text
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusView {
    topic: String,
    messages: i64,
    queues: Vec<QueueView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueView {
    broker: String,
    queue: u32,
    min_offset: i64,
    max_offset: i64,
    last_stored_at: Option<String>,
}

pub(super) async fn status(
    admin: &AdminClient,
    args: &StatusArgs,
    out: Output,
) -> anyhow::Result<()> {
    let answers = admin.topic_status(&args.topic).await.map_err(advise)?;
    out.answer(&status_view(&args.topic, &answers), status_text)?;
    require_all(&answers)
}

fn status_view(topic: &TopicName, answers: &Answers<Vec<QueueStatus>>) -> StatusView {
    let queues: Vec<_> = answers
        .successes()
        .flat_map(|(_, queues)| queues)
        .map(|status| QueueView {
            broker: status.queue.broker.clone(),
            queue: status.queue.id,
            min_offset: status.min,
            max_offset: status.max,
            last_stored_at: status.last_stored_at.map(time::show),
        })
        .collect();
    StatusView {
        topic: topic.to_string(),
        messages: queues.iter().map(held).fold(0, i64::saturating_add),
        queues,
        failures: answers
            .failures()
            .map(|(_, error)| error.to_string())
            .collect(),
    }
}

fn held(queue: &QueueView) -> i64 {
    queue.max_offset.saturating_sub(queue.min_offset).max(0)
}

fn status_text(view: &StatusView) -> String {
    let rows = view.queues.iter().map(|queue| {
        [
            queue.broker.clone(),
            queue.queue.to_string(),
            queue.min_offset.to_string(),
            queue.max_offset.to_string(),
            held(queue).to_string(),
            cell(queue.last_stored_at.clone()),
        ]
    });
    table(
        ["BROKER", "QUEUE", "MIN", "MAX", "MESSAGES", "LAST STORED"],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use rmq_protocol::body::TopicRouteData;

    use super::*;
    use crate::admin::output::json_line;

    #[test]
    fn a_route_is_shown_as_documented() {
        let text = br#"{"brokerDatas":[{"brokerAddrs":{"0":"h:1","1":"h:2"},"brokerName":"a","cluster":"c"}],
            "queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":8,"writeQueueNums":4}]}"#;
        let route = TopicRoute {
            topic: TopicName::parse("T").unwrap(),
            name_server: "ns".into(),
            data: TopicRouteData::from_json(text).unwrap(),
        };
        let view = route_view(&route);
        assert_eq!(
            route_text(&view),
            include_str!("goldens/route.txt").trim_end()
        );
        assert_eq!(
            json_line(&view).unwrap(),
            include_str!("goldens/route.json").trim_end()
        );
    }

    #[test]
    fn the_status_of_empty_and_full_queues_is_shown_as_documented() {
        let queue = |queue, max_offset, last: Option<&str>| QueueView {
            broker: "a".into(),
            queue,
            min_offset: 0,
            max_offset,
            last_stored_at: last.map(str::to_owned),
        };
        let view = StatusView {
            topic: "T".into(),
            messages: 7,
            queues: vec![
                queue(0, 7, Some("2023-11-14T22:13:20.123Z")),
                queue(1, 0, None),
            ],
            failures: Vec::new(),
        };
        assert_eq!(
            status_text(&view),
            include_str!("goldens/status.txt").trim_end()
        );
        assert_eq!(
            json_line(&view).unwrap(),
            include_str!("goldens/status.json").trim_end()
        );
    }
}
