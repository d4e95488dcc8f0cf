//! ReceiveMessage: a pop at one broker, streamed to the client.
//!
//! **Invariant:** the pop lives in a task of its own: a client that goes away while it waits does
//! not take the messages with it, they are made visible again at once. Every popped message ends as
//! one of: given, kept for renewal and given, acknowledged because no filter wants it, moved to the
//! dead-letter topic, given back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmq_protocol::header::{POP_INIT_MAX, PopMessage, PopMessageResponse};
use rmq_protocol::message::Record;
use rmq_protocol::message::properties::{self, names};
use rmq_protocol::remoting::{Command, request_code, response_code};
use rmq_types::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::delivery::{Delivery, Parcel};
use crate::backend::{REQUEST_TIMEOUT, fields, request};
use crate::proto::v2::{Code, FilterExpression, FilterType, ReceiveMessageRequest, Resource};
use crate::rpc::{Context, Gateway, no_seat};
use crate::rules::handle::Handles;
use crate::rules::incoming::{self, Popped};
use crate::rules::refusal::{self, Refusal};
use crate::rules::renewal::{Kept, Owner};
use crate::rules::settings::{GroupTerms, RECEIVE_BATCH_MAX, request_timeout};
use crate::rules::{polling, validate};

/// A receive that was checked.
struct Plan {
    owner: Owner,
    named: Resource,
    topic: String,
    terms: Arc<GroupTerms>,
    broker: String,
    addr: String,
    filter: Filter,
    wait: Duration,
    invisible: Duration,
    renew: bool,
    batch: i32,
    attempt_id: Option<String>,
}

/// What a consumer wants of a topic.
struct Filter {
    kind: &'static str,
    expression: String,
}

impl Filter {
    fn new(told: Option<FilterExpression>) -> Self {
        let told = told.unwrap_or_default();
        let kind = match told.r#type() {
            FilterType::Sql => "SQL92",
            FilterType::Tag | FilterType::Unspecified => "TAG",
        };
        let expression = match told.expression.trim() {
            "" => "*".to_owned(),
            text => text.to_owned(),
        };
        Self { kind, expression }
    }

    /// Brokers compare hashes of tags; this compares the tags.
    fn wants(&self, record: &Record<'_>) -> bool {
        if self.kind != "TAG" || self.expression == "*" {
            return true;
        }
        let tag = properties::get_str(record.properties, names::TAGS);
        self.expression
            .split("||")
            .any(|wanted| Some(wanted.trim()) == tag)
    }
}

pub(super) async fn receive(
    gateway: &Arc<Gateway>,
    context: Result<Context, Refusal>,
    request: ReceiveMessageRequest,
) -> Delivery {
    let outcome = match context {
        Ok(context) => attempt(gateway, context, request).await,
        Err(refusal) => Err(refusal),
    };
    let code = outcome
        .as_ref()
        .map_or_else(|refusal| refusal.code, |_| Code::Ok);
    gateway.metrics.count("ReceiveMessage", code.into());
    outcome.unwrap_or_else(|refusal| Delivery::empty(gateway, refusal.status()))
}

async fn attempt(
    gateway: &Arc<Gateway>,
    context: Context,
    request: ReceiveMessageRequest,
) -> Result<Delivery, Refusal> {
    let seat = Arc::clone(&gateway.receives)
        .try_acquire_owned()
        .map_err(|_| no_seat())?;
    if !gateway.deliveries.has_room() {
        let text = "flow limit: too many messages wait for clients that do not read";
        return Err(Refusal::new(Code::TooManyRequests, text));
    }
    let plan = plan(gateway, context, request).await?;
    let mut stopping = gateway.stopping.subscribe();
    let (sender, receiver) = oneshot::channel();
    let _waiting = Waiting::begin(gateway);
    let task = Arc::clone(gateway);
    gateway.tasks.spawn(async move {
        let outcome = pop(&task, plan, seat).await;
        // A delivery that nobody takes gives its messages back when it is dropped.
        let _ = sender.send(outcome);
    });
    tokio::select! {
        outcome = receiver => {
            outcome.unwrap_or_else(|_| Err(Refusal::internal("the gateway is stopping")))
        }
        _ = stopping.wait_for(|stop| *stop) => {
            Err(Refusal::new(Code::MessageNotFound, "the gateway is stopping"))
        }
    }
}

/// Counts a client that waits, until it goes away.
struct Waiting<'g>(&'g Gateway);

impl<'g> Waiting<'g> {
    fn begin(gateway: &'g Gateway) -> Self {
        gateway.waiting.fetch_add(1, Ordering::Relaxed);
        Self(gateway)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn plan(
    gateway: &Gateway,
    context: Context,
    request: ReceiveMessageRequest,
) -> Result<Plan, Refusal> {
    let queue = request.message_queue.unwrap_or_default();
    let topic = validate::topic(queue.topic.as_ref())?;
    let group = validate::group(request.group.as_ref())?;
    if request.batch_size < 1 {
        return Err(Refusal::new(Code::BadRequest, "the batch size is below 1"));
    }
    let session = gateway.sessions.seen(&context.client, gateway.now());
    let timeout = session.map_or(REQUEST_TIMEOUT, |it| request_timeout(&it.settings));
    let asked = request.long_polling_timeout.as_ref();
    let wait = polling::wait(asked.and_then(polling::duration), context.left, timeout)?;
    let invisible = if request.auto_renew {
        polling::RENEWED_INVISIBLE
    } else {
        let asked = request.invisible_duration.as_ref();
        polling::of_receive(asked.and_then(polling::duration))?
    };
    let route = gateway.cluster.route(&topic).await?;
    let wanted = queue.broker.map(|broker| broker.name).unwrap_or_default();
    let Some((broker, addr)) = route.reader(&wanted) else {
        return Err(Refusal::new(Code::Forbidden, "no readable queue"));
    };
    Ok(Plan {
        terms: gateway.cluster.group(&group).await?,
        owner: Owner {
            client: context.client,
            group,
        },
        named: queue.topic.unwrap_or_default(),
        broker: broker.to_owned(),
        addr: addr.to_owned(),
        topic,
        filter: Filter::new(request.filter_expression),
        wait,
        invisible,
        renew: request.auto_renew,
        batch: request.batch_size.min(RECEIVE_BATCH_MAX),
        attempt_id: request.attempt_id,
    })
}

fn command(plan: &Plan, now: Timestamp) -> Command {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let header = PopMessage {
        consumer_group: plan.owner.group.clone().into(),
        topic: plan.topic.clone().into(),
        queue_id: -1,
        max_msg_nums: plan.batch,
        invisible_time: millis(plan.invisible),
        poll_time: millis(plan.wait),
        born_time: now.millis(),
        init_mode: POP_INIT_MAX,
        exp_type: Some(plan.filter.kind.into()),
        exp: Some(plan.filter.expression.clone().into()),
        order: plan.terms.fifo,
        attempt_id: plan.attempt_id.clone().map(Into::into),
    };
    request(request_code::POP_MESSAGE, &header)
}

async fn pop(
    gateway: &Arc<Gateway>,
    plan: Plan,
    seat: OwnedSemaphorePermit,
) -> Result<Delivery, Refusal> {
    let cmd = command(&plan, gateway.now());
    let within = plan.wait + REQUEST_TIMEOUT;
    let answer = gateway.cluster.exchange(&plan.addr, cmd, within).await;
    let answer = answer.map_err(|error| {
        gateway.cluster.forget_route(&plan.topic);
        Refusal::of_call(&error)
    })?;
    match answer.code {
        response_code::SUCCESS => {}
        response_code::POLLING_FULL => {
            let text = "too many receives wait at the broker";
            return Err(Refusal::new(Code::TooManyRequests, text));
        }
        response_code::POLLING_TIMEOUT | response_code::PULL_NOT_FOUND => {
            return Err(nothing());
        }
        code => return Err(Refusal::of_answer(code, answer.remark.as_deref())),
    }
    let parcels = sorted(gateway, &plan, &answer)?;
    if parcels.is_empty() {
        return Err(nothing());
    }
    if plan.renew {
        keep(gateway, &plan, &parcels);
    }
    let owner = plan.owner;
    Ok(Delivery::of(gateway, refusal::ok(), owner, parcels, seat))
}

fn nothing() -> Refusal {
    Refusal::new(Code::MessageNotFound, "no new message")
}

/// The messages of an answer that are for the client; the others go their way.
fn sorted(gateway: &Arc<Gateway>, plan: &Plan, answer: &Command) -> Result<Vec<Parcel>, Refusal> {
    let header: PopMessageResponse<'_> = fields(answer)?;
    let handles = Handles::new(&header, &plan.broker)?;
    let invisible = Duration::from_millis(u64::try_from(header.invisible_time).unwrap_or(0));
    let mut parcels = Vec::new();
    let mut rest = &answer.body[..];
    while !rest.is_empty() {
        let (record, length) = match Record::decode(rest) {
            Ok(read) => read,
            Err(error) => {
                // What was read is delivered; the rest comes again after its invisible time.
                tracing::error!(broker = plan.broker, %error, "a popped record cannot be read");
                break;
            }
        };
        rest = rest.get(length..).unwrap_or_default();
        let handle = handles.of(&record)?;
        if !plan.filter.wants(&record) {
            gateway.ack_unwanted(&plan.owner, &plan.topic, handle);
            continue;
        }
        let consumed = handles.consumed(&record);
        if consumed >= plan.terms.max_attempts {
            let id = incoming::message_id(&record);
            gateway.bury(&plan.owner, &plan.topic, handle, id);
            continue;
        }
        let popped = Popped {
            topic: &plan.named,
            handle: handle.clone(),
            consumed,
            invisible,
        };
        parcels.push(Parcel {
            message: incoming::message(&record, popped),
            handle,
            topic: plan.topic.clone(),
        });
    }
    Ok(parcels)
}

fn keep(gateway: &Gateway, plan: &Plan, parcels: &[Parcel]) {
    let now = gateway.now();
    let visible_at = now.plus_millis(i64::try_from(plan.invisible.as_millis()).unwrap_or(i64::MAX));
    let mut table = gateway.renewals();
    for parcel in parcels {
        let system = parcel.message.system_properties.as_ref();
        let attempt = system.and_then(|system| system.delivery_attempt);
        let kept = Kept {
            topic: plan.topic.clone(),
            handle: parcel.handle.clone(),
            visible_at,
            consumed: attempt.unwrap_or(1) - 1,
        };
        if !table.keep(&plan.owner, kept, now) {
            gateway.metrics.not_kept.fetch_add(1, Ordering::Relaxed);
        }
    }
}
