//! What is checked before a pop, a notification or a peek: in Java's order, with Java's codes.
//!
//! **Invariant:** what passes here is bounded: messages, times, names. Nothing is made and nothing
//! is read yet.

use std::{borrow::Cow, sync::Arc};

use rmq_pop::{Init, Invisible, polls::is_late};
use rmq_protocol::{
    body::{SubscriptionGroupConfig, TopicConfig},
    header::{Notification, POP_INIT_MAX, PeekMessage, PopMessage},
    remoting::{Header, request_code, response_code},
};
use rmq_types::{GroupName, pop::POP_MESSAGES_MAX};

use crate::{
    answer::Failure,
    core::Core,
    handler::Call,
    metadata::PERM_READ,
    namespace,
    pop::{Wish, WishKind},
    session::subscription::TagFilter,
};

/// A request that may be served.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) wish: Wish,
    /// When the client sent it, by its own clock; 0: now.
    pub(super) born: i64,
    /// How long it waits.
    pub(super) poll_millis: i64,
}

/// The group that a request names.
pub(super) fn group_of(header: &Header<'_>) -> String {
    let group = header.ext.get("consumerGroup").unwrap_or_default();
    let mut group = Cow::Borrowed(group);
    namespace::join(&header.ext, &mut group);
    group.into_owned()
}

/// `None`: the group does not exist yet but may be made.
pub(super) fn admit(core: &Core, call: &Call<'_>) -> Result<Option<Admitted>, Failure> {
    if call.header.code == request_code::NOTIFICATION {
        return notification(core, call);
    }
    let mut header: PopMessage<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    check_late(core, header.born_time, header.poll_time)?;
    let Some((topic, group)) = check(
        core,
        call,
        (&header.topic, &header.consumer_group),
        (header.queue_id, header.max_msg_nums),
    )?
    else {
        return Ok(None);
    };
    let invisible = Invisible::of_pop(header.invisible_time)
        .map_err(|error| Failure::parameter(error.to_string()))?;
    let wish = Wish {
        topic,
        group,
        queue: u32::try_from(header.queue_id).ok(),
        filter: filter_of(core, &header)?,
        order: header.order,
        attempt: header.attempt_id.as_deref().map(Into::into),
        kind: WishKind::Pop {
            max: header.max_msg_nums as usize,
            invisible,
            init: if header.init_mode == POP_INIT_MAX {
                Init::Max
            } else {
                Init::Min
            },
        },
    };
    Ok(Some(Admitted {
        wish,
        born: header.born_time,
        poll_millis: header.poll_time,
    }))
}

fn notification(core: &Core, call: &Call<'_>) -> Result<Option<Admitted>, Failure> {
    let mut header: Notification<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let names = (&*header.topic, &*header.consumer_group);
    let Some((topic, group)) = check(core, call, names, (header.queue_id, 1))? else {
        return Ok(None);
    };
    let wish = Wish {
        topic,
        group,
        queue: u32::try_from(header.queue_id).ok(),
        filter: TagFilter::All,
        order: header.order,
        attempt: header.attempt_id.as_deref().map(Into::into),
        kind: WishKind::Notification,
    };
    Ok(Some(Admitted {
        wish,
        born: header.born_time,
        poll_millis: header.poll_time,
    }))
}

/// A peek takes nothing, so its group must be there.
pub(super) fn peek(core: &Core, call: &Call<'_>) -> Result<Wish, Failure> {
    let mut header: PeekMessage<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let names = (&*header.topic, &*header.consumer_group);
    let found = check(core, call, names, (header.queue_id, header.max_msg_nums))?;
    let (topic, group) = found.ok_or_else(|| Failure::no_group(&header.consumer_group))?;
    let invisible = Invisible::of_pop(1).map_err(|error| Failure::system(error.to_string()))?;
    Ok(Wish {
        topic,
        group,
        queue: u32::try_from(header.queue_id).ok(),
        filter: TagFilter::All,
        order: false,
        attempt: None,
        kind: WishKind::Pop {
            max: header.max_msg_nums as usize,
            invisible,
            init: Init::Min,
        },
    })
}

fn check_late(core: &Core, born: i64, poll_millis: i64) -> Result<(), Failure> {
    if is_late(core.pops.now(core), born, poll_millis) {
        return Err(Failure::new(
            response_code::POLLING_TIMEOUT,
            "the pop was on its way for longer than it waits",
        ));
    }
    Ok(())
}

type Found = Option<(Arc<TopicConfig>, Arc<SubscriptionGroupConfig>)>;

fn check(
    core: &Core,
    call: &Call<'_>,
    (topic, group): (&str, &str),
    (queue, messages): (i32, i32),
) -> Result<Found, Failure> {
    let settings = core.settings.get();
    if settings.broker_permission.get() as i32 & PERM_READ == 0 {
        return Err(Failure::no_permission(format!(
            "the broker[{}] pop message is forbidden",
            settings.broker_ip1
        )));
    }
    if !(1..=POP_MESSAGES_MAX as i32).contains(&messages) {
        return Err(Failure::parameter(format!(
            "maxMsgNums {messages} is not within 1 to {POP_MESSAGES_MAX}"
        )));
    }
    let config = core.topic(topic)?;
    if config.perm & PERM_READ == 0 {
        return Err(Failure::no_permission(format!(
            "the topic[{topic}] pop message is forbidden"
        )));
    }
    if queue >= config.read_queue_nums {
        return Err(Failure::parameter(format!(
            "queueId[{queue}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{}] \
             consumer:[{}]",
            config.read_queue_nums,
            call.conn.peer_addr()
        )));
    }
    let Some(group_config) = core.groups.get(group) else {
        let may_be_made =
            settings.auto_create_subscription_group && GroupName::check(group).is_ok();
        return if may_be_made {
            Ok(None)
        } else {
            Err(Failure::no_group(group))
        };
    };
    if !group_config.consume_enable {
        return Err(Failure::no_permission(format!(
            "subscription group no permission, {group}"
        )));
    }
    if core.groups.is_unreadable(group, topic) {
        return Err(Failure::no_permission(format!(
            "the consumer group[{group}] is forbidden for topic[{topic}]"
        )));
    }
    Ok(Some((config, group_config)))
}

fn filter_of(core: &Core, header: &PopMessage<'_>) -> Result<TagFilter, Failure> {
    let kind = header.exp_type.as_deref().unwrap_or("TAG");
    if kind.is_empty() || kind == "TAG" {
        return Ok(TagFilter::parse(header.exp.as_deref().unwrap_or("*"))?);
    }
    let remark = if core.settings.get().enable_property_filter {
        "property filters are not supported yet".to_owned()
    } else {
        format!("The broker does not support consumer to filter message by {kind}")
    };
    Err(Failure::system(remark))
}
