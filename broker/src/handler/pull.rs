//! Pulls: codes 11 and 361, with long polling.
//!
//! The answer's records are copied once, from the log into the outgoing buffer.

use std::{borrow::Cow, sync::Arc};

use bytes::BytesMut;
use rmq_net::Outbox;
use rmq_protocol::{
    body::{MessageModel, SubscriptionGroupConfig, TopicConfig},
    header::{PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND, PullMessage},
    message::{
        Record,
        properties::{self, names},
    },
    remoting::{ResponseWriter, request_code, response_code},
};
use rmq_store::{ReadOutcome, ReadRequest, ReadStatus};
use rmq_types::{GroupName, system};

use super::{Call, send::write_failure};
use crate::{
    answer::Failure,
    arrival::HeldPull,
    config::Settings,
    core::{Core, lock},
    hold::Waiter,
    metadata::PERM_READ,
    namespace,
    session::{Found, subscription::TagFilter},
    stats::Stat,
};

/// Whether a code is a pull.
pub(crate) const fn is_pull(code: i32) -> bool {
    matches!(
        code,
        request_code::PULL_MESSAGE | request_code::LITE_PULL_MESSAGE
    )
}

/// Room that the header of an answer may take beside its records.
pub(crate) const ANSWER_BYTES_MAX: usize = rmq_types::limits::FRAME_BYTES_MAX - 64 * 1024;

struct Admitted<'a> {
    header: PullMessage<'a>,
    filter: TagFilter,
    topic: Arc<TopicConfig>,
}

/// Serves one pull.
pub(crate) fn serve(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    let settings = core.settings.get();
    let admitted = match admit(core, &settings, call) {
        Ok(Some(admitted)) => admitted,
        Ok(None) => {
            defer(core, call, out);
            return;
        }
        Err(refused) => {
            refuse(core, call, &refused, out.buffer());
            return;
        }
    };
    answer(core, &settings, call, &admitted, out.buffer());
}

/// Commits, reads, and answers or lets the pull wait.
fn answer(
    core: &Arc<Core>,
    settings: &Settings,
    call: &Call<'_>,
    admitted: &Admitted<'_>,
    out: &mut BytesMut,
) {
    let header = &admitted.header;
    commit(core, header);
    let outcome = read(core, settings, header, &admitted.filter);
    let code = code_of(&outcome, header.queue_offset);
    let waits = code == response_code::PULL_NOT_FOUND
        && header.sys_flag & PULL_SUSPEND != 0
        && header.suspend_timeout_millis > 0;
    if waits && hold(core, settings, call, admitted) {
        return;
    }
    note(core, header, &outcome);
    let found = (code, &outcome);
    write(call.header.opaque, header, &admitted.topic, found, out);
    core.rpc
        .record(call.answered(code), call.since.elapsed(), 1);
}

fn refuse(core: &Core, call: &Call<'_>, refused: &Refused, out: &mut BytesMut) {
    write_refused(out, call.header.opaque, refused);
    let answered = call.answered(refused.failure.code);
    core.rpc.record(answered, call.since.elapsed(), 1);
}

/// A pull whose group must be made first.
fn defer(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    let (shared, conn) = (Arc::clone(core), Arc::clone(call.conn));
    let (header, since) = (call.header.clone().into_owned(), call.since);
    let queue_max = core.settings.get().admin_queue_capacity.get() as usize;
    let outcome = core.workers.run(queue_max, move || {
        let group = header.ext.get("consumerGroup").unwrap_or_default();
        let mut group = Cow::Borrowed(group);
        namespace::join(&header.ext, &mut group);
        let mut buffer = BytesMut::new();
        let call = Call {
            conn: &conn,
            header: &header,
            body: &[],
            since,
        };
        let settings = shared.settings.get();
        let admitted = match shared.find_group(&group) {
            Ok(_) => admit(&shared, &settings, &call),
            Err(failure) => Err(failure.into()),
        };
        match admitted {
            Ok(Some(admitted)) => answer(&shared, &settings, &call, &admitted, &mut buffer),
            Ok(None) => refuse(
                &shared,
                &call,
                &Failure::no_group(&group).into(),
                &mut buffer,
            ),
            Err(refused) => refuse(&shared, &call, &refused, &mut buffer),
        }
        if !buffer.is_empty() {
            let _ = conn.send_frame(&buffer);
        }
    });
    if let Err(failure) = outcome {
        refuse(core, call, &failure.into(), out.buffer());
    }
}

struct Refused {
    failure: Failure,
    forbidden: Option<i64>,
}

impl<E: Into<Failure>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self {
            failure: error.into(),
            forbidden: None,
        }
    }
}

fn forbidden(kind: i64, remark: impl Into<String>) -> Refused {
    Refused {
        failure: Failure::no_permission(remark),
        forbidden: Some(kind),
    }
}

/// All checks, in Java's order. `None`: the group does not exist yet but may be made.
fn admit<'a>(
    core: &Core,
    settings: &Settings,
    call: &Call<'a>,
) -> Result<Option<Admitted<'a>>, Refused> {
    let mut header: PullMessage<'a> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    if settings.broker_permission.get() as i32 & PERM_READ == 0 {
        return Err(forbidden(1, "the broker pulling message is forbidden"));
    }
    if call.header.code == request_code::LITE_PULL_MESSAGE && !settings.lite_pull_message_enable {
        return Err(forbidden(1, "the broker lite pulling message is forbidden"));
    }
    let group = header.consumer_group.as_ref();
    let Some(config) = core.groups.get(group) else {
        let may_be_made =
            settings.auto_create_subscription_group && GroupName::check(group).is_ok();
        return if may_be_made {
            Ok(None)
        } else {
            Err(Failure::no_group(group).into())
        };
    };
    if !config.consume_enable {
        return Err(forbidden(
            2,
            format!("subscription group no permission, {group}"),
        ));
    }
    let topic = core.topic(&header.topic)?;
    if topic.perm & PERM_READ == 0 {
        return Err(forbidden(
            3,
            format!("the topic[{}] pulling message is forbidden", header.topic),
        ));
    }
    if header.queue_id < 0 || header.queue_id >= topic.read_queue_nums {
        return Err(Failure::parameter(format!(
            "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[{}]",
            header.queue_id,
            header.topic,
            topic.read_queue_nums,
            call.conn.peer_addr()
        ))
        .into());
    }
    if core.groups.is_unreadable(group, &header.topic) {
        let remark = format!(
            "the consumer group[{group}] is forbidden for topic[{}]",
            header.topic
        );
        return Err(forbidden(5, remark));
    }
    let filter = filter_of(core, (&header, &config), settings)?;
    Ok(Some(Admitted {
        header,
        filter,
        topic,
    }))
}

/// The filter of a pull: from the request itself, or from the group's last heartbeat.
fn filter_of(
    core: &Core,
    (header, config): (&PullMessage<'_>, &SubscriptionGroupConfig),
    settings: &Settings,
) -> Result<TagFilter, Refused> {
    let own_retry = header.topic.starts_with(system::RETRY_PREFIX);
    let (expression, kind): (Cow<'_, str>, Cow<'_, str>) = if header.sys_flag & PULL_SUBSCRIPTION
        != 0
    {
        let expression = header.subscription.as_deref().unwrap_or("*");
        (
            expression.into(),
            header.expression_type.as_deref().unwrap_or("TAG").into(),
        )
    } else {
        let group = header.consumer_group.as_ref();
        let (found, model) = {
            let consumers = lock(&core.consumers);
            (
                consumers.subscription(group, &header.topic),
                consumers.model(group),
            )
        };
        if model == Some(MessageModel::Broadcasting) && !config.consume_broadcast_enable {
            let remark = format!("the consumer group[{group}] can not consume by broadcast way");
            return Err(forbidden(4, remark));
        }
        let not_exist = |remark: &str| {
            Refused::from(Failure::new(response_code::SUBSCRIPTION_NOT_EXIST, remark))
        };
        let subscription = match found {
            Found::Yes(subscription) => subscription,
            Found::NoGroup => {
                return Err(not_exist("the consumer's group info not exist"));
            }
            Found::NoSubscription => {
                return Err(not_exist("the consumer's subscription not exist"));
            }
        };
        if subscription.sub_version < header.sub_version {
            return Err(Failure::new(
                response_code::SUBSCRIPTION_NOT_LATEST,
                "the consumer's subscription not latest",
            )
            .into());
        }
        (
            subscription.sub_string.into(),
            subscription.expression_type.into(),
        )
    };
    if own_retry {
        return Ok(TagFilter::All);
    }
    if kind.is_empty() || kind == "TAG" {
        return Ok(TagFilter::parse(&expression)?);
    }
    let remark = if settings.enable_property_filter {
        "property filters are not supported yet".to_owned()
    } else {
        format!("The broker does not support consumer to filter message by {kind}")
    };
    Err(Failure::system(remark).into())
}

fn commit(core: &Core, header: &PullMessage<'_>) {
    if header.sys_flag & PULL_COMMIT_OFFSET != 0 && header.commit_offset >= 0 {
        core.offsets.commit(
            &header.topic,
            &header.consumer_group,
            header.queue_id,
            header.commit_offset,
        );
    }
}

fn read(
    core: &Core,
    settings: &Settings,
    header: &PullMessage<'_>,
    filter: &TagFilter,
) -> ReadOutcome {
    let queue = header.queue_id as u32;
    if let Some(offset) =
        core.offsets
            .take_reset(&header.topic, &header.consumer_group, header.queue_id)
    {
        let bound = |end: Option<i64>| end.unwrap_or(0);
        return ReadOutcome {
            status: ReadStatus::OffsetOverflowBadly,
            next: offset,
            min: bound(core.store.min_queue_offset(&header.topic, queue)),
            max: bound(core.store.max_queue_offset(&header.topic, queue)),
            messages: Vec::new(),
            queue_offsets: Vec::new(),
            bytes: 0,
            cold: false,
        };
    }
    let bytes = settings.max_transfer_bytes_in_memory.get() as usize;
    let mut outcome = core.store.read(&ReadRequest {
        topic: &header.topic,
        queue_id: queue,
        offset: header.queue_offset,
        // As in Java none or fewer is one: the Go client's pull consumer asks for 0.
        max_messages: header.max_msg_nums.max(1) as usize,
        max_bytes: bytes.min(ANSWER_BYTES_MAX),
        filter: &|code| filter.admits_code(code),
    });
    if let TagFilter::Tags(_) = filter {
        recheck(&mut outcome, filter);
    }
    outcome
}

/// Drops messages that only share their tag's hash with a wanted tag.
pub(crate) fn recheck(outcome: &mut ReadOutcome, filter: &TagFilter) {
    let keep: Vec<bool> = outcome
        .messages
        .iter()
        .map(|bytes| match Record::decode(bytes) {
            Ok((record, _)) => {
                filter.admits_tag(properties::get_str(record.properties, names::TAGS))
            }
            Err(_) => true,
        })
        .collect();
    let mut kept = keep.iter();
    outcome.messages.retain(|_| *kept.next().unwrap_or(&true));
    let mut kept = keep.iter();
    outcome
        .queue_offsets
        .retain(|_| *kept.next().unwrap_or(&true));
    if outcome.messages.is_empty() && outcome.status == ReadStatus::Found {
        outcome.status = ReadStatus::NoMatchedMessage;
    }
}

/// `GetMessageStatus` to response code.
fn code_of(outcome: &ReadOutcome, asked: i64) -> i32 {
    match outcome.status {
        ReadStatus::Found => response_code::SUCCESS,
        ReadStatus::NoMatchedMessage | ReadStatus::MessageWasRemoving => {
            response_code::PULL_RETRY_IMMEDIATELY
        }
        ReadStatus::NoMatchedLogicQueue | ReadStatus::NoMessageInQueue if asked == 0 => {
            response_code::PULL_NOT_FOUND
        }
        ReadStatus::OffsetFoundNull | ReadStatus::OffsetOverflowOne => {
            response_code::PULL_NOT_FOUND
        }
        ReadStatus::NoMatchedLogicQueue
        | ReadStatus::NoMessageInQueue
        | ReadStatus::OffsetOverflowBadly
        | ReadStatus::OffsetTooSmall => response_code::PULL_OFFSET_MOVED,
    }
}

/// Lets a pull wait; `false`: it must be answered now.
fn hold(core: &Arc<Core>, settings: &Settings, call: &Call<'_>, admitted: &Admitted<'_>) -> bool {
    let header = &admitted.header;
    let longest = if settings.long_polling_enable {
        header.suspend_timeout_millis
    } else {
        settings.short_polling_time_mills.get()
    };
    let waiter = Waiter {
        offset: header.queue_offset,
        deadline: core.now().plus_millis(longest),
        connection: call.conn.id().0,
        what: HeldPull {
            conn: Arc::clone(call.conn),
            opaque: call.header.opaque,
            header: owned(header),
            filter: admitted.filter.clone(),
            code: call.header.code,
            since: call.since,
        },
    };
    let queue = header.queue_id as u32;
    let arrived = {
        let mut holds = lock(&core.holds);
        if holds.hold(&header.topic, queue, waiter).is_err() {
            return false;
        }
        core.arrivals.set_waiting(holds.len());
        // A message, or the end of the connection, may have come between the read and here.
        let end = core
            .store
            .max_queue_offset(&header.topic, queue)
            .unwrap_or(0);
        let arrived = holds.take(&header.topic, queue, |waiter| end > waiter.offset);
        if !call.conn.is_open() {
            holds.forget(call.conn.id().0);
        }
        core.arrivals.set_waiting(holds.len());
        arrived
    };
    for waiter in arrived {
        crate::arrival::answer_pull(core, &waiter.what);
    }
    true
}

fn owned(header: &PullMessage<'_>) -> PullMessage<'static> {
    let text =
        |value: &Option<Cow<'_, str>>| value.as_ref().map(|text| Cow::Owned(text.to_string()));
    PullMessage {
        consumer_group: Cow::Owned(header.consumer_group.to_string()),
        topic: Cow::Owned(header.topic.to_string()),
        queue_id: header.queue_id,
        queue_offset: header.queue_offset,
        max_msg_nums: header.max_msg_nums,
        sys_flag: header.sys_flag,
        commit_offset: header.commit_offset,
        suspend_timeout_millis: header.suspend_timeout_millis,
        subscription: text(&header.subscription),
        sub_version: header.sub_version,
        expression_type: text(&header.expression_type),
        max_msg_bytes: header.max_msg_bytes,
        request_source: header.request_source,
        proxy_forward_client_id: text(&header.proxy_forward_client_id),
    }
}

/// Answers a pull that waited, whatever there is now; says with which code.
pub(crate) fn answer_again(core: &Core, held: &HeldPull, out: &mut BytesMut) -> i32 {
    let settings = core.settings.get();
    match core.topic(&held.header.topic) {
        Err(failure) => {
            write_failure(out, held.opaque, &failure);
            failure.code
        }
        Ok(topic) => {
            let outcome = read(core, &settings, &held.header, &held.filter);
            let code = code_of(&outcome, held.header.queue_offset);
            note(core, &held.header, &outcome);
            write(held.opaque, &held.header, &topic, (code, &outcome), out);
            code
        }
    }
}

fn note(core: &Core, header: &PullMessage<'_>, outcome: &ReadOutcome) {
    core.offsets.note_pull(
        &header.topic,
        &header.consumer_group,
        header.queue_id,
        outcome.next,
    );
    if outcome.messages.is_empty() {
        core.stats.get_miss.add(1, 1);
        return;
    }
    let (count, bytes) = (outcome.messages.len() as u64, outcome.bytes as u64);
    core.stats.get_found.add(1, 1);
    core.stats.gets.add(count, 1);
    if !system::is_system_topic(&header.topic) {
        core.stats.user_gets.add(count, 1);
    }
    core.stats.get_bytes.add(bytes, count);
    let key = format!("{}@{}", header.topic, header.consumer_group);
    core.stats.add(Stat::GroupGetNums, &key, count);
    core.stats.add(Stat::GroupGetSize, &key, bytes);
}

fn write(
    opaque: i32,
    header: &PullMessage<'_>,
    topic: &TopicConfig,
    (code, outcome): (i32, &ReadOutcome),
    out: &mut BytesMut,
) {
    let bytes: usize = outcome.messages.iter().map(|record| record.len()).sum();
    out.reserve(bytes + 512);
    let mut writer = ResponseWriter::new(out, opaque, code);
    writer
        .number("groupSysFlag", 0)
        .number("maxOffset", outcome.max)
        .number("minOffset", outcome.min)
        .number("nextBeginOffset", outcome.next)
        .number("suggestWhichBrokerId", 0)
        .number("topicSysFlag", i64::from(topic.topic_sys_flag));
    let remark = if code == response_code::PULL_OFFSET_MOVED && header.queue_offset == outcome.next
    {
        "OFFSET_RESET"
    } else {
        outcome.status.name()
    };
    writer.finish(
        Some(remark),
        outcome.messages.iter().map(|record| &**record),
    );
}

fn write_refused(out: &mut BytesMut, opaque: i32, refused: &Refused) {
    match refused.forbidden {
        None => write_failure(out, opaque, &refused.failure),
        Some(kind) => {
            let mut writer = ResponseWriter::new(out, opaque, refused.failure.code);
            writer
                .number("forbiddenType", kind)
                .number("maxOffset", 0)
                .number("minOffset", 0)
                .number("nextBeginOffset", 0)
                .number("suggestWhichBrokerId", 0);
            writer.finish(Some(&refused.failure.remark), []);
        }
    }
}
