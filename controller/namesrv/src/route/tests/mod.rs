//! One file per kind of event; the helpers here build registrations and look at routes.

mod answers;
mod expiry;
mod golden;
mod leaving;
mod random;
mod rules;
mod topics;

use rmq_protocol::body::TopicRouteData;

use super::*;

/// A moment, in milliseconds.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn version(counter: i64) -> DataVersion {
    DataVersion {
        state_version: 0,
        timestamp: 1,
        counter,
    }
}

pub(super) fn topic(name: &str) -> TopicSettings {
    let queues = QueueSettings {
        read_queues: 8,
        write_queues: 8,
        perm: 6,
        sys_flag: 0,
    };
    TopicSettings {
        name: TopicName::parse(name).unwrap(),
        queues,
    }
}

/// A registration of `broker` with the given id: topics `T` and `U`, address `broker-id:10911`,
/// connection 1.
pub(super) fn broker(name: &str, id: u64) -> Registration {
    Registration {
        cluster: ClusterName::parse("c").unwrap(),
        broker: BrokerName::parse(name).unwrap(),
        id: BrokerId::new(id),
        addr: format!("{name}-{id}:10911"),
        ha_addr: format!("{name}-{id}:10912"),
        zone: None,
        silence_millis_max: None,
        acting_master: None,
        version: version(1),
        topics: vec![topic("T"), topic("U")],
        topics_skipped: 0,
        topics_complete: false,
        mappings: Vec::new(),
        filter_servers: None,
        connection: ConnectionToken(1),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many places of use"
)]
pub(super) fn accepted(table: &mut RouteTable, registration: Registration) -> Accepted {
    match table.register(at(0), &registration).unwrap() {
        Registered::Accepted(accepted) => accepted,
        Registered::Superseded { holder } => panic!("superseded by {holder}"),
    }
}

pub(super) fn route(table: &RouteTable, topic: &str) -> Option<TopicRouteData> {
    table.route(topic, None)
}

/// Permission of a topic on a broker.
pub(super) fn perm(table: &RouteTable, topic: &str, broker: &str) -> Option<i32> {
    let route = route(table, topic)?;
    let queues = route
        .queue_datas
        .iter()
        .find(|queues| queues.broker_name == broker)?;
    Some(queues.perm)
}

/// Ids and addresses of a broker in a topic's route.
pub(super) fn addresses(table: &RouteTable, topic: &str, broker: &str) -> Vec<(i64, String)> {
    let Some(route) = route(table, topic) else {
        return Vec::new();
    };
    let Some(data) = route
        .broker_datas
        .iter()
        .find(|data| data.broker_name == broker)
    else {
        return Vec::new();
    };
    data.broker_addrs
        .iter()
        .map(|(id, addr)| (*id, addr.clone()))
        .collect()
}
