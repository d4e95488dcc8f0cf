//! A broker group and its members.
//!
//! **Invariant:** an address stands in a group under one id only. Liveness is kept per member, so
//! an address that changed its group or id never keeps the old entry alive.

use std::collections::BTreeMap;

use rmq_types::{BrokerId, ClusterName, MASTER_ID, Timestamp};

use super::{ConnectionToken, DataVersion};

/// One broker process of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where clients reach it.
    pub addr: String,
    /// Where replicas reach it.
    pub ha_addr: String,
    /// The topic table it registered last.
    pub version: DataVersion,
    /// When it was heard of last.
    pub heard_at: Timestamp,
    /// How long it may be silent.
    pub silence_millis_max: i64,
    /// The connection it registered over.
    pub connection: ConnectionToken,
    /// Its filter servers (a feature of old brokers).
    pub filter_servers: Vec<String>,
}

impl Member {
    /// Whether it has been silent for too long.
    #[must_use]
    pub fn is_silent(&self, now: Timestamp) -> bool {
        now.since(self.heard_at) > self.silence_millis_max
    }
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) cluster: ClusterName,
    pub(super) acting_master: bool,
    pub(super) zone: Option<String>,
    pub(super) members: BTreeMap<BrokerId, Member>,
}

impl Group {
    pub(super) fn new(cluster: ClusterName) -> Self {
        Self {
            cluster,
            acting_master: false,
            zone: None,
            members: BTreeMap::new(),
        }
    }

    pub(super) fn min_id(&self) -> Option<BrokerId> {
        self.members.keys().next().copied()
    }

    pub(super) fn has_master(&self) -> bool {
        self.members.contains_key(&MASTER_ID)
    }

    pub(super) fn id_of(&self, addr: &str) -> Option<BrokerId> {
        self.members
            .iter()
            .find(|(_, member)| member.addr == addr)
            .map(|(id, _)| *id)
    }

    pub(super) fn member_at(&self, addr: &str) -> Option<&Member> {
        self.members.values().find(|member| member.addr == addr)
    }

    pub(super) fn member_at_mut(&mut self, addr: &str) -> Option<&mut Member> {
        self.members.values_mut().find(|member| member.addr == addr)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.members.values().map(|member| member.addr.as_str())
    }
}
