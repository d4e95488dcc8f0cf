//! A cluster that obeys steps: what Kubernetes, brokers and NameServers would do, in a few lines.
//!
//! **Invariant:** the world never looks at a plan or a guard; it only carries out single steps and
//! says afterwards what can be observed.

use crate::config_keys::KeyChange;
use crate::observe::model::{KEY_NAME_SERVERS, KEY_PERMISSION};
use crate::observe::{
    Answer, Backlog, BrokerSeen, GroupSeen, NameServerView, ObjectsState, Observed, PodSeen,
    SetSeen, Stuck, StuckReason, VolumePhase, VolumeSeen,
};
use crate::plan::{Component, Desired, Step};
use rmq_operator_api::{DrainPhase, parse_manifest};
use rmq_types::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What was applied of a part: everything that its objects are built from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Applied {
    replicas: i32,
    revision: String,
    volume_bytes: u64,
    drain: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) observed: Observed,
    pub(crate) now: Timestamp,
    /// The template that the manifest stands for now.
    pub(crate) template: String,
    /// The version in that template.
    pub(crate) version: String,
    /// Pods with this template cannot run.
    pub(crate) bad_template: Option<String>,
    /// Groups whose brokers do not answer.
    pub(crate) silent: BTreeSet<i32>,
    /// Topics, by group, as hashes. They outlive pods, not disks.
    pub(crate) metadata: BTreeMap<i32, BTreeSet<u64>>,
    /// Messages that consumers have left, by group.
    pub(crate) backlog: BTreeMap<i32, i64>,
    /// Keys set over the wire, by group; they outlive pods.
    overrides: BTreeMap<i32, BTreeMap<String, String>>,
    applied: BTreeMap<Component, Applied>,
    shared: bool,
    uids: u64,
    /// Writes since the world began.
    pub(crate) writes: usize,
}

/// `spec` as what shall be, with a few live keys known.
pub(crate) fn desired(spec: &str) -> Desired {
    let text = format!(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {{name: a}}\n\
         spec: {{version: 0.1.0, {spec}}}\n"
    );
    let cluster = parse_manifest(&text).unwrap();
    assert_eq!(rmq_operator_api::validate(&cluster), [], "{spec}");
    let addresses = (0..cluster.spec.name_server.replicas)
        .map(name_server)
        .collect();
    let live = |key: &str| match key {
        "fileReservedTime" | "traceOn" | "orderMessageEnable" => KeyChange::Live,
        _ => KeyChange::Restart,
    };
    let defaults = BTreeMap::from([("fileReservedTime".to_owned(), "72".to_owned())]);
    Desired::of(&cluster, addresses, &live, &live, &defaults)
}

fn name_server(ordinal: i32) -> String {
    format!("a-namesrv-{ordinal}.a-namesrv-hl.ns.svc:9876")
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            observed: Observed::default(),
            now: Timestamp::from_millis(1_000_000_000_000),
            template: "t1".to_owned(),
            version: "0.1.0".to_owned(),
            bad_template: None,
            silent: BTreeSet::new(),
            metadata: BTreeMap::new(),
            backlog: BTreeMap::new(),
            overrides: BTreeMap::new(),
            applied: BTreeMap::new(),
            shared: false,
            uids: 0,
            writes: 0,
        };
        world.observed.fresh = true;
        world
    }

    fn uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    fn built(&self, desired: &Desired, component: Component) -> Applied {
        let (replicas, volume_bytes, drain) = match component {
            Component::Shared => (0, 0, false),
            Component::NameServers => (desired.name_servers.replicas, 0, false),
            Component::Group(index) => match desired.groups.get(&index) {
                Some(wanted) if desired.hibernated => (0, wanted.volume_bytes, false),
                Some(wanted) => (wanted.members, wanted.volume_bytes, false),
                // A group that drains is built as it is, but for the sign that it drains.
                None => {
                    let as_is = self.applied.get(&component);
                    (1, as_is.map_or(0, |applied| applied.volume_bytes), true)
                }
            },
        };
        Applied {
            replicas,
            revision: self.template.clone(),
            volume_bytes,
            drain,
        }
    }

    fn state(&self, desired: &Desired, component: Component) -> ObjectsState {
        let has_set = match component {
            Component::Group(index) => self
                .observed
                .groups
                .get(&index)
                .is_some_and(|group| group.set.is_some()),
            _ => true,
        };
        match self.applied.get(&component) {
            Some(applied) if *applied == self.built(desired, component) && has_set => {
                ObjectsState::Same
            }
            Some(_) if has_set => ObjectsState::Differ,
            _ => ObjectsState::Missing,
        }
    }

    /// Time passes, and everybody does what they do by themselves.
    pub(crate) fn settle(&mut self, desired: &Desired, millis: i64) {
        self.now = self.now.plus_millis(millis);
        self.run_name_servers();
        let indexes: Vec<i32> = self.observed.groups.keys().copied().collect();
        for index in indexes {
            self.run_group(index, desired);
        }
        self.register();
        self.observed.cluster.objects = if self.shared {
            ObjectsState::Same
        } else {
            ObjectsState::Missing
        };
        self.observed.name_servers.objects = self.state(desired, Component::NameServers);
        let states: Vec<_> = self
            .observed
            .groups
            .keys()
            .map(|index| (*index, self.state(desired, Component::Group(*index))))
            .collect();
        for (index, state) in states {
            if let Some(group) = self.observed.groups.get_mut(&index) {
                group.objects = state;
            }
        }
    }

    fn run_name_servers(&mut self) {
        let Some(set) = self.observed.name_servers.set.clone() else {
            return;
        };
        let pods = std::mem::take(&mut self.observed.name_servers.pods);
        self.observed.name_servers.pods = self.run_pods(pods, &set, "a-namesrv");
        let views = self
            .observed
            .name_servers
            .pods
            .clone()
            .into_iter()
            .map(|pod| {
                let answer = if pod.ready {
                    let config =
                        BTreeMap::from([("orderMessageEnable".to_owned(), "false".to_owned())]);
                    Answer::Known(NameServerView {
                        brokers: BTreeMap::new(),
                        config,
                    })
                } else {
                    Answer::Unknown("refused".to_owned())
                };
                (name_server(pod.ordinal), answer)
            });
        let before = std::mem::take(&mut self.observed.name_servers.views);
        self.observed.name_servers.views = views
            .map(|(address, answer)| match (before.get(&address), answer) {
                // Live keys stay as long as the program runs.
                (Some(Answer::Known(view)), Answer::Known(_)) => {
                    let kept = Answer::Known(view.clone());
                    (address, kept)
                }
                (_, answer) => (address, answer),
            })
            .collect();
    }

    fn run_pods(&mut self, mut pods: Vec<PodSeen>, set: &SetSeen, name: &str) -> Vec<PodSeen> {
        pods.retain(|pod| !pod.deleting && pod.ordinal < set.replicas);
        for ordinal in 0..set.replicas {
            if !pods.iter().any(|pod| pod.ordinal == ordinal) {
                pods.push(PodSeen {
                    name: format!("{name}-{ordinal}"),
                    uid: self.uid(),
                    ordinal,
                    revision: set.update_revision.clone(),
                    version: Some(self.version.clone()),
                    created_at: self.now,
                    ..PodSeen::default()
                });
            } else if let Some(pod) = pods.iter_mut().find(|pod| pod.ordinal == ordinal)
                && !pod.ready
            {
                if pod.revision.is_some() && pod.revision == self.bad_template {
                    pod.stuck = Some(Stuck {
                        reason: StuckReason::CrashLoop,
                        message: "its container ended with 1".to_owned(),
                    });
                } else {
                    pod.stuck = None;
                    pod.ready = true;
                    pod.ready_since = Some(self.now);
                }
            }
        }
        pods.sort_by_key(|pod| pod.ordinal);
        pods
    }

    fn run_group(&mut self, index: i32, desired: &Desired) {
        let Some(mut group) = self.observed.groups.remove(&index) else {
            return;
        };
        if let Some(set) = group.set.clone() {
            let name = format!("a-{}", group.broker_name);
            group.pods = self.run_pods(std::mem::take(&mut group.pods), &set, &name);
            for ordinal in 0..set.replicas {
                let uid = self.uid();
                let volume = group.volumes.entry(ordinal).or_insert_with(|| VolumeSeen {
                    name: format!("data-{name}-{ordinal}"),
                    uid,
                    phase: VolumePhase::Bound,
                    requested: set.volume_bytes,
                    capacity: set.volume_bytes,
                    expandable: Some(true),
                    deleting: false,
                });
                volume.capacity = volume.requested;
            }
        }
        group.brokers = group
            .pods
            .iter()
            .map(|pod| {
                let answer = if pod.ready && !self.silent.contains(&index) {
                    Answer::Known(self.broker(index, desired))
                } else {
                    Answer::Unknown("timed out".to_owned())
                };
                (pod.ordinal, answer)
            })
            .collect();
        group.backlog = Some(Answer::Known(Backlog {
            remaining: self.backlog.get(&index).copied().unwrap_or_default(),
            slowest_group: None,
            newest_at: None,
            retention_hours: 72,
        }));
        let wanted = desired.groups.contains_key(&index);
        let open = group
            .known_brokers()
            .any(|(_, broker)| broker.takes_sends());
        group.opened |= open && wanted;
        // What the status writer would do.
        if wanted {
            group.drain_phase = None;
            group.drain_since = None;
            let keys = desired.groups[&index].live_config.keys().cloned();
            group.managed_keys.extend(keys);
        } else if group.drain_since.is_none() {
            group.drain_since = Some(self.now);
        }
        self.observed.groups.insert(index, group);
    }

    fn broker(&self, index: i32, desired: &Desired) -> BrokerSeen {
        let mut config = BTreeMap::from([
            (KEY_PERMISSION.to_owned(), "4".to_owned()),
            ("fileReservedTime".to_owned(), "72".to_owned()),
            ("traceOn".to_owned(), "TRUE".to_owned()),
            (KEY_NAME_SERVERS.to_owned(), desired.name_server_list()),
        ]);
        config.extend(self.overrides.get(&index).cloned().unwrap_or_default());
        BrokerSeen {
            config,
            address: format!("10.0.0.{index}:10911"),
            metadata: Some(self.metadata.get(&index).cloned().unwrap_or_default()),
            recovered: true,
            ..BrokerSeen::default()
        }
    }

    /// Brokers register at every NameServer that they know.
    fn register(&mut self) {
        let running: Vec<(String, BTreeSet<String>)> = self
            .observed
            .groups
            .values()
            .filter_map(|group| {
                let (_, broker) = group.known_brokers().next()?;
                let at = broker
                    .name_servers()
                    .into_iter()
                    .map(str::to_owned)
                    .collect();
                Some((group.broker_name.clone(), at))
            })
            .collect();
        for (address, view) in &mut self.observed.name_servers.views {
            if let Answer::Known(view) = view {
                view.brokers = running
                    .iter()
                    .filter(|(_, at)| at.contains(address))
                    .map(|(name, _)| (name.clone(), BTreeMap::new()))
                    .collect();
            }
        }
    }

    /// Carries out a step.
    pub(crate) fn apply(&mut self, step: &Step, desired: &Desired) {
        self.writes += 1;
        match step {
            Step::AddFinalizer => self.observed.cluster.has_finalizer = true,
            Step::RemoveFinalizer => self.observed.cluster.has_finalizer = false,
            Step::Apply { component } => self.apply_objects(*component, desired),
            Step::PushNameServerConfig { address, keys } => {
                if let Some(Answer::Known(view)) = self.observed.name_servers.views.get_mut(address)
                {
                    view.config.extend(keys.clone());
                }
            }
            Step::PushBrokerConfig { group, keys, .. } => {
                self.overrides
                    .entry(*group)
                    .or_default()
                    .extend(keys.clone());
            }
            Step::CopyMetadata { from, to } => {
                let all = self.metadata.get(from).cloned().unwrap_or_default();
                self.metadata.entry(*to).or_default().extend(all);
            }
            Step::OpenGroup { group, .. } => self.permit(*group, "6"),
            Step::CloseGroup { group, .. } => self.permit(*group, "4"),
            Step::LabelPod {
                group,
                uid,
                role,
                in_sync,
                readable,
                epoch,
                ..
            } => {
                let pods = self
                    .observed
                    .groups
                    .get_mut(group)
                    .map(|group| &mut group.pods);
                if let Some(pod) = pods.into_iter().flatten().find(|pod| pod.uid == *uid) {
                    pod.labels.role = Some((*role).to_owned());
                    pod.labels.in_sync = *in_sync;
                    pod.labels.readable = *readable;
                    pod.labels.epoch = *epoch;
                }
            }
            Step::RestartPod { component, uid, .. } => self.restart(*component, uid),
            Step::GrowVolume {
                group,
                ordinal,
                bytes,
                ..
            } => {
                if let Some(group) = self.observed.groups.get_mut(group)
                    && let Some(volume) = group.volumes.get_mut(ordinal)
                {
                    assert!(volume.requested < *bytes, "a volume shrinks");
                    volume.requested = *bytes;
                }
            }
            Step::RecreateSet { group, uid } | Step::StopGroup { group, uid } => {
                if let Some(group) = self.observed.groups.get_mut(group)
                    && group.set.as_ref().is_some_and(|set| set.uid == *uid)
                {
                    group.set = None;
                    if matches!(step, Step::StopGroup { .. }) {
                        group.pods.clear();
                    }
                }
            }
            Step::MarkDrained { group } => {
                if let Some(group) = self.observed.groups.get_mut(group) {
                    group.drain_phase = Some(DrainPhase::Drained);
                }
            }
            Step::Unregister { .. } => {}
            Step::ReplaceVolume { group, ordinal, .. } => {
                self.metadata.remove(group);
                self.overrides.remove(group);
                if let Some(group) = self.observed.groups.get_mut(group) {
                    group.volumes.remove(ordinal);
                    group.pods.retain(|pod| pod.ordinal != *ordinal);
                }
            }
            Step::DeleteVolume { group, uid, .. } => {
                if let Some(group) = self.observed.groups.get_mut(group) {
                    // A disk in use stays until its pod is gone.
                    let used = !group.pods.is_empty();
                    for volume in group.volumes.values_mut() {
                        volume.deleting |= volume.uid == *uid;
                    }
                    group.volumes.retain(|_, volume| used || !volume.deleting);
                }
            }
            Step::RemoveGroup { group } => {
                self.applied.remove(&Component::Group(*group));
                self.observed.groups.remove(group);
                self.metadata.remove(group);
                self.overrides.remove(group);
            }
        }
    }

    fn permit(&mut self, group: i32, permission: &str) {
        self.overrides
            .entry(group)
            .or_default()
            .insert(KEY_PERMISSION.to_owned(), permission.to_owned());
        // Known at once: the broker answers with what it was told.
        if let Some(seen) = self.observed.groups.get_mut(&group) {
            for answer in seen.brokers.values_mut() {
                if let Answer::Known(broker) = answer {
                    broker
                        .config
                        .insert(KEY_PERMISSION.to_owned(), permission.to_owned());
                }
            }
        }
    }

    fn restart(&mut self, component: Component, uid: &str) {
        let pods = match component {
            Component::Group(index) => match self.observed.groups.get_mut(&index) {
                Some(group) => &mut group.pods,
                None => return,
            },
            _ => &mut self.observed.name_servers.pods,
        };
        if let Some(pod) = pods.iter_mut().find(|pod| pod.uid == uid) {
            pod.deleting = true;
            pod.ready = false;
        }
    }

    fn apply_objects(&mut self, component: Component, desired: &Desired) {
        let built = self.built(desired, component);
        let set_uid = self.uid();
        let set = |before: Option<&SetSeen>| SetSeen {
            uid: before.map_or(set_uid, |before| before.uid.clone()),
            replicas: built.replicas,
            update_revision: Some(built.revision.clone()),
            volume_bytes: before.map_or(built.volume_bytes, |before| before.volume_bytes),
            deleting: false,
        };
        match component {
            Component::Shared => self.shared = true,
            Component::NameServers => {
                let before = self.observed.name_servers.set.take();
                self.observed.name_servers.set = Some(set(before.as_ref()));
            }
            Component::Group(index) => {
                let name = desired
                    .groups
                    .get(&index)
                    .map_or_else(|| format!("broker-{index}"), |g| g.broker_name.clone());
                let group = self
                    .observed
                    .groups
                    .entry(index)
                    .or_insert_with(|| GroupSeen {
                        broker_name: name,
                        ..GroupSeen::default()
                    });
                let before = group.set.take();
                group.set = Some(set(before.as_ref()));
                group.has_objects = true;
            }
        }
        self.applied.insert(component, built);
    }
}
