//! Who is connected: consumers of a group (203), producers of a group (204), all producers (328).

use std::sync::Arc;

use rmq_protocol::{
    body::{Connection, ConsumerConnection, ProducerConnection, ProducerInfo, ProducerTable},
    header::{ConsumerGroupHeader, ProducerGroupHeader},
    remoting::response_code,
};

use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    handler::Call,
    namespace,
};

/// A group without online members.
pub(super) fn not_online(group: &str) -> Failure {
    Failure::new(
        response_code::CONSUMER_NOT_ONLINE,
        format!("the consumer group[{group}] not online"),
    )
}

/// Code 203.
pub(super) fn consumers(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: ConsumerGroupHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let view = lock(&core.consumers).view(&header.consumer_group);
    let view = view.ok_or_else(|| not_online(&header.consumer_group))?;
    let members = view.members.into_iter().map(|member| Connection {
        client_addr: member.channel.peer_addr().to_string(),
        client_id: member.client_id,
        language: member.language.name().to_owned(),
        version: member.version,
    });
    let body = ConsumerConnection {
        connection_set: members.collect(),
        consume_from_where: view.from_where,
        consume_type: view.consume_type,
        message_model: view.model,
        subscription_table: view.subscriptions,
    };
    Ok(success().with_body(body.to_json()))
}

/// Code 204.
pub(super) fn producers(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: ProducerGroupHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.producer_group);
    let members = lock(&core.producers).members(&header.producer_group);
    let members = members.ok_or_else(|| {
        Failure::system(format!(
            "the producer group[{}] not exist",
            header.producer_group
        ))
    })?;
    let members = members.into_iter().map(|member| Connection {
        client_addr: member.channel.peer_addr().to_string(),
        client_id: member.client_id,
        language: member.language.name().to_owned(),
        version: member.version,
    });
    Ok(success().with_body(
        ProducerConnection {
            connection_set: members.collect(),
        }
        .to_json(),
    ))
}

/// Code 328.
pub(super) fn all_producers(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let mut body = ProducerTable::default();
    for (group, members) in lock(&core.producers).iter() {
        let members = members.into_iter().map(|member| ProducerInfo {
            client_id: member.client_id.clone(),
            language: member.language.name().to_owned(),
            last_update_timestamp: member.seen.millis(),
            remote_ip: member.channel.peer_addr().to_string(),
            version: member.version,
        });
        body.data.insert(group.to_owned(), members.collect());
    }
    Ok(success().with_body(body.to_json()))
}
