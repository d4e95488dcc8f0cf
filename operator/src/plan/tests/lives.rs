//! Random lives of clusters: edits, faults, lost operators, two operators at once.
//!
//! What holds is checked here in its own words, without the guard: after each step, and at the end.

use super::*;
use crate::observe::Observed;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Something that happens to a cluster.
#[derive(Clone, Debug)]
enum Turn {
    Groups(i32),
    NameServers(i32),
    Template(u8),
    BadTemplate(u8),
    Reserved(u8),
    Size(u8),
    Hibernate(bool),
    Silence(i32),
    Backlog(i32, i64),
    Topic(u64),
    Heal,
    /// The operator dies after so many writes of a pass.
    Crash(usize),
    /// Another operator takes a plan that was made some time ago.
    Stale,
    Passes(usize),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        (1..5_i32).prop_map(Turn::Groups),
        (1..5_i32).prop_map(Turn::NameServers),
        (0..3_u8).prop_map(Turn::Template),
        (0..3_u8).prop_map(Turn::BadTemplate),
        (40..44_u8).prop_map(Turn::Reserved),
        (20..24_u8).prop_map(Turn::Size),
        any::<bool>().prop_map(Turn::Hibernate),
        (0..5_i32).prop_map(Turn::Silence),
        (0..5_i32, 0..3_i64).prop_map(|(group, left)| Turn::Backlog(group, left * 1000)),
        (0..50_u64).prop_map(Turn::Topic),
        Just(Turn::Heal),
        (0..4_usize).prop_map(Turn::Crash),
        Just(Turn::Stale),
        (1..12_usize).prop_map(Turn::Passes),
        (1..12_usize).prop_map(Turn::Passes),
    ]
}

struct Life {
    world: World,
    groups: i32,
    name_servers: i32,
    reserved: Option<u8>,
    size: u8,
    hibernated: bool,
    old_plan: Vec<Step>,
}

impl Life {
    fn desired(&self) -> Desired {
        let config = self
            .reserved
            .map(|hours| format!(", config: {{fileReservedTime: \"{hours}\"}}"))
            .unwrap_or_default();
        desired(&format!(
            "nameServer: {{replicas: {}}}, brokers: {{groups: {}, storage: {{size: {}Gi}}{config}}}, \
             operation: {{hibernated: {}}}, updateStrategy: {{canary: {{soak: 10s}}}}",
            self.name_servers, self.groups, self.size, self.hibernated
        ))
    }

    /// A pass of an operator that dies after `most` writes.
    fn pass(&mut self, most: usize) {
        let desired = self.desired();
        self.world.settle(&desired, 5_000);
        let plan = plan(&self.world.observed, &desired, self.world.now);
        disruptions_are_few(&self.world.observed, &desired, &plan.steps);
        for step in plan.steps.iter().take(most) {
            self.judge(step, &desired);
            self.world.apply(step, &desired);
        }
        self.old_plan = plan.steps;
    }

    /// Takes the plan of the last pass again, as a second operator would: the guard sees each step
    /// once more, right before it.
    fn stale(&mut self) {
        let desired = self.desired();
        self.world.settle(&desired, 0);
        let mut taken = Vec::new();
        for step in std::mem::take(&mut self.old_plan) {
            if guard::check(&self.world.observed, &desired, &step, &taken).is_ok() {
                self.judge(&step, &desired);
                self.world.apply(&step, &desired);
                taken.push(step);
            }
        }
    }

    /// What must hold of a step that is taken now.
    fn judge(&self, step: &Step, desired: &Desired) {
        let groups = &self.world.observed.groups;
        match step {
            // I18: nothing goes that somebody waits for.
            Step::StopGroup { group, .. } | Step::RemoveGroup { group } => {
                assert!(!desired.groups.contains_key(group), "{step} is asked for");
                let left = self.world.backlog.get(group).copied().unwrap_or_default();
                assert!(
                    !groups[group].opened || left == 0,
                    "{step} loses {left} messages"
                );
            }
            // No producer meets a half-made group.
            Step::OpenGroup { group, .. } => {
                let has = self.world.metadata.get(group).cloned().unwrap_or_default();
                for (other, seen) in groups {
                    if other != group && seen.is_writable() && desired.groups.contains_key(other) {
                        let all = self.world.metadata.get(other).cloned().unwrap_or_default();
                        let first = !groups.values().any(|g| g.opened);
                        assert!(first || all.is_subset(&has) || lower(groups, *other, desired));
                    }
                }
            }
            // I9: disks stay.
            Step::DeleteVolume { .. } | Step::ReplaceVolume { .. } => {
                unreachable!("nobody asked for {step}");
            }
            // I12: the list is the manifest's.
            Step::PushBrokerConfig { keys, .. } => {
                if let Some(list) = keys.get("namesrvAddr") {
                    assert_eq!(*list, desired.name_server_list());
                    assert!(!list.is_empty());
                }
            }
            _ => {}
        }
    }
}

/// Whether another open group comes before `index` as the source of topics.
fn lower(
    groups: &std::collections::BTreeMap<i32, crate::observe::GroupSeen>,
    index: i32,
    desired: &Desired,
) -> bool {
    groups.iter().any(|(other, seen)| {
        *other < index && desired.groups.contains_key(other) && (seen.opened || seen.is_writable())
    })
}

/// I4: at most one pod of a group, and so many groups, disturbed by us at a time.
fn disruptions_are_few(observed: &Observed, desired: &Desired, steps: &[Step]) {
    let mut restarted = BTreeSet::new();
    let mut new = BTreeSet::new();
    for step in steps {
        if let Step::RestartPod { component, pod, .. } = step {
            assert!(restarted.insert(*component), "two pods of {component}");
            if let Component::Group(index) = component {
                let group = &observed.groups[index];
                let healthy = group.pods.iter().any(|p| p.name == *pod && p.is_healthy());
                if healthy {
                    new.insert(*index);
                }
            }
        }
    }
    if !new.is_empty() {
        let down = observed
            .groups
            .iter()
            .filter(|(_, group)| group.unready() > 0);
        let all: BTreeSet<i32> = down.map(|(index, _)| *index).chain(new).collect();
        assert!(
            all.len() <= desired.update.max_unavailable_groups,
            "{all:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_happens_nothing_is_lost_and_in_the_end_there_is_nothing_to_do(
        turns in prop::collection::vec(turn(), 1..24),
    ) {
        let mut life = Life {
            world: World::new(),
            groups: 2,
            name_servers: 2,
            reserved: None,
            size: 20,
            hibernated: false,
            old_plan: Vec::new(),
        };
        for turn in turns {
            match turn {
                Turn::Groups(groups) => {
                    // Admission lets groups shrink by one.
                    life.groups = groups.max(life.groups - 1);
                }
                Turn::NameServers(count) => life.name_servers = count,
                Turn::Template(t) => life.world.template = format!("t{t}"),
                Turn::BadTemplate(t) => life.world.bad_template = Some(format!("t{t}")),
                Turn::Reserved(hours) => {
                    life.reserved = (hours > 40).then_some(hours);
                }
                Turn::Size(size) => life.size = size.max(life.size),
                Turn::Hibernate(hibernated) => life.hibernated = hibernated,
                Turn::Silence(group) => {
                    life.world.silent.insert(group);
                }
                Turn::Backlog(group, left) => {
                    // A closed or stopped group gets no more messages.
                    let open = life.world.observed.groups.get(&group).is_some_and(crate::observe::GroupSeen::is_writable);
                    if open || left == 0 {
                        life.world.backlog.insert(group, left);
                    }
                }
                Turn::Topic(topic) => {
                    // A topic is made on every group that takes sends.
                    let open: Vec<i32> = life.world.observed.groups.iter()
                        .filter(|(_, g)| g.is_writable()).map(|(index, _)| *index).collect();
                    for index in open {
                        life.world.metadata.entry(index).or_default().insert(topic);
                    }
                }
                Turn::Heal => {
                    life.world.silent.clear();
                    life.world.bad_template = None;
                }
                Turn::Crash(writes) => life.pass(writes),
                Turn::Stale => life.stale(),
                Turn::Passes(passes) => (0..passes).for_each(|_| life.pass(usize::MAX)),
            }
        }
        life.world.silent.clear();
        life.world.bad_template = None;
        life.world.backlog.clear();
        let desired = life.desired();
        let mut idle = 0;
        for _ in 0..400 {
            life.pass(usize::MAX);
            let plan = plan(&life.world.observed, &desired, life.world.now);
            idle = if life.old_plan.is_empty() && plan.is_idle() { idle + 1 } else { 0 };
            if idle == 3 {
                break;
            }
        }
        let last = plan(&life.world.observed, &desired, life.world.now);
        prop_assert_eq!(idle, 3, "no rest: {:?}", last);
        // I15: at rest nothing is written, however long.
        let writes = life.world.writes;
        (0..5).for_each(|_| life.pass(usize::MAX));
        prop_assert_eq!(life.world.writes, writes);
        if !life.hibernated {
            prop_assert_eq!(life.world.observed.groups.len() as i32, life.groups);
            let all_write = life.world.observed.groups.values().all(crate::observe::GroupSeen::is_writable);
            prop_assert!(all_write);
            prop_assert_eq!(life.world.observed.name_servers.pods.len() as i32, life.name_servers);
        }
    }
}
