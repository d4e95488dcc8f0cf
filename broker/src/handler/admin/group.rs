//! Subscription groups: create or change one (200) or many (225), look at one (352) or all (201),
//! delete one (207), forbid one to read a topic (353).
//!
//! **Invariant:** looking never makes a group, and a change is on disk before it is answered.

use std::{collections::BTreeMap, sync::Arc};

use rmq_protocol::{
    body::{GroupConfigList, GroupForbidden, SubscriptionGroupConfig, SubscriptionGroupWrapper},
    header::{self, DeleteGroup, GetAllGroups, GroupHeader},
};
use rmq_types::{GroupName, TopicName, limits, system};

use super::{
    body_of,
    page::{Asked, page},
};
use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::Call,
    namespace, pop,
};

/// Most groups of one list.
const LIST_MAX: usize = 50_000;

/// Code 200.
pub(super) fn create(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let body = body_of(call, "groupName and its settings")?;
    let config = SubscriptionGroupConfig::from_json(body)?;
    let system = system::is_system_group(&config.group_name);
    core.group_creation.measure(system, || {
        check(&config)?;
        core.groups.put(vec![config], core.now())?;
        Ok(success())
    })
}

/// Code 225: all groups, or none.
pub(super) fn create_list(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let body = GroupConfigList::from_json(body_of(call, "groupConfigList")?)?;
    if body.group_config_list.is_empty() {
        return Err(Failure::parameter("groupConfigList is empty"));
    }
    if body.group_config_list.len() > LIST_MAX {
        return Err(Failure::parameter(format!(
            "groupConfigList has more than {LIST_MAX} groups"
        )));
    }
    core.group_creation.measure(false, || {
        for config in &body.group_config_list {
            check(config).map_err(|refused| refused.about(&config.group_name))?;
        }
        core.groups.put(body.group_config_list, core.now())?;
        Ok(success())
    })
}

fn check(config: &SubscriptionGroupConfig) -> Result<(), Failure> {
    let name = config.group_name.as_str();
    GroupName::check(name)?;
    if name.len() > limits::GROUP_BYTES_MAX {
        return Err(Failure::parameter(format!(
            "the specified group is longer than group max length {}",
            limits::GROUP_BYTES_MAX
        )));
    }
    let queues = config.retry_queue_nums;
    if !u32::try_from(queues).is_ok_and(|count| count <= limits::QUEUES_MAX) {
        return Err(Failure::parameter(format!(
            "retryQueueNums {queues} is out of 0..={}",
            limits::QUEUES_MAX
        )));
    }
    match config.attributes.keys().next() {
        Some(key) => Err(Failure::system(format!("unsupported attribute: {key}"))),
        None => Ok(()),
    }
}

/// Code 352.
pub(super) fn one(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GroupHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group);
    let group = core
        .groups
        .get(&header.group)
        .ok_or_else(|| Failure::no_group(&header.group))?;
    Ok(success().with_body(group.to_json()))
}

/// Code 201.
pub(super) fn all(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: GetAllGroups<'_> = call.decode()?;
    let (data_version, groups) = core.groups.snapshot();
    let asked = Asked {
        seq: call.header.ext.get("groupSeq").map(|_| header.group_seq),
        max: header.max_group_num,
        version: header.data_version.as_deref(),
    };
    let range = page(asked, data_version, groups.len())?;
    let shown = groups.get(range).unwrap_or_default();
    let table: BTreeMap<_, _> = shown
        .iter()
        .map(|group| {
            (
                group.group_name.clone(),
                SubscriptionGroupConfig::clone(group),
            )
        })
        .collect();
    let mut forbidden_table = core.groups.forbidden();
    forbidden_table.retain(|group, _| table.contains_key(group));
    let body = SubscriptionGroupWrapper {
        data_version,
        forbidden_table,
        subscription_group_table: table,
    };
    Ok(success()
        .with_ext("totalGroupNum", groups.len().to_string())
        .with_body(body.to_json()))
}

/// Code 207. Retry and dead-letter topics stay: tools delete them with code 215.
pub(super) fn delete(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: DeleteGroup<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group_name);
    let group = header.group_name.as_ref();
    GroupName::check(group)?;
    core.groups.remove(group, core.now())?;
    core.groups.allow_all(group, core.now())?;
    pop::group_deleted(core, group);
    if header.clean_offset {
        core.offsets.remove_group(group);
    }
    core.stats.forget(group);
    tracing::info!(group, clean_offset = header.clean_offset, "group deleted");
    Ok(success())
}

/// Code 353: without `readable` it only tells.
pub(super) fn forbid(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: header::GroupForbidden<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.group);
    namespace::join(&call.header.ext, &mut header.topic);
    let (group, topic) = (header.group.as_ref(), header.topic.as_ref());
    GroupName::check(group)?;
    TopicName::check(topic)?;
    if let Some(readable) = header.readable {
        // Only of groups that exist, so that the table cannot grow by made-up names.
        if !core.groups.contains(group) {
            return Err(Failure::no_group(group));
        }
        core.topic(topic)?;
        core.groups
            .set_readable((group, topic), readable, core.now())?;
    }
    let body = GroupForbidden {
        group: group.to_owned(),
        readable: Some(!core.groups.is_unreadable(group, topic)),
        topic: topic.to_owned(),
    };
    Ok(success().with_body(body.to_json()))
}
