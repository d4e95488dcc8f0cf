//! Subscription groups: create or change (200), list (201).

use std::sync::Arc;

use rmq_protocol::body::{SubscriptionGroupConfig, SubscriptionGroupWrapper};
use rmq_types::GroupName;

use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::Call,
};

/// Code 200.
pub(super) fn create(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    if call.body.is_empty() {
        return Err(Failure::system(
            "the request has no body: a subscription group's settings",
        ));
    }
    let group = SubscriptionGroupConfig::from_json(call.body)?;
    GroupName::check(&group.group_name)?;
    core.groups.put(vec![group], core.now())?;
    Ok(success())
}

/// Code 201, in one page.
pub(super) fn all(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let (data_version, groups) = core.groups.snapshot();
    let count = groups.len();
    let table = groups.iter().map(|group| {
        (
            group.group_name.clone(),
            SubscriptionGroupConfig::clone(group),
        )
    });
    let body = SubscriptionGroupWrapper {
        data_version,
        subscription_group_table: table.collect(),
        ..SubscriptionGroupWrapper::default()
    };
    Ok(success()
        .with_ext("totalGroupNum", count.to_string())
        .with_body(body.to_json()))
}
