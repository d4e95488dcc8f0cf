//! The requests of a registration: 103 in full or in part, 104 to leave.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmq_net::{CallError, Client};
use rmq_protocol::{
    body::{DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigWrapper},
    header,
    remoting::{Command, request_code},
};
use tokio::task::JoinSet;

use crate::core::{Core, lock};

/// Says that the topics are all there are, so that a NameServer of ours drops those deleted while it
/// could not be reached. Java's NameServer does not know the field.
const COMPLETE_FIELD: &str = "topicTableComplete";
/// How long a NameServer may take to let the broker go.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// The whole topic table.
pub(super) fn in_full(core: &Core) -> Command {
    let (version, all) = core.topics.snapshot();
    registration(core, version, &all).with_ext(COMPLETE_FIELD, "true")
}

/// Some topics as they are now; `version` is that of the change.
pub(super) fn in_part<'a>(
    core: &Core,
    version: DataVersion,
    names: impl Iterator<Item = &'a String>,
) -> Command {
    let topics: Vec<_> = names.filter_map(|name| core.topics.get(name)).collect();
    registration(core, version, &topics)
}

fn registration(core: &Core, data_version: DataVersion, topics: &[Arc<TopicConfig>]) -> Command {
    let permission = core.settings.get().broker_permission.get() as i32 | 1;
    let table: BTreeMap<_, _> = topics
        .iter()
        .map(|topic| {
            let topic = TopicConfig {
                perm: topic.perm & permission,
                ..TopicConfig::clone(topic)
            };
            (topic.topic_name.clone(), topic)
        })
        .collect();
    let body = RegisterBrokerBody {
        filter_server_list: Vec::new(),
        topic_config_serialize_wrapper: TopicConfigWrapper {
            data_version,
            topic_config_table: table,
            ..TopicConfigWrapper::default()
        },
    };
    let identity = &core.identity;
    Command::request(request_code::REGISTER_BROKER)
        .with_header(&header::RegisterBroker {
            broker_name: identity.name.as_str().into(),
            broker_addr: identity.advertised().into(),
            cluster_name: identity.cluster.as_str().into(),
            ha_server_addr: identity.ha_address.to_string().into(),
            broker_id: identity.id.get() as i64,
            heartbeat_timeout_millis: None,
            enable_acting_master: None,
            compressed: false,
            body_crc32: 0,
            zone_name: None,
        })
        .with_body(body.to_json())
}

pub(super) fn unregistration(core: &Core) -> Command {
    let identity = &core.identity;
    Command::request(request_code::UNREGISTER_BROKER).with_header(&header::BrokerHeader {
        broker_name: identity.name.as_str().into(),
        broker_addr: identity.advertised().into(),
        cluster_name: identity.cluster.as_str().into(),
        broker_id: identity.id.get() as i64,
    })
}

/// Takes the broker out of one NameServer.
pub(super) async fn leave(client: &Client, server: &str, command: Command) {
    let outcome: Result<Command, CallError> = client.call(server, command, LEAVE_WAIT).await;
    if let Err(error) = outcome {
        tracing::warn!(server, %error, "not unregistered");
    }
}

/// Leaves every NameServer, for the shutdown.
pub(crate) async fn unregister_all(core: &Core, client: &Client) {
    let servers = std::mem::take(&mut *lock(&core.registrar.registered));
    let mut calls = JoinSet::new();
    for server in servers {
        let (client, command) = (client.clone(), unregistration(core));
        calls.spawn(async move { leave(&client, &server, command).await });
    }
    while calls.join_next().await.is_some() {}
}
