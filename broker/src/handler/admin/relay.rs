//! Questions that a consumer answers, passed on over its own connection: running info (307),
//! consuming one message now (309), its offsets (223, asked with 221).
//!
//! **Invariant:** the question goes to the client that was named and to no other, and its answer
//! comes back as it is.

use std::{sync::Arc, time::Duration};

use rmq_net::CallError;
use rmq_protocol::{
    body::ConsumerStatusBody,
    header::{ConsumeDirectly, GetConsumerRunningInfo, GetConsumerStatus},
    message::OffsetId,
    remoting::{Command, request_code, response_code},
};
use rmq_types::CommitLogOffset;

use super::sessions::not_online;
use crate::{
    answer::{Answer, Failure, success},
    core::{Channel, Core, lock},
    handler::Call,
    namespace,
    session::Member,
};

/// How long one client may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one client may take to tell its offsets.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Code 307.
pub(super) fn running_info(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GetConsumerRunningInfo<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let request = passed_on(call);
    ask(core, &header.consumer_group, &header.client_id, request)
}

/// Code 309.
pub(super) fn consume_directly(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: ConsumeDirectly<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let group = header.consumer_group.as_ref();
    let missing = |field: &str| Failure::system(format!("the custom field <{field}> is null"));
    let client_id = header
        .client_id
        .as_deref()
        .ok_or_else(|| missing("clientId"))?;
    let id = header.msg_id.as_deref().ok_or_else(|| missing("msgId"))?;
    let record = record_of(core, id)?;
    let mut request = passed_on(call).with_body(record);
    request
        .ext
        .set("brokerName", core.identity.name.to_string());
    if let Some(topic) = &mut header.topic {
        namespace::join(&call.header.ext, topic);
        if let Some(config) = core.topics.get(topic) {
            request
                .ext
                .set("topicSysFlag", config.topic_sys_flag.to_string());
        }
    }
    if let Some(config) = core.groups.get(group) {
        request
            .ext
            .set("groupSysFlag", config.group_sys_flag.to_string());
    }
    ask(core, group, client_id, request)
}

/// The record that an offset id names.
fn record_of(core: &Core, id: &str) -> Result<Vec<u8>, Failure> {
    let id = OffsetId::parse(id).map_err(|error| {
        Failure::parameter(format!("the custom field <msgId> is no offset id: {error}"))
    })?;
    let none = || Failure::system(format!("can not find message by the offset, {}", id.offset));
    let offset = u64::try_from(id.offset).map_err(|_| none())?;
    let record = core
        .store
        .read_at(CommitLogOffset::new(offset))
        .map_err(|_| none())?;
    Ok(record.to_vec())
}

/// The same request with a number of its own.
fn passed_on(call: &Call<'_>) -> Command {
    let mut request = Command::request(call.header.code);
    request.ext = call.header.ext.clone().into_owned();
    request
}

fn ask(core: &Core, group: &str, client_id: &str, request: Command) -> Answer {
    let member = lock(&core.consumers).member(group, client_id);
    let Some(member) = member else {
        return Err(Failure::new(
            response_code::CONSUMER_NOT_ONLINE,
            format!("The Consumer <{group}> <{client_id}> not online"),
        ));
    };
    let answer = wait(core, &member, request, ANSWER_TIMEOUT);
    answer.map_err(|error| {
        let code = match error {
            CallError::Timeout { .. } => response_code::CONSUME_MSG_TIMEOUT,
            CallError::Connect { .. }
            | CallError::ConnectTimeout { .. }
            | CallError::Closed { .. }
            | CallError::Send { .. }
            | CallError::TooManyPending { .. } => response_code::SYSTEM_ERROR,
        };
        Failure::new(code, format!("consumer <{group}> <{client_id}>: {error}"))
    })
}

fn wait(
    core: &Core,
    member: &Member<Channel>,
    request: Command,
    limit: Duration,
) -> Result<Command, CallError> {
    core.workers
        .handle()
        .block_on(member.channel.call(request, limit))
}

/// Code 223: each member, or the one named, tells its offsets; those that do not answer are left out.
pub(super) fn consumer_status(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GetConsumerStatus<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.group);
    let group = header.group.as_ref();
    let view = lock(&core.consumers)
        .view(group)
        .ok_or_else(|| not_online(group))?;
    let wanted = header
        .client_addr
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty());
    let members = view.members.iter();
    let mut body = ConsumerStatusBody::default();
    for member in members.filter(|member| wanted.is_none_or(|id| id == member.client_id)) {
        let request = Command::request(request_code::GET_CONSUMER_STATUS_FROM_CLIENT)
            .with_ext("topic", header.topic.to_string())
            .with_ext("group", group);
        match wait(core, member, request, STATUS_TIMEOUT) {
            Ok(answer) if answer.code == response_code::SUCCESS => {
                let status = ConsumerStatusBody::from_json(&answer.body)?;
                body.consumer_table
                    .insert(member.client_id.clone(), status.message_queue_table);
            }
            Ok(answer) => {
                tracing::warn!(
                    group,
                    client = member.client_id,
                    code = answer.code,
                    "no status"
                );
            }
            Err(error) => tracing::warn!(group, client = member.client_id, %error, "no status"),
        }
    }
    Ok(success().with_body(body.to_json()))
}
