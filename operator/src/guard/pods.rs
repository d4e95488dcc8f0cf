//! What holds for pods: restarts, labels and configuration.
//!
//! **Invariant:** a pod is judged by what was seen of it and of every other member of its group.

use super::{Case, Invariant, Refusal};
use crate::observe::model::{KEY_NAME_SERVERS, KEY_PERMISSION};
use crate::observe::{GroupSeen, PodSeen};
use crate::plan::{Component, Step};
use std::collections::{BTreeMap, BTreeSet};

impl Case<'_> {
    fn same_pod<'p>(
        &self,
        pods: &'p [PodSeen],
        pod: &str,
        uid: &str,
    ) -> Result<&'p PodSeen, Refusal> {
        match pods.iter().find(|seen| seen.name == pod) {
            Some(seen) if seen.uid == uid && !uid.is_empty() => Ok(seen),
            Some(_) => self.refuse(Invariant::I7, format!("pod {pod} is another one by now")),
            None => self.refuse(Invariant::I7, format!("pod {pod} was not seen")),
        }
    }

    pub(super) fn group(&self, index: i32) -> Result<&GroupSeen, Refusal> {
        match self.observed.groups.get(&index) {
            Some(group) => Ok(group),
            None => self.refuse(Invariant::I6, format!("group {index} was not seen")),
        }
    }

    pub(super) fn restart(
        &self,
        component: Component,
        pod: &str,
        uid: &str,
        ordinal: i32,
    ) -> Result<(), Refusal> {
        match component {
            Component::Shared => self.refuse(Invariant::I7, "no pod belongs to it"),
            Component::NameServers => self.restart_name_server(pod, uid),
            Component::Group(index) => self.restart_broker(index, pod, uid, ordinal),
        }
    }

    fn restart_name_server(&self, pod: &str, uid: &str) -> Result<(), Refusal> {
        let pods = &self.observed.name_servers.pods;
        let seen = self.same_pod(pods, pod, uid)?;
        if !seen.is_healthy() {
            return Ok(());
        }
        let wanted = self.desired.name_servers.replicas.max(0) as usize;
        let others = pods
            .iter()
            .filter(|p| p.name != pod && p.is_healthy())
            .count();
        self.ensure(
            others + 1 >= wanted,
            Invariant::I4,
            "another NameServer is not ready",
        )
    }

    fn restart_broker(
        &self,
        index: i32,
        pod: &str,
        uid: &str,
        ordinal: i32,
    ) -> Result<(), Refusal> {
        let group = self.group(index)?;
        let seen = self.same_pod(&group.pods, pod, uid)?;
        let others_down = group
            .pods
            .iter()
            .any(|other| other.name != pod && !other.is_healthy());
        self.ensure(
            !others_down,
            Invariant::I4,
            "another member of the group is not ready",
        )?;
        if seen.is_healthy() {
            self.room_for_one_more(index)?;
        }
        let Some(sync) = &group.sync else {
            // Nobody keeps a second copy, so nobody can say who has what.
            return self.ensure(
                group.pods.len() <= 1,
                Invariant::I6,
                "the group has several members and no controller says who is in sync",
            );
        };
        let Some(broker) = group.broker(ordinal) else {
            return self.ensure(
                !seen.is_healthy(),
                Invariant::I6,
                "the broker does not say whether it is safe",
            );
        };
        if !sync.in_sync.contains(&broker.broker_id) {
            return Ok(());
        }
        let left = sync.in_sync.len().saturating_sub(1);
        let members = group.pods.len();
        let min = self
            .desired
            .groups
            .get(&index)
            .map_or(1, |wanted| wanted.min_in_sync.max(1)) as usize;
        self.ensure(
            left > 0 || members <= 1,
            Invariant::I2,
            "it is the last member in sync",
        )?;
        self.ensure(
            left >= min || members <= min,
            Invariant::I3,
            format!("{left} members in sync would be left, of {min}"),
        )
    }

    /// Whether one more group may be disturbed.
    pub(super) fn room_for_one_more(&self, index: i32) -> Result<(), Refusal> {
        let mut disturbed: BTreeSet<i32> = self
            .observed
            .groups
            .iter()
            .filter(|(_, group)| group.unready() > 0)
            .map(|(index, _)| *index)
            .collect();
        for step in self.before {
            if let (Step::RestartPod { .. }, Component::Group(earlier)) = (step, step.component()) {
                disturbed.insert(earlier);
            }
        }
        disturbed.remove(&index);
        let most = self.desired.update.max_unavailable_groups;
        self.ensure(
            disturbed.len() < most,
            Invariant::I4,
            format!("groups {disturbed:?} are not ready; at most {most} may be at a time"),
        )
    }

    pub(super) fn label(
        &self,
        index: i32,
        pod: &str,
        uid: &str,
        (role, epoch): (&str, i64),
    ) -> Result<(), Refusal> {
        let group = self.group(index)?;
        let seen = self.same_pod(&group.pods, pod, uid)?;
        self.ensure(
            epoch >= seen.labels.epoch,
            Invariant::I10,
            format!("its labels are of epoch {}", seen.labels.epoch),
        )?;
        if role != "master" {
            return Ok(());
        }
        let unlabelled: BTreeSet<&str> = self
            .before
            .iter()
            .filter_map(|step| match step {
                Step::LabelPod { pod, role, .. } if *role != "master" => Some(pod.as_str()),
                _ => None,
            })
            .collect();
        let newly = self.before.iter().any(|step| {
            matches!(step, Step::LabelPod { group, role, .. } if *group == index && *role == "master")
        });
        let still = group.pods.iter().any(|other| {
            other.name != pod
                && other.labels.role.as_deref() == Some("master")
                && !unlabelled.contains(other.name.as_str())
        });
        self.ensure(
            !still && !newly,
            Invariant::I11,
            "another pod is still labelled master",
        )
    }

    pub(super) fn push(&self, keys: &BTreeMap<String, String>) -> Result<(), Refusal> {
        self.ensure(
            !keys.contains_key(KEY_PERMISSION),
            Invariant::I1,
            "permission is given by opening and closing a group only",
        )?;
        let Some(list) = keys.get(KEY_NAME_SERVERS) else {
            return Ok(());
        };
        self.ensure(
            !list.is_empty() && *list == self.desired.name_server_list(),
            Invariant::I12,
            "the list of NameServers is not the one of the manifest",
        )
    }
}
