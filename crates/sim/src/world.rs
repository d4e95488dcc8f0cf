//! The world: time, events, nodes that run, stand still or are down.
//!
//! **Invariant:** events happen in order of their time and then of their making; a node that stands
//! still gets what came meanwhile when it goes on, a node that is down gets nothing.

use std::{collections::BTreeMap, fmt::Write as _};

use rmq_controller_fsm::{
    AckPolicy, AlterSyncStateSet, ApplyBrokerId, Command, Election, ElectionPolicy, MasterStanding,
    Trigger,
    detector::{ConnectionId, Heartbeat},
};
use rmq_replica::LinkId;
use rmq_types::{BrokerId, BrokerName, ClusterName, Moment, Timestamp};

use crate::{
    Plan, Report,
    broker::{Broker, Role},
    checker::Checker,
    controller::{Controller, FromController},
    faults::{self, Fault},
    link::{Link, ToMaster, ToReplica},
    net::{Net, Node},
    quorum::{CONTROLLERS, Entry, QuorumMessage},
    rng::Rng,
};

pub(crate) const NODES: usize = 6;
const TICK: u64 = 25;

/// A disk action of a replica that takes a while.
#[derive(Clone, Debug)]
pub(crate) enum DiskWork {
    Cut(rmq_types::CommitLogOffset, rmq_replica::Epochs),
    StoreEpochs(rmq_replica::Epochs),
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Tick,
    Quorum(Node, QuorumMessage),
    Heartbeat(Node, Heartbeat),
    Alter(Node, AlterSyncStateSet),
    Controller(FromController),
    Closed(ConnectionId),
    Kill,
    ToMaster(LinkId, ToMaster),
    ToReplica(LinkId, ToReplica),
    Disk(u64, DiskWork),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeState {
    pub(crate) up: bool,
    pub(crate) paused_until: u64,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: u64,
    pub(crate) rng: Rng,
    pub(crate) net: Net,
    pub(crate) group: BrokerName,
    pub(crate) nodes: [NodeState; NODES],
    clocks: [u64; NODES],
    /// A broker that is to become master, and until when it is tried.
    pub(crate) switchover: Option<(BrokerId, u64)>,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) brokers: Vec<Broker>,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) checker: Checker,
    pub(crate) next_number: u64,
    /// The next broker that cuts its log is killed so many milliseconds after it.
    pub(crate) kill_after_cut: Option<u64>,
    events: BTreeMap<(u64, u64), (Node, Event)>,
    event_number: u64,
    calm_from: Option<u64>,
    trace: u64,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let group = BrokerName::parse("g").expect("a name");
        let log = first_entries(&group, plan.ack);
        let controllers = (0..CONTROLLERS)
            .map(|me| Controller::new(me, log.clone(), &mut rng))
            .collect();
        let brokers = (1..=3).map(|id| Broker::new(BrokerId::new(id))).collect();
        let clocks = [(); NODES].map(|()| rng.between(0, 1_000_000));
        let nothing_promised = plan.ack == AckPolicy::Async;
        let mut world = Self {
            clocks,
            switchover: None,
            plan,
            now: 0,
            rng,
            net: Net::default(),
            group,
            nodes: [NodeState::default(); NODES],
            controllers,
            brokers,
            links: BTreeMap::new(),
            checker: Checker::new(nothing_promised),
            next_number: 1,
            kill_after_cut: None,
            events: BTreeMap::new(),
            event_number: 0,
            calm_from: None,
            trace: 0,
        };
        for node in 0..NODES {
            world.start(node);
            world.at(world.now + node as u64, node, Event::Tick);
        }
        world
    }

    /// What a node's own clock shows: no two of them began together.
    pub(crate) fn moment(&self, node: Node) -> Moment {
        Moment::from_millis(self.now + self.clocks[node])
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(crate) fn broker(&mut self, node: Node) -> &mut Broker {
        &mut self.brokers[node - CONTROLLERS]
    }

    pub(crate) fn at(&mut self, at: u64, node: Node, event: Event) {
        self.event_number += 1;
        self.events.insert((at, self.event_number), (node, event));
    }

    /// Sends a message that may be lost.
    pub(crate) fn send(&mut self, from: Node, to: Node, event: Event) {
        if let Some(delay) = self.net.delay(from, to, &mut self.rng) {
            self.at(self.now + delay, to, event);
        }
    }

    pub(crate) fn run(mut self) -> Report {
        let mut faults = match self.plan.faults.take() {
            Some(faults) => faults,
            None => faults::seeded(&mut self.rng, self.plan.millis),
        };
        faults.sort_by_key(|(at, _)| *at);
        let mut faults = faults.into_iter().peekable();
        while let Some(((at, _), _)) = self.events.first_key_value() {
            let at = *at;
            if at > self.plan.millis || self.checker.violation.is_some() {
                break;
            }
            while let Some((_, fault)) = faults.next_if(|(due, _)| *due <= at) {
                self.now = self.now.max(at);
                self.fault(&fault);
            }
            let Some(((at, _), (node, event))) = self.events.pop_first() else {
                break;
            };
            self.now = at;
            self.happen(node, event);
        }
        if let Some(since) = self.calm_from.filter(|_| !self.may_have_lost()) {
            self.checker.calm(self.now, since);
        }
        Report {
            standing: self.standing(),
            violation: self.checker.violation,
            acknowledged: self.checker.acknowledged_count,
            promotions: self.checker.promotions,
            last_acknowledged_at: self.checker.last_acknowledged_at,
            trace: self.trace,
        }
    }

    /// How things stand, for a person who looks at a seed that failed.
    fn standing(&self) -> String {
        let leader = self
            .controllers
            .iter()
            .max_by_key(|controller| controller.quorum.committed);
        let group = leader.and_then(|controller| controller.state.group(&self.group));
        let mut text = format!("{group:?}\n");
        for broker in &self.brokers {
            let node = &self.nodes[crate::node_of(broker.id)];
            let role = match &broker.role {
                Role::Nobody => "nobody".to_owned(),
                Role::Master(master) => format!(
                    "master of {} set {:?}/{} lease {:?} deposed {} acknowledged {}",
                    master.epoch(),
                    master.set(),
                    master.set_epoch(),
                    master.lease_until(),
                    master.is_deposed(),
                    master.acknowledged(),
                ),
                Role::Replica(replica) => format!(
                    "replica of {:?} streaming {} busy {} confirmed {}",
                    replica.following(),
                    replica.is_streaming(),
                    replica.is_busy(),
                    replica.confirmed(),
                ),
            };
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "broker {} up {} end {} epochs {:?} may lack {}: {role}",
                broker.id,
                node.up,
                broker.disk.end(),
                broker.disk.epochs.last(),
                broker.disk.may_lack,
            );
        }
        text
    }

    fn happen(&mut self, node: Node, event: Event) {
        let state = self.nodes[node];
        if state.paused_until > self.now {
            self.at(state.paused_until, node, event);
            return;
        }
        let mixed = (self.now << 3) ^ node as u64 ^ self.checker.acknowledged_count;
        self.trace = (self.trace ^ mixed)
            .wrapping_mul(0x0100_0000_01B3)
            .rotate_left(7);
        if let Event::Tick = event {
            if state.up {
                self.tick(node);
            }
            self.at(self.now.max(1) + TICK, node, Event::Tick);
            return;
        }
        if !state.up {
            self.refuse(node, &event);
            return;
        }
        match event {
            Event::Tick => {}
            Event::Kill => self.kill(node),
            Event::Quorum(from, message) => {
                let now = self.now;
                let quorum = &mut self.controllers[node].quorum;
                let answer = quorum.receive(now, from, message, &mut self.rng);
                if let Some(answer) = answer {
                    self.send(node, from, Event::Quorum(node, answer));
                }
                self.controller_goes_on(node);
            }
            Event::Heartbeat(from, heartbeat) => {
                let now = self.moment(node);
                self.controllers[node].heartbeat(now, from, heartbeat);
            }
            Event::Alter(from, command) => {
                let now = self.moment(node);
                if let Some(answer) = self.controllers[node].alter(now, from, command) {
                    self.send(node, from, Event::Controller(answer));
                }
            }
            Event::Closed(connection) => {
                let now = self.moment(node);
                self.controllers[node].closed(now, connection);
            }
            Event::Controller(message) => self.controller_says(node, message),
            Event::ToMaster(link, message) => self.master_receives(node, link, &message),
            Event::ToReplica(link, message) => self.replica_receives(node, link, message),
            Event::Disk(incarnation, work) => self.disk_done(node, incarnation, work),
        }
    }

    /// Whoever sends on a link to a process that is gone learns it.
    fn refuse(&mut self, node: Node, event: &Event) {
        if let Event::ToMaster(link, _) | Event::ToReplica(link, _) = event {
            self.break_link(node, *link);
        }
    }

    fn tick(&mut self, node: Node) {
        if node < CONTROLLERS {
            let now = self.now;
            let message = self.controllers[node].quorum.tick(now, &mut self.rng);
            if let Some(message) = message {
                for to in (0..CONTROLLERS).filter(|to| *to != node) {
                    self.send(node, to, Event::Quorum(node, message.clone()));
                }
            }
            self.controller_goes_on(node);
            let (now, bug) = (self.moment(node), self.plan.bug);
            let messages = self.controllers[node].tick(now, bug);
            self.switch_over(node);
            self.send_all(node, messages);
        } else {
            self.broker_tick(node);
        }
    }

    fn controller_goes_on(&mut self, node: Node) {
        let now = self.moment(node);
        let answers = self.controllers[node].apply(now);
        self.send_all(node, answers);
        let group = self.group.clone();
        let answers = self.controllers[node].confirm(&group);
        self.send_all(node, answers);
    }

    fn send_all(&mut self, from: Node, messages: Vec<(Node, FromController)>) {
        for (to, message) in messages {
            self.send(from, to, Event::Controller(message));
        }
    }

    /// Whom the controllers elected last.
    fn master(&mut self) -> Node {
        let newest = self.controllers.iter().max_by_key(|c| c.quorum.committed);
        let group = newest.and_then(|controller| controller.state.group(&self.group));
        let master = group.and_then(rmq_controller_fsm::BrokerGroup::master);
        master.map_or_else(|| self.rng.between(3, 5) as usize, crate::node_of)
    }

    /// A computer of the set lost power, so that no election may be safe.
    fn may_have_lost(&self) -> bool {
        let newest = self.controllers.iter().max_by_key(|c| c.quorum.committed);
        let group = newest.and_then(|controller| controller.state.group(&self.group));
        let Some(group) = group else {
            return false;
        };
        let unsettled = group
            .unsettled()
            .map(|electorate| electorate.members.clone());
        let members = unsettled.unwrap_or_default();
        let mut lacking = self.brokers.iter().filter(|broker| broker.disk.may_lack);
        lacking.any(|broker| group.set().contains(&broker.id) || members.contains(&broker.id))
    }

    fn start(&mut self, node: Node) {
        if self.nodes[node].up {
            return;
        }
        self.nodes[node] = NodeState {
            up: true,
            paused_until: 0,
        };
        if node < CONTROLLERS {
            let now = self.now;
            self.controllers[node].restarted(now, &mut self.rng);
        } else {
            let incarnation = self.number();
            let connections = [self.number(), self.number(), self.number()];
            let now = self.now;
            self.broker(node).start(now, incarnation, connections);
        }
    }

    fn kill(&mut self, node: Node) {
        if !self.nodes[node].up {
            return;
        }
        self.nodes[node] = NodeState::default();
        if node < CONTROLLERS {
            return;
        }
        // The kernel closes its sockets.
        let connections = self.broker(node).connections;
        for (controller, connection) in connections.into_iter().enumerate() {
            self.send(node, controller, Event::Closed(ConnectionId(connection)));
        }
        self.broker(node).disk.process_ends();
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            let ends = &self.links[&link];
            if ends.master == node || ends.replica == node {
                self.break_link(node, link);
            }
        }
    }

    /// The leader takes the right to write from the master, whom somebody has fenced or not, and
    /// elects another: what an administrator's request does.
    fn switch_over(&mut self, node: Node) {
        let Some((target, until)) = self.switchover else {
            return;
        };
        let (now, group) = (self.moment(node), self.group.clone());
        let done = self.controllers[node].switch_over(now, &group, target, self.now > until);
        if done {
            self.switchover = None;
        }
    }

    fn isolate(&mut self, inside: &[Node]) {
        for a in inside {
            for b in (0..NODES).filter(|b| !inside.contains(b)) {
                self.net.cut_both(*a, b);
            }
        }
    }

    fn fault(&mut self, fault: &Fault) {
        match *fault {
            Fault::Kill(node) => self.kill(node),
            Fault::KillMaster => {
                let master = self.master();
                self.kill(master);
            }
            Fault::PowerCut(node) => {
                self.nodes[node] = NodeState::default();
                let mut rng = self.rng.clone();
                self.broker(node).disk.power_lost(&mut rng);
                self.rng = rng;
            }
            Fault::KillAfterCut(millis) => self.kill_after_cut = Some(millis),
            Fault::Start(node) => self.start(node),
            Fault::Pause(node, millis) => self.nodes[node].paused_until = self.now + millis,
            Fault::PauseMaster(millis) => {
                let master = self.master();
                self.nodes[master].paused_until = self.now + millis;
            }
            Fault::Cut(a, b) => self.net.cut_both(a, b),
            Fault::CutOneWay(from, to) => self.net.cut_one_way(from, to),
            Fault::Isolate(node) => self.isolate(&[node]),
            Fault::IsolateMaster => {
                let master = self.master();
                self.isolate(&[master]);
            }
            Fault::IsolateMasterWithOne => {
                let master = self.master();
                let other = (3..NODES).find(|node| *node != master).unwrap_or(3);
                self.isolate(&[master, other]);
            }
            Fault::IsolateMasterFromControllers => {
                let master = self.master();
                for controller in 0..CONTROLLERS {
                    self.net.cut_both(master, controller);
                }
            }
            Fault::ResetLinks => {
                let links: Vec<(LinkId, Node)> = self
                    .links
                    .iter()
                    .map(|(id, link)| (*id, link.master))
                    .collect();
                for (link, master) in links {
                    self.break_link(master, link);
                }
            }
            Fault::Heal => self.net.heal(),
            Fault::MendAll => {
                self.net.heal();
                for node in 0..NODES {
                    self.start(node);
                }
            }
            Fault::Switchover { broker, fence } => {
                self.switchover = Some((BrokerId::new(broker), self.now + 6000));
                let master = self.master();
                let now = self.moment(master);
                if let (Some(millis), Role::Master(machine)) =
                    (fence, &mut self.broker(master).role)
                {
                    let epoch = machine.epoch();
                    // A fence that is refused leaves the lease to run out.
                    let _ = machine.fence(now, "switchover", epoch, millis);
                }
            }
            Fault::CalmFrom => self.calm_from = Some(self.now),
        }
    }
}

/// Ids, acknowledgement and the first master, as if it had all happened before.
fn first_entries(group: &BrokerName, ack: AckPolicy) -> Vec<Entry> {
    let cluster = ClusterName::parse("c").expect("a name");
    let text = match ack {
        AckPolicy::Async => "Async".to_owned(),
        AckPolicy::AllInSync => "AllInSync".to_owned(),
        AckPolicy::Quorum(acks) => format!("Quorum:{acks}"),
    };
    let mut commands = vec![Command::SetConfig(
        [("replicationAck".to_owned(), text)].into(),
    )];
    for broker in 1..=3 {
        commands.push(Command::ApplyBrokerId(ApplyBrokerId {
            cluster: cluster.clone(),
            group: group.clone(),
            broker: BrokerId::new(broker),
            check_code: format!("host{broker}:10911;1"),
        }));
    }
    commands.push(Command::ElectMaster(Election {
        group: group.clone(),
        trigger: Trigger::Broker(BrokerId::new(1)),
        expected_epoch: None,
        standing: MasterStanding::Lost,
        alive: BTreeMap::new(),
        policy: ElectionPolicy {
            ack,
            ..ElectionPolicy::default()
        },
        at: Timestamp::from_millis(0),
    }));
    let entries = commands.into_iter().map(|command| Entry {
        term: 0,
        command: Some(command),
    });
    entries.collect()
}
