//! SendMessage: one request of a client becomes one request to one broker.
//!
//! **Invariant:** a request is sent a second time only if the first certainly never reached a
//! broker. A message group always goes to its own queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmq_protocol::header::{SendMessageResponse as Stored, SendMessageV2};
use rmq_protocol::message::OffsetId;
use rmq_protocol::remoting::{Command, request_code, response_code};
use rmq_types::system;

use crate::backend::{fields, request};
use crate::proto::v2::{
    Code, MessageType, SendMessageRequest, SendMessageResponse, SendResultEntry, Status,
};
use crate::rpc::{Context, Gateway};
use crate::rules::outgoing::{Batch, Bounds};
use crate::rules::refusal::{self, Refusal};
use crate::rules::route::{Place, Route};
use crate::rules::transactions::Half;

/// A broker's time for a send: its own waits for disk and replicas are shorter.
const WITHIN: Duration = Duration::from_secs(5);

/// What the answer needs of a batch that is gone.
struct Sent {
    topic: String,
    ids: Vec<String>,
    kind: MessageType,
}

pub(super) async fn send(
    gateway: Arc<Gateway>,
    context: Context,
    asked: SendMessageRequest,
) -> Result<SendMessageResponse, Refusal> {
    let bounds = Bounds {
        body_bytes_max: gateway.options.limits.body_bytes_max,
        now: gateway.now(),
    };
    let batch = Batch::new(asked.messages, bounds)?;
    let route = gateway.cluster.route(&batch.topic).await?;
    if gateway.options.check_message_type {
        let kind = gateway.cluster.kind(&batch.topic, &route).await?;
        for message in &batch.messages {
            kind.check(&batch.topic, message.kind)?;
        }
    }
    let group = batch.message_group().map(str::to_owned);
    let sent = Sent {
        topic: batch.topic.clone(),
        ids: batch.messages.iter().map(|one| one.id.clone()).collect(),
        kind: batch
            .messages
            .first()
            .map_or(MessageType::Normal, |one| one.kind),
    };
    let (mut header, cmd) = prepared(batch)?;
    let within = context.within(WITHIN);
    let mut avoided = None;
    let mut tries = 0;
    loop {
        tries += 1;
        let place = place(&gateway, &route, group.as_deref(), avoided.as_deref())?;
        header.queue_id = place.queue;
        header.broker_name = Some(place.broker.to_owned().into());
        let cmd = cmd.clone().with_header(&header);
        match gateway.cluster.exchange(place.addr, cmd, within).await {
            Ok(answer) => return stored(&gateway, sent, place.broker, &answer),
            Err(error) => {
                gateway.cluster.forget_route(&sent.topic);
                if tries > 1 || !error.is_unsent() || group.is_some() {
                    return Err(Refusal::of_call(&error));
                }
                avoided = Some(place.broker.to_owned());
            }
        }
    }
}

fn place<'r>(
    gateway: &Gateway,
    route: &'r Route,
    group: Option<&str>,
    avoided: Option<&str>,
) -> Result<Place<'r>, Refusal> {
    let place = match group {
        Some(group) => route.of_group(group),
        None => route.in_turn(gateway.turn.fetch_add(1, Ordering::Relaxed), avoided),
    };
    place.ok_or_else(|| Refusal::new(Code::Forbidden, "no writable queue"))
}

/// The header and the request without it: the queue is chosen at each try.
fn prepared(batch: Batch) -> Result<(SendMessageV2<'static>, Command), Refusal> {
    let topic = batch.topic.clone();
    let born_timestamp = batch.messages.first().map_or(0, |one| one.born_at);
    let (body, properties, sys_flag, is_batch) = batch.into_request();
    let properties = String::from_utf8(properties)
        .map_err(|_| Refusal::internal("the properties are no text"))?;
    let header = SendMessageV2 {
        // 5.x producers have no group: the topic stands for it.
        producer_group: topic.clone().into(),
        topic: topic.into(),
        default_topic: system::AUTO_CREATE_TOPIC.into(),
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag,
        born_timestamp,
        flag: 0,
        properties: Some(properties.into()),
        reconsume_times: Some(0),
        unit_mode: false,
        max_reconsume_times: None,
        batch: is_batch,
        broker_name: None,
    };
    let code = if is_batch {
        request_code::SEND_BATCH_MESSAGE
    } else {
        request_code::SEND_MESSAGE_V2
    };
    Ok((header, Command::request(code).with_body(body)))
}

fn stored(
    gateway: &Gateway,
    sent: Sent,
    broker: &str,
    answer: &Command,
) -> Result<SendMessageResponse, Refusal> {
    let status = match answer.code {
        response_code::SUCCESS => refusal::ok(),
        // Stored, but not yet as safely as asked for: the header is there, and no ids are told.
        response_code::FLUSH_DISK_TIMEOUT
        | response_code::FLUSH_SLAVE_TIMEOUT
        | response_code::SLAVE_NOT_AVAILABLE => {
            let status = Refusal::of_answer(answer.code, answer.remark.as_deref()).status();
            let entry = SendResultEntry {
                status: Some(status.clone()),
                ..SendResultEntry::default()
            };
            return Ok(SendMessageResponse {
                status: Some(status),
                entries: vec![entry; sent.ids.len()],
            });
        }
        code => return Err(Refusal::of_answer(code, answer.remark.as_deref())),
    };
    let header: Stored<'_> = fields(answer)?;
    let transaction = match sent.kind {
        MessageType::Transaction => began(gateway, &sent, broker, &header),
        _ => String::new(),
    };
    let entries = (0..)
        .zip(sent.ids)
        .map(|(index, message_id)| SendResultEntry {
            status: Some(status.clone()),
            message_id,
            transaction_id: transaction.clone(),
            offset: header.queue_offset.saturating_add(index),
            recall_handle: header.recall_handle.as_deref().unwrap_or_default().into(),
        });
    let entries: Vec<_> = entries.collect();
    let all: Vec<&Status> = entries
        .iter()
        .filter_map(|one| one.status.as_ref())
        .collect();
    Ok(SendMessageResponse {
        status: Some(refusal::overall(all)),
        entries,
    })
}

/// Remembers a half message and names its transaction.
fn began(gateway: &Gateway, sent: &Sent, broker: &str, header: &Stored<'_>) -> String {
    let message_id = sent.ids.first().cloned().unwrap_or_default();
    let id = match header.transaction_id.as_deref() {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => message_id.clone(),
    };
    if let Ok(place) = OffsetId::parse(&header.msg_id) {
        let half = Half {
            broker: broker.to_owned(),
            queue_offset: header.queue_offset,
            commit_log_offset: place.offset,
            message_id,
        };
        let now = gateway.now();
        gateway.transactions().began(&sent.topic, &id, half, now);
    }
    id
}

/// A one-way request that ends a transaction.
pub(super) fn end_of(
    topic: &str,
    half: &Half,
    transaction: &str,
    commit_or_rollback: i32,
    from_check: bool,
) -> Command {
    let header = rmq_protocol::header::EndTransaction {
        topic: Some(topic.to_owned().into()),
        producer_group: topic.to_owned().into(),
        tran_state_table_offset: half.queue_offset,
        commit_log_offset: half.commit_log_offset,
        commit_or_rollback,
        from_transaction_check: from_check,
        msg_id: half.message_id.clone().into(),
        transaction_id: Some(transaction.to_owned().into()),
    };
    let mut cmd = request(request_code::END_TRANSACTION, &header);
    cmd.flag |= rmq_protocol::remoting::FLAG_ONEWAY;
    cmd
}
