//! Replies of request/reply (codes 324 and 325): pushed to the client that asked (code 326), found
//! by its id among the producers, and stored in the reply topic when settings say so.

use std::{sync::Arc, time::Duration};

use rmq_protocol::{
    header::{PushReplyMessage, SendMessageResponse, SendMessageV1, SendMessageV2},
    message::properties::{self, names},
    remoting::{Command, request_code, response_code},
};
use rmq_store::Append;
use rmq_types::system;

use super::{Call, send};
use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    metrics::MessageType,
    namespace,
};

/// How long the asking client may take to confirm.
const PUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Codes 324 and 325.
pub(crate) fn send_reply(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: SendMessageV2<'_> = if call.header.code == request_code::SEND_REPLY_MESSAGE {
        call.decode::<SendMessageV1<'_>>()?.into()
    } else {
        call.decode()?
    };
    namespace::join(&call.header.ext, &mut header.topic);
    let settings = core.settings.get();
    let (region, trace) = (settings.region_id.as_str(), settings.trace_on.to_string());
    let text = header.properties.as_deref().unwrap_or_default().as_bytes();
    let mut marked = Vec::with_capacity(text.len() + 64);
    properties::copy_without(text, &[names::MSG_REGION, names::TRACE_ON], &mut marked);
    properties::push(&mut marked, names::MSG_REGION, region.as_bytes());
    properties::push(&mut marked, names::TRACE_ON, trace.as_bytes());
    let text = marked.as_slice();
    let pushed = push(core, call, &header, text);
    let reply_topic = format!("{}{}", core.identity.cluster, system::REPLY_TOPIC_SUFFIX);
    let stored = if settings.store_reply_message_enable {
        Some(store(core, call, &header, &reply_topic, text)?)
    } else {
        None
    };
    pushed?;
    let answer = match stored {
        Some(answer) => answer,
        None => success().with_header(&SendMessageResponse {
            msg_id: "0".into(),
            queue_id: 0,
            queue_offset: 0,
            transaction_id: None,
            batch_uniq_id: None,
            recall_handle: None,
        }),
    };
    let answer = answer.with_ext(names::MSG_REGION, region.to_owned());
    Ok(answer.with_ext(names::TRACE_ON, trace))
}

fn push(
    core: &Arc<Core>,
    call: &Call<'_>,
    header: &SendMessageV2<'_>,
    text: &[u8],
) -> Result<(), Failure> {
    let asker = properties::get_str(text, names::REPLY_TO_CLIENT)
        .ok_or_else(|| Failure::system("reply message has no REPLY_TO_CLIENT property"))?;
    let producer = lock(&core.producers).by_client_id(asker);
    let Some(producer) = producer else {
        return Err(Failure::system(format!(
            "push reply message to {asker} fail, channel is null"
        )));
    };
    let now = core.now();
    let mut properties = text.to_vec();
    properties::push(
        &mut properties,
        names::PUSH_REPLY_TIME,
        now.millis().to_string().as_bytes(),
    );
    let command = Command::request(request_code::PUSH_REPLY_MESSAGE_TO_CLIENT)
        .with_header(&PushReplyMessage {
            producer_group: header.producer_group.as_ref().into(),
            topic: header.topic.as_ref().into(),
            default_topic: header.default_topic.as_ref().into(),
            default_topic_queue_nums: header.default_topic_queue_nums,
            queue_id: header.queue_id,
            sys_flag: header.sys_flag,
            born_timestamp: header.born_timestamp,
            flag: header.flag,
            properties: Some(String::from_utf8_lossy(&properties)),
            reconsume_times: Some(header.reconsume_times.unwrap_or(0)),
            unit_mode: header.unit_mode,
            born_host: call.conn.peer_addr().to_string().into(),
            store_host: core.identity.advertised().into(),
            store_timestamp: now.millis(),
        })
        .with_body(call.body.to_vec());
    let answer = core
        .workers
        .handle()
        .block_on(producer.channel.call(command, PUSH_TIMEOUT));
    match answer {
        Ok(answer) if answer.code == response_code::SUCCESS => Ok(()),
        Ok(answer) => Err(Failure::system(format!(
            "push reply message to {asker} fail: {}",
            answer.remark.unwrap_or_default()
        ))),
        Err(error) => Err(Failure::system(format!(
            "push reply message to {asker} fail: {error}"
        ))),
    }
}

fn store(
    core: &Arc<Core>,
    call: &Call<'_>,
    header: &SendMessageV2<'_>,
    topic: &str,
    text: &[u8],
) -> Answer {
    let born_host = call.conn.peer_addr();
    let appended = core.store.append_one(&Append {
        topic,
        queue_id: 0,
        tags_code: properties::tags_code(text),
        flag: header.flag,
        sys_flag: header.sys_flag,
        born_at: header.born_timestamp,
        born_host,
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body: call.body,
        properties: text,
    });
    let appended = appended.map_err(|error| Failure::from(&error))?;
    let bytes = u64::from(appended.bytes);
    core.stats.stored(topic, MessageType::Normal, (1, bytes));
    let mut id = String::new();
    send::offset_id(core, appended.offset).write(&mut id);
    Ok(success().with_header(&SendMessageResponse {
        msg_id: id.into(),
        queue_id: 0,
        queue_offset: appended.queue_offset.get() as i64,
        transaction_id: None,
        batch_uniq_id: None,
        recall_handle: None,
    }))
}
