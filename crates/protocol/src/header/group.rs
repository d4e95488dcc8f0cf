//! Subscription groups.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `GET_SUBSCRIPTIONGROUP_CONFIG` (352).
    pub struct GroupHeader<'a> {
        group: Cow<'a, str> = "group",
    }

    /// `GET_ALL_SUBSCRIPTIONGROUP_CONFIG` (201).
    pub struct GetAllGroups<'a> {
        group_seq: i32 = "groupSeq" or 0,
        data_version: Option<Cow<'a, str>> = "dataVersion",
        max_group_num: Option<i32> = "maxGroupNum",
    }

    /// `DELETE_SUBSCRIPTIONGROUP` (207).
    pub struct DeleteGroup<'a> {
        group_name: Cow<'a, str> = "groupName",
        clean_offset: bool = "cleanOffset",
    }

    /// `UPDATE_AND_GET_GROUP_FORBIDDEN` (353).
    pub struct GroupForbidden<'a> {
        group: Cow<'a, str> = "group",
        topic: Cow<'a, str> = "topic",
        readable: Option<bool> = "readable",
    }
}
