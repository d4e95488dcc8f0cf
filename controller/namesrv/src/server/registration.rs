//! A registration request as the table takes it: names parsed, body read, numbers in range.
//!
//! **Invariant:** a header that makes no sense refuses the registration; a topic that makes none is
//! left out, so that one bad name does not take a broker's other topics from their clients.

use std::borrow::Cow;

use rmq_protocol::{
    body::{RegisterBrokerBody, TopicConfigWrapper},
    header::RegisterBroker,
    json,
};
use rmq_types::{BrokerId, BrokerName, ClusterName, TopicName};

use super::call::{Call, Refusal};
use crate::route::{QueueSettings, Registration, TopicSettings};

/// From here on the body holds more than the topic table (`V3_0_11`).
const VERSION_WHOLE_BODY: i32 = 37;
const ADDR_BYTES_MAX: usize = 280;
const ZONE_BYTES_MAX: usize = 255;
/// Field by which our own brokers say that the topics they send are all they have.
const COMPLETE_FIELD: &str = "topicTableComplete";

pub(super) fn read(call: &Call<'_>) -> Result<Registration, Refusal> {
    let header: RegisterBroker<'_> = call.fields()?;
    let cluster = ClusterName::parse(&header.cluster_name)
        .map_err(|error| Refusal::field("clusterName", error))?;
    let broker = BrokerName::parse(&header.broker_name)
        .map_err(|error| Refusal::field("brokerName", error))?;
    let id = u64::try_from(header.broker_id)
        .map_err(|_| Refusal::field("brokerId", "it must not be negative"))?;
    let addr = address(&header.broker_addr)?;
    if header.ha_server_addr.len() > ADDR_BYTES_MAX {
        return Err(Refusal::field("haServerAddr", "it is too long"));
    }
    let (body, filters_said) = read_body(call, &header)?;
    let wrapper = body.topic_config_serialize_wrapper;
    let named = wrapper.topic_config_table.len();
    let topics = topics(&wrapper);
    let topics_skipped = named - topics.len();
    if topics_skipped > 0 {
        tracing::warn!(%broker, addr, topics_skipped, "topics left out: bad name or queue numbers");
    }
    Ok(Registration {
        cluster,
        broker,
        id: BrokerId::new(id),
        addr,
        ha_addr: header.ha_server_addr.into_owned(),
        zone: zone(header.zone_name)?,
        silence_millis_max: header.heartbeat_timeout_millis,
        acting_master: header.enable_acting_master,
        version: wrapper.data_version,
        topics,
        topics_skipped,
        topics_complete: call.header.ext.is_true(COMPLETE_FIELD),
        mappings: wrapper
            .topic_queue_mapping_info_map
            .into_iter()
            .filter_map(|(name, mapping)| Some((TopicName::parse(&name).ok()?, mapping)))
            .collect(),
        filter_servers: filters_said.then_some(body.filter_server_list),
        connection: call.token(),
    })
}

/// The body, and whether it is of a kind that speaks of filter servers.
fn read_body(
    call: &Call<'_>,
    header: &RegisterBroker<'_>,
) -> Result<(RegisterBrokerBody, bool), Refusal> {
    let version = call.header.version;
    let body = RegisterBrokerBody::decode(call.body, header.compressed, header.body_crc32, version)
        .map_err(|error| Refusal::error(error.to_string()))?;
    // Brokers before 3.0.11 send the topic table alone; so do scripts that name no version.
    let nothing = body
        .topic_config_serialize_wrapper
        .topic_config_table
        .is_empty();
    if version < VERSION_WHOLE_BODY && nothing && !header.compressed && !call.body.is_empty() {
        let wrapper: TopicConfigWrapper =
            json::from_slice(call.body).map_err(|error| Refusal::body(&error))?;
        if !wrapper.topic_config_table.is_empty() {
            let topic_config_serialize_wrapper = wrapper;
            return Ok((
                RegisterBrokerBody {
                    topic_config_serialize_wrapper,
                    ..body
                },
                false,
            ));
        }
    }
    Ok((body, true))
}

fn topics(wrapper: &TopicConfigWrapper) -> Vec<TopicSettings> {
    let table = wrapper.topic_config_table.iter();
    let settings = table.filter_map(|(key, config)| {
        let name = if config.topic_name.is_empty() {
            key
        } else {
            &config.topic_name
        };
        let queues = QueueSettings {
            read_queues: config.read_queue_nums,
            write_queues: config.write_queue_nums,
            perm: config.perm,
            sys_flag: config.topic_sys_flag,
        };
        let name = TopicName::parse(name).ok()?;
        queues.is_sane().then_some(TopicSettings { name, queues })
    });
    settings.collect()
}

/// `host:port`, as clients will connect to it.
fn address(text: &str) -> Result<String, Refusal> {
    let legal = text.len() <= ADDR_BYTES_MAX
        && text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && !host
                    .chars()
                    .any(|char| char.is_whitespace() || char.is_control())
                && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
    if legal {
        Ok(text.to_owned())
    } else {
        Err(Refusal::field("brokerAddr", "it must be host:port"))
    }
}

fn zone(text: Option<Cow<'_, str>>) -> Result<Option<String>, Refusal> {
    match text {
        Some(text) if text.len() > ZONE_BYTES_MAX => {
            Err(Refusal::field("__ZONE_NAME", "it is too long"))
        }
        text => Ok(text
            .filter(|text| !text.trim().is_empty())
            .map(Cow::into_owned)),
    }
}
