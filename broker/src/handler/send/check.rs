//! Whether a send is allowed, and the topic it makes when settings let it (`msgCheck`).

use rmq_protocol::{
    body::TopicConfig,
    header::{SendMessageV1, SendMessageV2},
    remoting::request_code,
};
use rmq_types::{TopicName, system};

use crate::{
    answer::Failure,
    config::Settings,
    core::Core,
    handler::Call,
    metadata::{PERM_INHERIT, PERM_READ, PERM_WRITE},
    namespace,
};

/// Reads either form of the header, with the namespace joined in.
pub(super) fn decode<'a>(call: &Call<'a>) -> Result<SendMessageV2<'a>, Failure> {
    let mut header: SendMessageV2<'a> = if call.header.code == request_code::SEND_MESSAGE {
        call.decode::<SendMessageV1<'a>>()?.into()
    } else {
        call.decode()?
    };
    namespace::join(&call.header.ext, &mut header.topic);
    Ok(header)
}

/// The name rules: alphabet and length first, before anything touches a table or the disk.
pub(super) fn check_name(topic: &str) -> Result<(), Failure> {
    TopicName::check_for_client(topic)?;
    if system::is_send_denied(topic) {
        return Err(Failure::no_permission(format!(
            "Sending message to topic[{topic}] is forbidden."
        )));
    }
    Ok(())
}

/// Finds or makes the topic of a send. Not on an io thread.
pub(crate) fn topic_for_send(
    core: &Core,
    settings: &Settings,
    call: &Call<'_>,
) -> Result<(), Failure> {
    let header = decode(call)?;
    let topic = header.topic.as_ref();
    check_name(topic)?;
    if core.topics.contains(topic) {
        return Ok(());
    }
    if topic.starts_with(system::RETRY_PREFIX) {
        core.own_topic(topic, 1, PERM_READ | PERM_WRITE)?;
        return Ok(());
    }
    if topic.starts_with(system::DLQ_PREFIX) {
        return Err(Failure::no_topic(topic));
    }
    let template = core.topics.get(&header.default_topic).filter(|found| {
        found.perm & PERM_INHERIT != 0
            && (header.default_topic != system::AUTO_CREATE_TOPIC
                || settings.auto_create_topic_enable)
    });
    let Some(template) = template else {
        return Err(Failure::no_topic(topic));
    };
    let queues = header
        .default_topic_queue_nums
        .clamp(0, template.write_queue_nums);
    let made = TopicConfig {
        read_queue_nums: queues,
        write_queue_nums: queues,
        perm: template.perm & !PERM_INHERIT,
        topic_filter_type: template.topic_filter_type,
        ..TopicConfig::named(topic)
    };
    tracing::info!(topic, queues, "topic made by a send");
    core.put_topics(vec![made])?;
    Ok(())
}
